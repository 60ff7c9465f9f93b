//! Results that need all records: counts, and lines that occur once.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tamis::{Answers, Hasher};

use super::cut::{Cut, Place, Rule};
use super::cuts::Cuts;
use super::digest::Width as _;
use super::seen::Budget;
use super::spill::Spill;
use super::stats::Stats;
use super::tally::{Keep, Tally};
use crate::exit::Failure;
use crate::input;
use crate::output::Output;
use crate::progress::Progress;

/// A run that counts the occurrences of records.
pub struct Run {
    /// The memory limit, and the action at the limit.
    pub budget: Budget,
    /// The folder for records that exceed the memory.
    pub folder: PathBuf,
    /// The rule that extracts and hashes keys.
    pub rule: Rule,
    /// The output of the records.
    pub output: Output,
    /// The number of threads. `None` takes the useful number.
    pub threads: Option<NonZeroUsize>,
    /// If true, the count is written before each record.
    pub with_counts: bool,
    /// The range of counts of the records that are written.
    pub counts: RangeInclusive<u64>,
}

impl Run {
    /// Reads all inputs, then writes the records.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing, and records that exceed the memory.
    pub fn run(self, paths: &[PathBuf]) -> Result<Stats, Failure> {
        let Self { budget, folder, rule, mut output, threads, with_counts, counts } = self;
        let mut held = Held::Exact(Tally::new(Keep::Record, budget.max_bytes));
        let hasher = rule.hasher;
        let mut stats = Stats::default();
        let mut progress = Progress::new(input::total_len_bytes(paths));
        let delimiter = rule.delimiter;
        let mut cuts = Cuts::<u64>::new(paths, Place::default(), rule, threads);
        let (mut cut, mut new) = (Cut::default(), Answers::new());
        while cuts.next(&mut cut)? {
            for batch in cut.batches() {
                let mut from = 0;
                if let Held::Exact(tally) = &mut held {
                    match tally.insert_some(&batch, &mut new) {
                        Ok(()) => continue,
                        Err((_, failure)) if budget.is_exact => return Err(failure),
                        Err((done, _)) => from = done,
                    }
                    progress.say(&format!(
                        "{} distinct records fill the memory: going on approximately, with the records in a \
                         temporary file",
                        tally.len()
                    ));
                }
                let spill = held.spill(&folder, budget, hasher)?;
                let hashes = &batch.digests()[from..];
                spill.insert_each(hashes, |i| batch.record(from + i))?;
            }
            stats.add(&cut);
            progress.at(cut.consumed_bytes);
            if let (Held::Exact(tally), Some(total_bytes)) = (&mut held, progress.total_bytes()) {
                tally.set_expected(cut.expected_distinct(tally.len(), total_bytes));
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
            Held::Exact(tally) => stats.set_worth(tally.worth()),
            Held::Approx(spill) => {
                let (worth, wrong) = spill.worth();
                stats.set_worth(worth);
                stats.expected_wrong = wrong;
            }
        }
        output.finish()?;
        Ok(stats)
    }
}

/// The set of the records read so far.
enum Held {
    Exact(Tally),
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
        if let Held::Exact(tally) = self {
            let tally = std::mem::replace(tally, Tally::new(Keep::Record, 0));
            let hash = |key: &[u8], is_key: bool| {
                let digest = u64::digest(&hasher, key);
                if is_key { digest } else { digest.keyless() }
            };
            *self = Held::Approx(Box::new(Spill::new(tally, folder, budget, hash)?));
        }
        match self {
            Held::Approx(spill) => Ok(spill),
            Held::Exact(_) => unreachable!("replaced above"),
        }
    }

    fn each(&mut self, each: impl FnMut(&[u8], u64) -> Result<(), Failure>) -> Result<(), Failure> {
        match self {
            Held::Exact(tally) => tally.each(each),
            Held::Approx(spill) => spill.each(each),
        }
    }
}
