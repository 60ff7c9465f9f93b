//! Handles repeated items. With `--copies`, a cuckoo filter stores every copy of an item.

use std::path::Path;

use tamis::{Answers, AnyFilter, InsertError, Kind, NoRoom, TryInsert as _};

use crate::arguments::numbers::{self, HumanCount};
use crate::exit::Failure;
use crate::io::input;
use crate::records::secret_set::SecretSet;

/// The rule for inserting repeated items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatPolicy {
    /// Insert every occurrence of an item.
    Each,
    /// Insert an item once per run of the command. An exact set of hashes finds the repeats.
    Once,
    /// Insert an item only if the filter does not contain the item.
    IfAbsent,
}

/// The options for repeated items. The commands `build` and `add` have the same options.
#[derive(clap::Args, Debug)]
pub struct RepeatArgs {
    /// Insert every copy of a repeated line into a cuckoo filter, so that copies can be deleted one
    /// by one. A filter built with --copies has space for three copies of every line, and for at
    /// most eight copies of one line
    #[arg(long)]
    pub copies: bool,
}

impl RepeatArgs {
    /// Returns the rule for a filter of this kind. Without `--copies`, a cuckoo filter stores an
    /// item once, because a few copies of an item fill its two buckets.
    ///
    /// # Errors
    ///
    /// A message if `--copies` has no effect on this kind.
    pub fn of(&self, kind: Option<Kind>) -> Result<RepeatPolicy, Failure> {
        let stores_copies = kind.is_some_and(Kind::stores_copies);
        match (kind, self.copies) {
            (_, false) if stores_copies => Ok(RepeatPolicy::Once),
            (_, false) => Ok(RepeatPolicy::Each),
            (_, true) if stores_copies => Ok(RepeatPolicy::Each),
            (Some(Kind::Counting), true) => Err(Failure::new(
                "--copies is for cuckoo filters: a counting filter counts every repeat without \
                 it; leave it out",
            )),
            (Some(kind), true) => Err(Failure::new(format!(
                "--copies is for cuckoo filters: a {kind} filter does not count repeats; leave it \
                 out, or build with --kind cuckoo"
            ))),
            (None, true) => Err(Failure::new(
                "--copies is for cuckoo filters: leave it out, or build with --kind cuckoo",
            )),
        }
    }
}

impl RepeatPolicy {
    /// Returns advice for a full filter of `kind`.
    pub fn advice(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (_, kind) if kind.grows() => "build one with a higher --rate",
            (RepeatPolicy::Each, _) => {
                "build one for more with --copies --items N, where each copy counts, or insert \
                 each line once, without --copies"
            }
            (RepeatPolicy::Once | RepeatPolicy::IfAbsent, _) => "build one for more with --items N",
        }
    }
}

/// Inserts the items of a command into its filter.
pub struct Inserter {
    repeats: RepeatPolicy,
    advice: &'static str,
    seen: SecretSet,
    new: Answers,
    fresh: Vec<u64>,
}

impl Inserter {
    /// Creates an inserter whose set of hashes uses at most `max_bytes`. `advice` is shown if the
    /// filter is full.
    ///
    /// # Errors
    ///
    /// A message if the system provides no random bytes.
    pub fn new(
        repeats: RepeatPolicy,
        max_bytes: u64,
        advice: &'static str,
    ) -> Result<Self, Failure> {
        let (new, fresh) = (Answers::new(), Vec::new());
        Ok(Self { repeats, advice, seen: SecretSet::within(max_bytes)?, new, fresh })
    }

    /// Inserts hashes in order into the filter that will be written to `output`.
    ///
    /// # Errors
    ///
    /// A message if the filter is full, or if the set of hashes exceeds its memory.
    pub fn insert(
        &mut self,
        filter: &mut AnyFilter,
        hashes: &[u64],
        output: &Path,
    ) -> Result<(), Failure> {
        let failure = |kind, error: InsertError| full(output, kind, &error, self.advice);
        let hashes = match self.repeats {
            RepeatPolicy::Each => hashes,
            RepeatPolicy::Once => {
                self.seen.insert_each(hashes, &mut self.new).map_err(|_| {
                    Failure::new(format!(
                        "finding repeats among over {} distinct items takes more memory than \
                         --memory allows: allow more, or give --copies if no line is repeated",
                        HumanCount(self.seen.len())
                    ))
                })?;
                self.fresh.clear();
                self.fresh.extend(self.new.ones().map(|i| hashes[i]));
                &self.fresh
            }
            RepeatPolicy::IfAbsent => {
                for &hash in hashes {
                    if !filter.contains_hash(hash) {
                        let inserted = filter.try_insert_hash(hash);
                        inserted.map_err(|error| failure(filter.plan().kind(), error))?;
                    }
                }
                return Ok(());
            }
        };
        let inserted = filter.try_insert_copy_hashes(hashes, self.new.reset(hashes.len()));
        inserted.map_err(|error| failure(filter.plan().kind(), error))
    }
}

/// Returns the failure for a filter of `kind` that rejected items. `advice` is shown if the filter
/// is full. After this failure, the file of the filter is unchanged.
pub fn full(path: &Path, kind: Kind, error: &InsertError, advice: &str) -> Failure {
    let name = input::name(path);
    match error.reason {
        NoRoom::Full { items } => Failure::new(format!(
            "{name}: full with {}{}; nothing was written: {advice}",
            numbers::items(items),
            if kind.can_remove() { ", each copy counted" } else { "" },
        )),
        NoRoom::Copies { items, capacity } => Failure::new(format!(
            "{name}: copies of repeated lines fill the filter at {} of {} planned items; nothing was \
             written: run the command without --copies, or create the filter with `tamis build \
             --copies`, which uses buckets of four slots",
            HumanCount(items),
            HumanCount(capacity),
        )),
        _ => Failure::new(format!("{name}: {error}; nothing was written")),
    }
}
