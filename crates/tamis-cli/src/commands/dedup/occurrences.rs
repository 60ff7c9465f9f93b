//! Results that need all records: counts, and lines that occur once.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tamis::{Answers, Hasher};

use crate::commands::dedup::batch_reader::BatchReader;
use crate::commands::dedup::digest::Width as _;
use crate::commands::dedup::key_set::{Keep, KeySet};
use crate::commands::dedup::record_batch::{Header, RecordBatch, RecordRule};
use crate::commands::dedup::seen::Budget;
use crate::commands::dedup::spill::Spill;
use crate::commands::dedup::stats::RunStats;
use crate::commands::dedup::stream::write_header;
use crate::exit::Failure;
use crate::io::input;
use crate::io::output::Output;
use crate::io::progress::Progress;
use crate::records::record_reader::InputPosition;

/// A run that counts the occurrences of records.
pub struct CountingRun {
    /// The memory limit, and the action at the limit.
    pub budget: Budget,
    /// The folder for records that exceed the memory.
    pub folder: PathBuf,
    /// The rule that extracts and hashes keys.
    pub rule: RecordRule,
    /// The output of the records.
    pub output: Output,
    /// The number of threads. `None` takes the useful number.
    pub threads: Option<NonZeroUsize>,
    /// If true, the count is written before each record.
    pub with_counts: bool,
    /// The range of counts of the records that are written.
    pub counts: RangeInclusive<u64>,
}

impl CountingRun {
    /// Reads all inputs, then writes the records.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing, and records that exceed the memory.
    pub fn run(self, paths: &[PathBuf]) -> Result<RunStats, Failure> {
        let Self { budget, folder, rule, mut output, threads, with_counts, counts } = self;
        let mut held = Held::Exact(KeySet::new(Keep::Record, budget.max_bytes));
        let hasher = rule.hasher;
        let key = rule.key.describe();
        let mut stats = RunStats::default();
        let mut progress = Progress::new(input::total_len_bytes(paths));
        let delimiter = rule.form.end.byte();
        let mut reader = BatchReader::<u64>::new(paths, InputPosition::default(), rule, threads);
        let (mut batch, mut new) = (RecordBatch::default(), Answers::new());
        while reader.next(&mut batch)? {
            if batch.header == Some(Header::Written) {
                if with_counts {
                    output.write(format!("{:>7} ", "").as_bytes())?;
                }
                write_header(&mut output, &batch.block)?;
            }
            for part in batch.parts() {
                let mut from = 0;
                if let Held::Exact(set) = &mut held {
                    match set.insert_batch(&part, &mut new) {
                        Ok(()) => continue,
                        Err((_, failure)) if budget.is_exact => return Err(failure),
                        Err((done, _)) => from = done,
                    }
                    progress.say(&format!(
                        "{} distinct records fill the memory: going on approximately, with the \
                         records in a temporary file",
                        set.len()
                    ));
                }
                let spill = held.spill(&folder, budget, hasher)?;
                let hashes = &part.digests()[from..];
                spill.insert_each(hashes, |i| part.record(from + i))?;
            }
            stats.add(&batch);
            progress.at(batch.consumed_bytes);
            if let (Held::Exact(set), Some(total_bytes)) = (&mut held, progress.total_bytes()) {
                set.set_expected(batch.expected_distinct(set.len(), total_bytes));
            }
        }
        held.each(|record, count| {
            if counts.contains(&count) {
                stats.written += 1;
                if with_counts {
                    output.write(format!("{count:>7} ").as_bytes())?;
                }
                output.write(record)?;
                output.write(&[delimiter])?;
            }
            Ok(())
        })?;
        stats.bytes_written = output.written_bytes();
        match &held {
            Held::Exact(set) => stats.set_accuracy(set.accuracy()),
            Held::Approx(spill) => {
                let (accuracy, wrong) = spill.accuracy();
                stats.set_accuracy(accuracy);
                stats.expected_wrong = wrong;
            }
        }
        if let Err(failure) = stats.check(&key) {
            // The reader of a pipe gets the records.
            output.flush().ok();
            return Err(failure);
        }
        output.finish()?;
        Ok(stats)
    }
}

/// The set of the records read so far.
enum Held {
    Exact(KeySet),
    // Boxed because a filter and its plan are large.
    Approx(Box<Spill>),
}

impl Held {
    /// Returns the approximate counts. The first call moves the exact counts to the spill.
    fn spill(
        &mut self,
        folder: &Path,
        budget: Budget,
        hasher: Hasher,
    ) -> Result<&mut Spill, Failure> {
        if let Held::Exact(set) = self {
            let set = std::mem::replace(set, KeySet::new(Keep::Record, 0));
            let hash = |key: &[u8], is_key: bool| {
                let digest = u64::digest(&hasher, key);
                if is_key { digest } else { digest.keyless() }
            };
            *self = Held::Approx(Box::new(Spill::new(set, folder, budget, hash)?));
        }
        match self {
            Held::Approx(spill) => Ok(spill),
            Held::Exact(_) => unreachable!("replaced above"),
        }
    }

    fn each(
        &mut self,
        mut each: impl FnMut(&[u8], u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Held::Exact(set) => set.each(|entry| each(entry.record, entry.count)),
            Held::Approx(spill) => spill.each(each),
        }
    }
}
