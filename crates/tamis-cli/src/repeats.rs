//! What a repeated item is to a filter that counts: `--once` and `--copies`.

use std::path::Path;

use tamis::{Answers, AnyFilter, Filter as _, Kind, TryInsert as _};

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
    /// Not at all if the filter answers that it has it.
    Absent,
}

/// Options about repeats, alike in `build` and `add`.
#[derive(clap::Args, Debug)]
pub struct RepeatArgs {
    /// Into a counting or cuckoo filter: a line that the filter has, or takes for one it has, is not inserted again
    #[arg(long)]
    pub once: bool,

    /// Into a cuckoo filter: a repeated line is inserted each time, for users who delete as often as they add. At most
    /// four copies fit
    #[arg(long, conflicts_with = "once")]
    pub copies: bool,
}

impl RepeatArgs {
    /// Returns how often items are inserted into a filter of this kind.
    ///
    /// # Errors
    ///
    /// An option for kinds that count, with another kind.
    pub fn of(&self, kind: Option<Kind>) -> Result<Repeats, Failure> {
        let counts = kind.is_some_and(Kind::can_remove);
        match (self.once, self.copies) {
            (true, _) | (_, true) if !counts => {
                let option = if self.once { "--once" } else { "--copies" };
                let kinds = "is for counting and cuckoo filters: others do not count";
                Err(Failure::new(format!("{option} {kinds}")))
            }
            (true, _) => Ok(Repeats::Absent),
            (_, true) => Ok(Repeats::Each),
            // Repeats of one item fill its two buckets.
            _ if kind == Some(Kind::Cuckoo) => Ok(Repeats::Once),
            _ => Ok(Repeats::Each),
        }
    }
}

/// Inserts the items of a command into its filter.
pub struct Inserter {
    repeats: Repeats,
    seen: SecretSet,
    new: Answers,
    fresh: Vec<u64>,
    answers: Vec<u64>,
}

impl Inserter {
    /// Creates an inserter that remembers hashes, if it must, in at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn new(repeats: Repeats, max_bytes: u64) -> Result<Self, Failure> {
        let (new, fresh, answers) = (Answers::new(), Vec::new(), Vec::new());
        Ok(Self { repeats, seen: SecretSet::within(max_bytes)?, new, fresh, answers })
    }

    /// Inserts hashes in order into the filter that goes to `output`.
    ///
    /// # Errors
    ///
    /// If there is no room, in the filter or for the hashes to remember.
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
                        "finding repeats among over {} distinct items takes more memory than --memory allows: leave them \
                         to the filter with --once",
                        Count(self.seen.len())
                    ))
                })?;
                self.fresh.clear();
                self.fresh.extend(self.new.ones().map(|i| hashes[i]));
                &self.fresh
            }
            Repeats::Absent => {
                for &hash in hashes {
                    if !filter.contains_hash(hash) {
                        filter.try_insert_hash(hash).map_err(|error| full(output, &error))?;
                    }
                }
                return Ok(());
            }
        };
        self.answers.resize(hashes.len().div_ceil(64), 0);
        filter.try_insert_hashes(hashes, &mut self.answers).map_err(|error| full(output, &error))
    }
}
