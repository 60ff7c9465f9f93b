//! Decides which records are new.

use tamis::Answers;

use crate::commands::dedup::digest::Width;
use crate::commands::dedup::key_set::KeySet;
use crate::commands::dedup::occurrences::Counts;
use crate::commands::dedup::record_batch::BatchPart;
use crate::commands::dedup::seen::{Accuracy, Seen};
use crate::commands::dedup::stats::RunStats;
use crate::commands::dedup::window::Recent;
use crate::exit::Failure;
use crate::io::progress::Progress;

/// Decides which records are new.
pub enum Deduplicator<D: Width> {
    /// Compares digests.
    Digests {
        /// The keys that occurred at least once.
        seen: Seen<D>,
        /// The keys that occurred at least twice, if each repeat is written once.
        again: Option<Box<Seen<D>>>,
    },
    /// Compares whole keys.
    Full {
        /// The keys that occurred at least once.
        seen: KeySet,
        /// The keys that occurred at least twice, if each repeat is written once.
        again: Option<KeySet>,
    },
    /// Compares digests in a window.
    Window(Box<Recent<D>>),
    /// Counts the records. The run writes the records at its end.
    Counts(Box<Counts>),
}

impl<D: Width> Deduplicator<D> {
    /// Tests whether the run writes its records only at its end.
    pub fn is_counting(&self) -> bool {
        matches!(self, Self::Counts(_))
    }

    /// Sets the bits in `new` of the new records of a batch, and the bits in `again` of the first
    /// repeat of each key. If a set became a filter, writes a message for the user.
    ///
    /// # Errors
    ///
    /// Returns an error if a set exceeds the memory and must stay exact.
    pub fn insert_batch(
        &mut self,
        part: &BatchPart<'_, D>,
        new: &mut Answers,
        again: &mut Answers,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let said = match self {
            Deduplicator::Digests { seen, again: None } => seen.insert_each(part.digests(), new)?,
            Deduplicator::Digests { seen, again: Some(repeats) } => {
                let digests = part.digests();
                let of_seen = seen.insert_each(digests, new)?;
                let places: Vec<usize> = new.zeros().collect();
                let repeated: Vec<D> = places.iter().map(|&i| digests[i]).collect();
                let mut first = Answers::new();
                let of_repeats = repeats.insert_each(&repeated, &mut first)?;
                again.reset(part.len());
                first.ones().for_each(|i| again.set(places[i], true));
                of_seen.or(of_repeats)
            }
            Deduplicator::Full { seen, again: repeats } => {
                seen.insert_batch(part, new).map_err(|(_, failure)| failure)?;
                if let Some(repeats) = repeats {
                    repeats.insert_repeats(part, new, again)?;
                }
                None
            }
            Deduplicator::Window(recent) => {
                recent.insert_each(part.slice, part.digests(), new)?;
                None
            }
            Deduplicator::Counts(counts) => {
                counts.insert_batch(part, new, progress)?;
                None
            }
        };
        if let Some(line) = said {
            progress.say(&line);
        }
        Ok(())
    }

    /// Returns the number of distinct records. Returns zero for a window, because a window drops
    /// old records.
    pub fn distinct(&self) -> u64 {
        match self {
            Deduplicator::Digests { seen, .. } => seen.distinct(),
            Deduplicator::Full { seen, .. } => seen.len(),
            Deduplicator::Counts(counts) => counts.set.len(),
            Deduplicator::Window(_) => 0,
        }
    }

    /// Sets the expected number of distinct records. The call has no effect on a window, or on the
    /// set of repeats.
    pub fn set_expected(&mut self, distinct: u64) {
        match self {
            Deduplicator::Digests { seen, .. } => seen.set_expected(distinct),
            Deduplicator::Full { seen, .. } => seen.set_expected(distinct),
            Deduplicator::Counts(counts) => counts.set.set_expected(distinct),
            Deduplicator::Window(_) => {}
        }
    }

    /// Tests whether the result is approximate. An approximate run may drop a new record by
    /// mistake.
    pub fn is_approximate(&self) -> bool {
        matches!(self, Deduplicator::Digests { seen, .. } if seen.is_approximate())
    }

    /// Returns the accuracy of the hashes, or `None` if whole keys are compared.
    pub fn accuracy_of_hashes(&self) -> Option<Accuracy> {
        match self {
            Deduplicator::Digests { seen, .. } => Some(seen.accuracy()),
            Deduplicator::Window(recent) => Some(recent.accuracy()),
            Deduplicator::Full { .. } | Deduplicator::Counts(_) => None,
        }
    }

    /// Adds the accuracy of the run to the statistics. `prints_repeats` is true if the run prints
    /// repeats.
    pub fn finish(&mut self, stats: &mut RunStats, prints_repeats: bool) {
        let (mut accuracy, again) = match self {
            Deduplicator::Digests { seen, again } => {
                (seen.accuracy(), again.as_ref().map(|again| again.accuracy()))
            }
            Deduplicator::Full { seen, again } => {
                (seen.accuracy(), again.as_ref().map(KeySet::accuracy))
            }
            Deduplicator::Window(recent) => {
                stats.window = Some(recent.finish());
                (recent.accuracy(), None)
            }
            Deduplicator::Counts(counts) => return counts.finish(stats),
        };
        // A repeat is not printed if its hash equals the hash of a repeat that was printed.
        let unprinted = again.as_ref().map_or(0.0, |again| again.expected_lost);
        accuracy.memory_bytes += again.map_or(0, |again| again.memory_bytes);
        if prints_repeats {
            // A new record is printed as a repeat if its hash equals the hash of an earlier record.
            stats.expected_wrong = std::mem::replace(&mut accuracy.expected_lost, unprinted);
        }
        stats.set_accuracy(accuracy);
    }
}
