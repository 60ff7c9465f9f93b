//! Runs that decide on each record when they read it: first occurrences, or repeats.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use tamis::Answers;

use crate::arguments::numbers::HumanCount;
use crate::commands::dedup::batch_reader::BatchReader;
use crate::commands::dedup::digest::Width;
use crate::commands::dedup::key_set::KeySet;
use crate::commands::dedup::record_batch::{BatchPart, Header, RecordBatch, RecordRule};
use crate::commands::dedup::seen::{Accuracy, Seen};
use crate::commands::dedup::state::{Checkpoint, StateFile};
use crate::commands::dedup::stats::{RunStats, shown};
use crate::commands::dedup::window::Recent;
use crate::exit::Failure;
use crate::io::input;
use crate::io::output::Output;
use crate::io::progress::Progress;
use crate::records::record_reader::InputPosition;

/// The repeats that `--repeated` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Repeated {
    /// Each repeated line once, at its second occurrence
    Once,
    /// Every occurrence after the first
    All,
}

/// Decides which records are new.
pub enum Deduplicator<D: Width> {
    /// Compares digests.
    Digests {
        /// The keys that occurred.
        seen: Seen<D>,
        /// The keys that occurred again, if each repeat is written once.
        again: Option<Box<Seen<D>>>,
    },
    /// Compares whole keys.
    Full {
        /// The keys that occurred.
        seen: KeySet,
        /// The keys that occurred again, if each repeat is written once.
        again: Option<KeySet>,
    },
    /// Compares digests in a window.
    Window(Box<Recent<D>>),
}

/// A run over some inputs.
pub struct DedupRun<D: Width> {
    /// Decides which records are new.
    pub deduplicator: Deduplicator<D>,
    /// The repeats that are written. `None` writes the first occurrence of each key.
    pub repeated: Option<Repeated>,
    /// The output of the records.
    pub output: Output,
    /// The output of records that were dropped because of an approximate answer.
    pub suspects: Option<Output>,
    /// The state file, if there is one.
    pub state: Option<StateFile>,
    /// The number of bytes of input between two checkpoints.
    pub checkpoint_bytes: u64,
}

/// The inputs, and the way to read them.
pub struct Inputs<'a> {
    /// The inputs.
    pub paths: &'a [PathBuf],
    /// The rule that extracts and hashes keys.
    pub rule: RecordRule,
    /// The number of threads. `None` takes the useful number.
    pub threads: Option<NonZeroUsize>,
}

/// The counters and buffers of a run.
struct Work {
    stats: RunStats,
    progress: Progress,
    new: Answers,
    again: Answers,
    bytes: Vec<u8>,
    warned: bool,
}

/// The run reports expected losses above this number. At this number, one run in ten thousand loses
/// a record.
pub const NOTABLE_LOSS: f64 = 1e-4;

impl<D: Width> DedupRun<D> {
    /// Reads all inputs from the position `from`, writes the output and syncs it to the disk.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing, and a set that exceeds the memory.
    pub fn run(mut self, source: Inputs<'_>, from: Checkpoint) -> Result<RunStats, Failure> {
        let paths = source.paths;
        let mut work = Work {
            stats: RunStats { records: from.records, written: from.written, ..RunStats::default() },
            progress: Progress::new(input::total_len_bytes(paths)),
            new: Answers::new(),
            again: Answers::new(),
            bytes: Vec::new(),
            warned: false,
        };
        let mut end = Checkpoint { inputs: from.inputs.clone(), ..Checkpoint::default() };
        let key = source.rule.key.describe();
        let done = self.pass(source, from, &mut work);
        if let Err(failure) = done.and_then(|()| work.stats.check(&key)) {
            // The reader of a pipe gets the records that were decided.
            self.output.flush().ok();
            self.output.abandon();
            return Err(failure);
        }
        work.stats.bytes_written = self.output.written_bytes();
        if let Deduplicator::Window(recent) = &mut self.deduplicator {
            work.stats.window = Some(recent.finish());
        }
        let accuracy = self.deduplicator.accuracy();
        if self.repeated.is_some() {
            // A new record that is taken for a repeat is printed, although it occurs once.
            work.stats.expected_wrong = accuracy.expected_lost;
        }
        work.stats.set_accuracy(accuracy);
        if self.repeated.is_some() {
            // A repeat that is taken for a printed one is not printed.
            work.stats.expected_lost = self.deduplicator.expected_unprinted();
        }
        if let Some(mut suspects) = self.suspects {
            suspects.sync()?;
            self.output.sync()?;
            suspects.finish()?;
        }
        // The output must be on disk before the state that describes it.
        if self.state.is_some() {
            end.output = self.output.mark()?;
            (end.input, end.records, end.written) =
                (paths.len(), work.stats.records, work.stats.written);
        }
        self.output.finish()?;
        if let Some(state) = self.state {
            state.finish(&end)?;
        }
        Ok(work.stats)
    }

    fn pass(
        &mut self,
        source: Inputs<'_>,
        mut checkpoint: Checkpoint,
        work: &mut Work,
    ) -> Result<(), Failure> {
        let from = InputPosition { input: checkpoint.input, at_bytes: checkpoint.at_bytes };
        self.checkpoint(&mut checkpoint, work)?;
        let mut reader = BatchReader::new(source.paths, from, source.rule, source.threads);
        let mut batch = RecordBatch::default();
        let mut since_bytes = 0;
        // A resumed run does not count the records and the bytes before its checkpoint, so the
        // number of distinct records cannot be estimated.
        let total_bytes = work.progress.total_bytes().filter(|_| from == InputPosition::default());
        let distinct_before = self.deduplicator.distinct();
        while reader.next(&mut batch)? {
            if batch.header == Some(Header::Written) {
                // The suspects are the input of a second pass.
                for output in std::iter::once(&mut self.output).chain(&mut self.suspects) {
                    write_header(output, &batch.block)?;
                }
            }
            batch.parts().try_for_each(|part| self.write_part(&part, work))?;
            if batch.may_wait {
                // If the input arrives in small pieces, as from `tail -f`, each result is written
                // at once.
                self.output.flush()?;
            }
            work.stats.add(&batch);
            work.progress.at(batch.consumed_bytes);
            self.warn(work);
            if let Some(total_bytes) = total_bytes {
                let found = self.deduplicator.distinct() - distinct_before;
                let expected = batch.expected_distinct(found, total_bytes);
                self.deduplicator.set_expected(distinct_before.saturating_add(expected));
            }
            since_bytes += batch.block.len() as u64;
            if since_bytes >= self.checkpoint_bytes {
                (checkpoint.input, checkpoint.at_bytes) = (batch.end.input, batch.end.at_bytes);
                self.checkpoint(&mut checkpoint, work)?;
                since_bytes = 0;
            }
        }
        Ok(())
    }

    fn write_part(&mut self, part: &BatchPart<'_, D>, work: &mut Work) -> Result<(), Failure> {
        let Work { new, again, .. } = work;
        if let Some(line) = self.deduplicator.insert_batch(part, new, again)? {
            work.progress.say(&line);
        }
        let len = part.len();
        let written = match self.repeated {
            None => write(&mut self.output, part, new.words().iter().copied())?,
            Some(Repeated::All) => write(&mut self.output, part, inverted(new, len))?,
            Some(Repeated::Once) => write(&mut self.output, part, again.words().iter().copied())?,
        };
        work.stats.written += written;
        if let (Some(suspects), true) = (&mut self.suspects, self.deduplicator.is_approximate()) {
            write(suspects, part, inverted(new, len))?;
        }
        if let Some(state) = &mut self.state {
            work.bytes.clear();
            let digests = part.digests();
            new.ones().for_each(|i| work.bytes.extend_from_slice(digests[i].to_bytes().as_ref()));
            state.remember(&work.bytes)?;
        }
        Ok(())
    }

    /// Syncs the output to the disk, then appends a checkpoint to the state.
    fn checkpoint(&mut self, checkpoint: &mut Checkpoint, work: &Work) -> Result<(), Failure> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let Some(mark) = self.output.mark()? else { return Ok(()) };
        checkpoint.output = Some(mark);
        checkpoint.records = work.stats.records;
        checkpoint.written = work.stats.written;
        state.checkpoint(checkpoint)
    }

    /// Writes one warning when the hashes are not wide enough for the number of records.
    fn warn(&self, work: &mut Work) {
        if work.warned {
            return;
        }
        let accuracy = match &self.deduplicator {
            Deduplicator::Digests { seen, .. } => seen.accuracy(),
            Deduplicator::Window(recent) => recent.accuracy(),
            Deduplicator::Full { .. } => return,
        };
        if accuracy.rates.is_none() && accuracy.expected_lost > NOTABLE_LOSS {
            work.warned = true;
            work.progress.say(&format!(
                "{} distinct records are too many for {}-bit hashes: {} new records are expected \
                 to have been dropped as repeats; --hash-bits 128 avoids this",
                HumanCount(accuracy.distinct),
                D::BITS,
                shown(accuracy.expected_lost),
            ));
        }
    }
}

impl<D: Width> Deduplicator<D> {
    /// Sets the bits in `new` of the new records of a batch, and the bits in `again` of the first
    /// repeat of each key. Returns a message for the user if a set became a filter.
    fn insert_batch(
        &mut self,
        part: &BatchPart<'_, D>,
        new: &mut Answers,
        again: &mut Answers,
    ) -> Result<Option<String>, Failure> {
        match self {
            Deduplicator::Digests { seen, again: None } => seen.insert_each(part.digests(), new),
            Deduplicator::Digests { seen, again: Some(repeats) } => {
                let digests = part.digests();
                let of_seen = seen.insert_each(digests, new)?;
                let places: Vec<usize> = new.zeros().collect();
                let repeated: Vec<D> = places.iter().map(|&i| digests[i]).collect();
                let mut first = Answers::new();
                let of_repeats = repeats.insert_each(&repeated, &mut first)?;
                again.reset(part.len());
                first.ones().for_each(|i| again.set(places[i], true));
                Ok(of_seen.or(of_repeats))
            }
            Deduplicator::Full { seen, again: repeats } => {
                seen.insert_batch(part, new).map_err(|(_, failure)| failure)?;
                match repeats {
                    None => Ok(None),
                    Some(repeats) => repeats.insert_repeats(part, new, again).map(|()| None),
                }
            }
            Deduplicator::Window(recent) => {
                recent.insert_each(part.slice, part.digests(), new).map(|()| None)
            }
        }
    }

    /// Returns the number of distinct records. Returns zero for a window, which forgets records.
    fn distinct(&self) -> u64 {
        match self {
            Deduplicator::Digests { seen, .. } => seen.distinct(),
            Deduplicator::Full { seen, .. } => seen.len(),
            Deduplicator::Window(_) => 0,
        }
    }

    /// Sets the expected number of distinct records. No effect on a window, or on the set of
    /// repeats.
    fn set_expected(&mut self, distinct: u64) {
        match self {
            Deduplicator::Digests { seen, .. } => seen.set_expected(distinct),
            Deduplicator::Full { seen, .. } => seen.set_expected(distinct),
            Deduplicator::Window(_) => {}
        }
    }

    /// Returns the expected number of repeated lines that were not printed, because they were
    /// mistaken for lines that had been printed.
    fn expected_unprinted(&self) -> f64 {
        match self {
            Deduplicator::Digests { again: Some(again), .. } => again.accuracy().expected_lost,
            _ => 0.0,
        }
    }

    fn is_approximate(&self) -> bool {
        matches!(self, Deduplicator::Digests { seen, .. } if seen.is_approximate())
    }

    fn accuracy(&self) -> Accuracy {
        let (mut accuracy, more_bytes) = match self {
            Deduplicator::Digests { seen, again } => {
                (seen.accuracy(), again.as_ref().map(|again| again.accuracy().memory_bytes))
            }
            Deduplicator::Full { seen, again } => {
                (seen.accuracy(), again.as_ref().map(|again| again.accuracy().memory_bytes))
            }
            Deduplicator::Window(recent) => (recent.accuracy(), None),
        };
        accuracy.memory_bytes += more_bytes.unwrap_or(0);
        accuracy
    }
}

/// Writes a header of CSV.
pub fn write_header(output: &mut Output, header: &[u8]) -> Result<(), Failure> {
    output.write(header)?;
    if header.ends_with(b"\n") { Ok(()) } else { output.write(b"\n") }
}

/// Returns the inverted words of `answers`. Bits beyond `len` stay zero.
fn inverted(answers: &Answers, len: usize) -> impl Iterator<Item = u64> {
    answers.words().iter().enumerate().map(move |(i, word)| {
        let left = len - i * 64;
        !word & if left >= 64 { u64::MAX } else { (1 << left) - 1 }
    })
}

/// Writes the records of a batch whose bits in `mask` are set, and returns their number.
/// Consecutive records are written together.
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
