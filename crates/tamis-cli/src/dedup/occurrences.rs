//! Records that can be decided on only when all have been read: counts, and lines that occur once.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use tamis::Answers;

use super::batch::{Keys, each_batch};
use super::stats::Stats;
use super::tally::Tally;
use crate::exit::Failure;
use crate::input::{self, Input};
use crate::output::Output;
use crate::progress::Progress;
use crate::records::Blocks;

/// A run that counts.
pub struct Run {
    /// What counts.
    pub tally: Tally,
    /// What is compared.
    pub keys: Keys,
    /// Where the records go.
    pub output: Output,
    /// The byte that ends a record.
    pub delimiter: u8,
    /// Whether reading has a thread of its own.
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
    pub fn run(mut self, paths: &[PathBuf]) -> Result<Stats, Failure> {
        let mut stats = Stats::default();
        let mut progress = Progress::new(input::total_len_bytes(paths));
        let (mut bounds, mut new) = (Vec::new(), Answers::new());
        let mut before_bytes = 0;
        for path in paths {
            let input = Input::open(path)?.on_threads(self.threads)?;
            let name = input.name().to_string();
            let mut blocks = Blocks::new(input, self.delimiter);
            loop {
                let block = blocks.next_block().map_err(|error| input::failure(&name, &error))?;
                let Some(block) = block else { break };
                stats.bytes_read += block.len() as u64;
                each_batch(block, self.delimiter, &mut bounds, |batch| {
                    stats.records += batch.len() as u64;
                    self.tally.insert_batch(&mut self.keys, batch, &mut new)
                })?;
                progress.at(before_bytes + blocks.reader().consumed_bytes());
            }
            before_bytes += blocks.reader().len_bytes().unwrap_or(0);
        }
        let Self { tally, output, with_counts, counts, delimiter, .. } = &mut self;
        tally.each(|record, count| {
            if counts.contains(&count) {
                stats.written += 1;
                if *with_counts {
                    output.write(format!("{count:>7} ").as_bytes())?;
                }
                output.write(record)?;
                output.write(&[*delimiter])?;
            }
            Ok(())
        })?;
        stats.keyless = self.keys.keyless;
        stats.bytes_written = self.output.written_bytes();
        stats.set_worth(self.tally.worth());
        self.output.finish()?;
        Ok(stats)
    }
}
