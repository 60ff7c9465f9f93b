//! Counts the occurrences of records, for results that need all records: counts, and lines that
//! occur once.

use std::path::PathBuf;

use tamis::{Answers, Hasher};

use crate::commands::dedup::digest::Width;
use crate::commands::dedup::key_set::{Keep, KeySet};
use crate::commands::dedup::record_batch::BatchPart;
use crate::commands::dedup::seen::Budget;
use crate::commands::dedup::spill::Spill;
use crate::commands::dedup::stats::RunStats;
use crate::exit::Failure;
use crate::io::progress::Progress;

/// The records read so far, and the number of occurrences of each record.
pub struct Counts {
    /// The records that are counted exactly. The set is empty after the records have exceeded the
    /// memory.
    pub set: KeySet,
    // Holds all records after they have exceeded the memory.
    spill: Option<Spill>,
    budget: Budget,
    hasher: Hasher,
    // The folder for the temporary file, which holds records that exceed the memory.
    folder: PathBuf,
}

impl Counts {
    /// Creates an empty set. `hasher` is the hasher that computed the digests of the records.
    /// Records that exceed the memory go to a file in `folder`.
    pub fn new(budget: Budget, hasher: Hasher, folder: PathBuf) -> Self {
        let set = KeySet::new(Keep::Record, budget.max_bytes);
        Self { set, spill: None, budget, hasher, folder }
    }

    /// Counts the records of a batch. If the counts became approximate, writes a message to the
    /// user.
    ///
    /// # Errors
    ///
    /// Returns an error if the records exceed the memory and the counts must stay exact, or if the
    /// disk is full.
    pub fn insert_batch<D: Width>(
        &mut self,
        part: &BatchPart<'_, D>,
        new: &mut Answers,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let mut from = 0;
        if self.spill.is_none() {
            match self.set.insert_batch(part, new) {
                Ok(()) => return Ok(()),
                Err((_, failure)) if self.budget.is_exact => return Err(failure),
                Err((done, _)) => from = done,
            }
            progress.say(&format!(
                "{} distinct records fill the memory: going on approximately, with the records in \
                 a temporary file",
                self.set.len()
            ));
            let hash = |key: &[u8], is_key: bool| {
                let digest = u64::digest(&self.hasher, key);
                if is_key { digest } else { digest.keyless() }
            };
            let set = std::mem::replace(&mut self.set, KeySet::new(Keep::Record, 0));
            self.spill = Some(Spill::new(set, &self.folder, self.budget, hash)?);
        }
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let hashes: Vec<u64> = part.digests()[from..].iter().map(|it| it.hash64()).collect();
        spill.insert_each(&hashes, |i| part.record(from + i))
    }

    /// Calls `each` with every record and its count, in first-seen order.
    ///
    /// # Errors
    ///
    /// Returns the errors of the temporary file and of `each`.
    pub fn each(
        &mut self,
        mut each: impl FnMut(&[u8], u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match &mut self.spill {
            None => self.set.each(|entry| each(entry.record, entry.count)),
            Some(spill) => spill.each(each),
        }
    }

    /// Adds the accuracy of the counts to the statistics.
    pub fn finish(&self, stats: &mut RunStats) {
        let (accuracy, wrong) = match &self.spill {
            None => (self.set.accuracy(), 0.0),
            Some(spill) => spill.accuracy(),
        };
        stats.set_accuracy(accuracy);
        stats.expected_wrong = wrong;
    }
}
