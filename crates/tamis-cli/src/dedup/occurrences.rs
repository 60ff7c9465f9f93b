//! Records that can be decided on only when all have been read: counts, and lines that occur once.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use tamis::Answers;

use super::cut::{Cut, Place, Rule};
use super::cuts::Cuts;
use super::stats::Stats;
use super::tally::Tally;
use crate::exit::Failure;
use crate::input;
use crate::output::Output;
use crate::progress::Progress;

/// A run that counts.
pub struct Run {
    /// What counts.
    pub tally: Tally,
    /// What is compared.
    pub rule: Rule,
    /// Where the records go.
    pub output: Output,
    /// Threads to use; unsaid, all that help.
    pub threads: Option<NonZeroUsize>,
    /// Whether counts are written before records.
    pub with_counts: bool,
    /// Records that occur so often are written.
    pub counts: RangeInclusive<u64>,
}

impl Run {
    /// Reads all inputs, then writes.
    ///
    /// # Errors
    ///
    /// Those of reading and writing, and of records that do not fit.
    pub fn run(self, paths: &[PathBuf]) -> Result<Stats, Failure> {
        let Self { mut tally, rule, mut output, threads, with_counts, counts } = self;
        let mut stats = Stats::default();
        let mut progress = Progress::new(input::total_len_bytes(paths));
        let delimiter = rule.delimiter;
        let mut cuts = Cuts::<u64>::new(paths, Place::default(), rule, threads);
        let (mut cut, mut new) = (Cut::default(), Answers::new());
        while cuts.next(&mut cut)? {
            for batch in cut.batches() {
                tally.insert_batch(&batch, &mut new)?;
            }
            stats.add(&cut);
            progress.at(cut.consumed_bytes);
        }
        tally.each(|record, count| {
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
        stats.set_worth(tally.worth());
        output.finish()?;
        Ok(stats)
    }
}
