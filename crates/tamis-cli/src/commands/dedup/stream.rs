//! A run over the inputs. The run decides on each record when it reads the record (first
//! occurrences, or repeats), or writes the counted records at the end.

use std::path::PathBuf;

use tamis::Answers;

use crate::arguments::numbers::HumanCount;
use crate::commands::dedup::batch_reader::BatchReader;
use crate::commands::dedup::deduplicator::Deduplicator;
use crate::commands::dedup::digest::Width;
use crate::commands::dedup::record_batch::{BatchPart, RecordBatch};
use crate::commands::dedup::state::{Checkpoint, StateFile, failure};
use crate::commands::dedup::stats::{NOTABLE_LOSS, RunStats, shown};
use crate::commands::dedup::{Args, Repeated};
use crate::exit::Failure;
use crate::io::input;
use crate::io::output::Output;
use crate::io::progress::Progress;
use crate::records::record_reader::InputPosition;

/// The default number of bytes of input between two checkpoints of a state.
const CHECKPOINT_BYTES: u64 = 256 << 20;

/// The start of a run with a state.
pub(super) struct Resumed {
    /// The output. If the run resumes a killed run, the output continues the output of that run.
    pub output: Output,
    /// The state. The run has already begun in the state.
    pub state: StateFile,
    /// The position from which the run continues.
    pub from: Checkpoint,
}

struct DedupRun<'a, D: Width> {
    args: &'a Args,
    deduplicator: Deduplicator<D>,
    output: Output,
    // The output of records that were dropped because of an approximate result.
    suspects: Option<Output>,
    state: Option<StateFile>,
    checkpoint: Checkpoint,
    stats: RunStats,
    progress: Progress,
    new: Answers,
    again: Answers,
    is_warned: bool,
}

impl Args {
    /// Reads all inputs, writes the output and syncs the output to the disk.
    ///
    /// # Errors
    ///
    /// Returns errors of reading and writing, and an error if a set exceeds the memory.
    pub(super) fn stream<D: Width>(
        &self,
        inputs: &[PathBuf],
        deduplicator: Deduplicator<D>,
        resumed: Option<Resumed>,
    ) -> Result<RunStats, Failure> {
        let (output, state, from) = match resumed {
            Some(Resumed { output, state, from }) => (output, Some(state), from),
            None => (Output::open(self.output.as_deref())?, None, Checkpoint::default()),
        };
        let run = DedupRun {
            args: self,
            deduplicator,
            output,
            suspects: self.suspects.as_deref().map(|path| Output::open(Some(path))).transpose()?,
            state,
            stats: RunStats { records: from.records, written: from.written, ..RunStats::default() },
            checkpoint: from,
            progress: Progress::new(input::total_len_bytes(inputs)),
            new: Answers::new(),
            again: Answers::new(),
            is_warned: false,
        };
        run.run(inputs)
    }
}

impl<D: Width> DedupRun<'_, D> {
    fn run(mut self, inputs: &[PathBuf]) -> Result<RunStats, Failure> {
        let read = self.pass(inputs);
        // A run that counts prints its list at the end: before the end, its output is empty.
        let is_begun = read.is_ok() || !self.deduplicator.is_counting();
        let done = read.and_then(|()| self.write_counts());
        let key = self.args.key_rule().describe();
        if let Err(failure) = done.and_then(|()| self.stats.check(&key)) {
            // A reader of a pipe gets all records that the run has already decided to print.
            if is_begun {
                self.output.flush().ok();
            }
            self.output.abandon();
            return Err(failure);
        }
        self.stats.bytes_written = self.output.written_bytes();
        self.deduplicator.finish(&mut self.stats, self.args.repeated.is_some());
        if let Some(mut suspects) = self.suspects {
            suspects.sync()?;
            self.output.sync()?;
            suspects.finish()?;
        }
        let Some(state) = self.state else {
            self.output.finish()?;
            return Ok(self.stats);
        };
        // The output must be on disk before the end of the run is written to the state.
        let end = Checkpoint {
            input: inputs.len(),
            at_bytes: 0,
            output: self.output.mark()?,
            records: self.stats.records,
            written: self.stats.written,
            ..self.checkpoint
        };
        self.output.finish()?;
        state.finish(&end).map_err(failure)?;
        Ok(self.stats)
    }

    fn pass(&mut self, inputs: &[PathBuf]) -> Result<(), Failure> {
        let Checkpoint { input, at_bytes, .. } = self.checkpoint;
        let from = InputPosition { input, at_bytes };
        self.save_checkpoint(from)?;
        let mut reader = BatchReader::new(inputs, from, self.args.rule(), self.args.threads());
        let mut batch = RecordBatch::default();
        let checkpoint_bytes = self.args.checkpoint.map_or(CHECKPOINT_BYTES, |size| size.bytes);
        let mut since_bytes = 0;
        // A resumed run does not count the records and the bytes before its checkpoint, so the
        // number of distinct records cannot be estimated.
        let total_bytes = self.progress.total_bytes().filter(|_| from == InputPosition::default());
        let distinct_before = self.deduplicator.distinct();
        while reader.next(&mut batch)? {
            if batch.is_output_header {
                self.write_header(&batch.block)?;
            }
            batch.parts().try_for_each(|part| self.write_part(&part))?;
            if batch.may_wait && !self.deduplicator.is_counting() {
                // If the input arrives in small pieces, as from `tail -f`, the run writes each
                // result at once.
                self.output.flush()?;
            }
            self.stats.add(&batch);
            self.progress.at(batch.consumed_bytes);
            self.warn();
            if let Some(total_bytes) = total_bytes {
                let found = self.deduplicator.distinct().saturating_sub(distinct_before);
                let expected = batch.expected_distinct(found, total_bytes);
                self.deduplicator.set_expected(distinct_before.saturating_add(expected));
            }
            since_bytes += batch.block.len() as u64;
            if since_bytes >= checkpoint_bytes.max(1) {
                self.save_checkpoint(batch.end)?;
                since_bytes = 0;
            }
        }
        Ok(())
    }

    fn write_part(&mut self, part: &BatchPart<'_, D>) -> Result<(), Failure> {
        let Self { deduplicator, output, new, again, .. } = self;
        deduplicator.insert_batch(part, new, again, &self.progress)?;
        let len = part.len();
        self.stats.written += match self.args.repeated {
            _ if matches!(deduplicator, Deduplicator::Counts(_)) => 0,
            None => write(output, part, new.words().iter().copied())?,
            Some(Repeated::All) => write(output, part, inverted(new, len))?,
            Some(Repeated::Once) => write(output, part, again.words().iter().copied())?,
        };
        if let (Some(suspects), true) = (&mut self.suspects, deduplicator.is_approximate()) {
            write(suspects, part, inverted(new, len))?;
        }
        match &mut self.state {
            Some(state) => state.remember(new.ones().map(|i| part.digests()[i])).map_err(failure),
            None => Ok(()),
        }
    }

    /// Writes the header of the first input. The suspects file gets the header too, because the
    /// file is the input of a second pass.
    fn write_header(&mut self, header: &[u8]) -> Result<(), Failure> {
        if self.args.count {
            self.output.write(format!("{:>7} ", "").as_bytes())?;
        }
        for output in std::iter::once(&mut self.output).chain(&mut self.suspects) {
            output.write(header)?;
            if !header.ends_with(b"\n") {
                output.write(b"\n")?;
            }
        }
        Ok(())
    }

    /// Writes the counted records that occur as often as the options require.
    fn write_counts(&mut self) -> Result<(), Failure> {
        let Deduplicator::Counts(counts) = &mut self.deduplicator else { return Ok(()) };
        let wanted = match (self.args.unique, self.args.repeated) {
            (true, _) => 1..=1,
            (false, Some(_)) => 2..=u64::MAX,
            (false, None) => 1..=u64::MAX,
        };
        let delimiter = self.args.form().end.byte();
        counts.each(|record, count| {
            if wanted.contains(&count) {
                self.stats.written += 1;
                if self.args.count {
                    self.output.write(format!("{count:>7} ").as_bytes())?;
                }
                self.output.write(record)?;
                self.output.write(&[delimiter])?;
            }
            Ok(())
        })
    }

    /// Syncs the output to the disk, then appends a checkpoint at `position` to the state.
    fn save_checkpoint(&mut self, position: InputPosition) -> Result<(), Failure> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let Some(mark) = self.output.mark()? else { return Ok(()) };
        let InputPosition { input, at_bytes } = position;
        (self.checkpoint.input, self.checkpoint.at_bytes) = (input, at_bytes);
        self.checkpoint.output = Some(mark);
        self.checkpoint.records = self.stats.records;
        self.checkpoint.written = self.stats.written;
        state.checkpoint(&self.checkpoint).map_err(failure)
    }

    /// Writes one warning when the hashes are not wide enough for the number of records.
    fn warn(&mut self) {
        if self.is_warned {
            return;
        }
        let Some(accuracy) = self.deduplicator.accuracy_of_hashes() else { return };
        if accuracy.rates.is_none() && accuracy.expected_lost > NOTABLE_LOSS {
            self.is_warned = true;
            self.progress.say(&format!(
                "{} distinct records are too many for {}-bit hashes: {} new records are expected \
                 to have been dropped as repeats; --hash-bits 128 avoids this",
                HumanCount(accuracy.distinct),
                D::BITS,
                shown(accuracy.expected_lost),
            ));
        }
    }
}

/// Returns the inverted words of `answers`. Bits beyond `len` stay zero.
fn inverted(answers: &Answers, len: usize) -> impl Iterator<Item = u64> {
    answers.words().iter().enumerate().map(move |(i, word)| {
        let left = len - i * 64;
        !word & if left >= 64 { u64::MAX } else { (1 << left) - 1 }
    })
}

/// Writes the records of a batch whose bits in `mask` are set, and returns the number of written
/// records. Consecutive records are written together.
fn write<D: Width>(
    output: &mut Output,
    part: &BatchPart<'_, D>,
    mask: impl Iterator<Item = u64>,
) -> Result<u64, Failure> {
    let mut written = 0;
    let mut is_last_written = false;
    for (i, mut word) in mask.enumerate() {
        written += u64::from(word.count_ones());
        let mut from = i * 64;
        while word != 0 {
            let gap = word.trailing_zeros();
            word >>= gap;
            let run = word.trailing_ones();
            from += gap as usize;
            output.write(part.span(from, from + run as usize))?;
            from += run as usize;
            is_last_written = from == part.len();
            word = word.checked_shr(run).unwrap_or(0);
        }
    }
    if is_last_written && part.is_unterminated() {
        output.write(&[part.delimiter])?;
    }
    Ok(written)
}
