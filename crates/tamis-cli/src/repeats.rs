//! How often a command inserts a repeated item into a cuckoo filter: `--copies`.

use std::path::Path;

use tamis::{Answers, AnyFilter, Kind, TryInsert as _};

use crate::build::full;
use crate::count::Count;
use crate::exit::Failure;
use crate::secret_set::SecretSet;

/// How often a command inserts an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// As often as it occurs.
    Each,
    /// Once for each run of the command, by an exact set of hashes.
    Once,
    /// Only if the filter answers that it does not have it.
    IfAbsent,
}

/// Options about repeats, alike in `build` and `add`.
#[derive(clap::Args, Debug)]
pub struct RepeatArgs {
    /// Insert every copy of a repeated line into a cuckoo filter, so that copies can be deleted one by one. A filter
    /// built with --copies has space for three copies of every line, and for at most eight copies of one line
    #[arg(long)]
    pub copies: bool,
}

impl RepeatArgs {
    /// Returns how often items are inserted into a filter of this kind: once into a cuckoo filter without `--copies`, since
    /// a few copies of an item fill its two buckets.
    ///
    /// # Errors
    ///
    /// `--copies` for a kind in which it has no effect.
    pub fn of(&self, kind: Option<Kind>) -> Result<Repeats, Failure> {
        let stores_copies = kind.is_some_and(Kind::stores_copies);
        match (kind, self.copies) {
            (_, false) if stores_copies => Ok(Repeats::Once),
            (_, false) => Ok(Repeats::Each),
            (_, true) if stores_copies => Ok(Repeats::Each),
            (Some(Kind::Counting), true) => Err(Failure::new(
                "--copies is for cuckoo filters: a counting filter counts every repeat without it; leave it out",
            )),
            (Some(kind), true) => Err(Failure::new(format!(
                "--copies is for cuckoo filters: a {kind} filter does not count repeats; leave it out, or build with \
                 --kind cuckoo"
            ))),
            (None, true) => Err(Failure::new(
                "--copies is for cuckoo filters: leave it out, or build with --kind cuckoo",
            )),
        }
    }
}

impl Repeats {
    /// Returns what helps when a filter of `kind` is full.
    pub fn advice(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (_, kind) if kind.grows() => "build one with a higher --rate",
            (Repeats::Each, _) => {
                "build one for more with --copies --items N, where each copy counts, or insert each line once, without --copies"
            }
            (Repeats::Once | Repeats::IfAbsent, _) => "build one for more with --items N",
        }
    }
}

/// Inserts the items of a command into its filter.
pub struct Inserter {
    repeats: Repeats,
    advice: &'static str,
    seen: SecretSet,
    new: Answers,
    fresh: Vec<u64>,
    answers: Vec<u64>,
}

impl Inserter {
    /// Creates an inserter whose set of hashes takes at most `max_bytes`. `advice` is what the user can do when the filter
    /// is full.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn new(repeats: Repeats, max_bytes: u64, advice: &'static str) -> Result<Self, Failure> {
        let (new, fresh, answers) = (Answers::new(), Vec::new(), Vec::new());
        Ok(Self { repeats, advice, seen: SecretSet::within(max_bytes)?, new, fresh, answers })
    }

    /// Inserts hashes in order into the filter that goes to `output`.
    ///
    /// # Errors
    ///
    /// If the filter is full, or if the set of hashes exceeds its memory.
    pub fn insert(
        &mut self,
        filter: &mut AnyFilter,
        hashes: &[u64],
        output: &Path,
    ) -> Result<(), Failure> {
        let hashes = match self.repeats {
            Repeats::Each => hashes,
            Repeats::Once => {
                self.seen.insert_each(hashes, &mut self.new).map_err(|_| {
                    Failure::new(format!(
                        "finding repeats among over {} distinct items takes more memory than --memory allows: allow more, \
                         or give --copies if no line is repeated",
                        Count(self.seen.len())
                    ))
                })?;
                self.fresh.clear();
                self.fresh.extend(self.new.ones().map(|i| hashes[i]));
                &self.fresh
            }
            Repeats::IfAbsent => {
                for &hash in hashes {
                    if !filter.contains_hash(hash) {
                        let inserted = filter.try_insert_hash(hash);
                        inserted.map_err(|error| {
                            full(output, filter.plan().kind(), &error, self.advice)
                        })?;
                    }
                }
                return Ok(());
            }
        };
        self.answers.resize(hashes.len().div_ceil(64), 0);
        let inserted = filter.try_insert_hashes(hashes, &mut self.answers);
        inserted.map_err(|error| full(output, filter.plan().kind(), &error, self.advice))
    }
}
