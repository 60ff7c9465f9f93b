//! The first half of the work: reads inputs, splits them into records and hashes the records.
//!
//! A second thread does this if the input is large enough. Reading and hashing take about as long
//! as comparing hashes, and a quarter of the time of comparing whole keys.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::cut::{Cut, Place, Rule};
use super::digest::Width;
use crate::ahead::Ahead;
use crate::exit::Failure;
use crate::input::Input;
use crate::records::{BLOCK_BYTES, Blocks};

/// The records of the inputs, in order, split and hashed.
pub struct Cuts<D> {
    ahead: Ahead<Cut<D>, Failure>,
    threads: usize,
    read_bytes: usize,
}

impl<D: Width> Cuts<D> {
    /// Creates a reader of the inputs `paths` that starts at the position `from`.
    pub fn new(paths: &[PathBuf], from: Place, rule: Rule, threads: Option<NonZeroUsize>) -> Self {
        let threads = threads.map_or_else(useful_threads, NonZeroUsize::get);
        let mut cutter = Cutter {
            rule,
            paths: paths.to_vec(),
            place: from,
            blocks: None,
            is_unpacked_ahead: threads >= MOST_THREADS,
            done_bytes: 0,
            scratch: Vec::new(),
        };
        Self { ahead: Ahead::new(move |cut| cutter.cut(cut)), threads, read_bytes: 0 }
    }

    /// Reads the next records into `cut`. Returns false at the end of the inputs.
    ///
    /// # Errors
    ///
    /// An input that cannot be read.
    pub fn next(&mut self, cut: &mut Cut<D>) -> Result<bool, Failure> {
        // Starting a thread takes longer than reading one block. A terminal or `tail -f` does not
        // keep a thread busy.
        if self.read_bytes >= BLOCK_BYTES && self.threads > 1 {
            self.ahead.start();
        }
        let is_there = self.ahead.next(cut)?;
        self.read_bytes = self.read_bytes.saturating_add(cut.block.len());
        Ok(is_there)
    }
}

/// The maximum number of threads. One thread decompresses, one splits and hashes, one compares and
/// writes. A fourth thread for writing gave little on two processors (1.45 s instead of 1.48 s).
const MOST_THREADS: usize = 3;

/// Returns the useful number of threads. It can exceed the number of processors: decompression
/// keeps one processor busy, and the other threads share the rest.
fn useful_threads() -> usize {
    let available = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    if available > 1 { MOST_THREADS } else { 1 }
}

struct Cutter {
    rule: Rule,
    paths: Vec<PathBuf>,
    place: Place,
    // The blocks of the input at `place`, if that input is open.
    blocks: Option<Blocks<Input>>,
    is_unpacked_ahead: bool,
    // The total size on disk of the inputs before `place`.
    done_bytes: u64,
    scratch: Vec<u8>,
}

impl Cutter {
    fn cut<D: Width>(&mut self, cut: &mut Cut<D>) -> Result<bool, Failure> {
        let delimiter = self.rule.delimiter;
        loop {
            let Some(path) = self.paths.get(self.place.input) else { return Ok(false) };
            if self.blocks.is_none() {
                let mut input = Input::open(path)?;
                if self.is_unpacked_ahead {
                    input = input.unpacked_ahead();
                }
                skip(&mut input, self.place.at_bytes)?;
                self.blocks = Some(Blocks::new(input, delimiter));
            }
            let blocks = self.blocks.as_mut().expect("opened above");
            let is_there = blocks.read_block(&mut cut.block);
            if is_there.map_err(|error| blocks.reader().failure(&error))? {
                break;
            }
            self.done_bytes += blocks.reader().len_bytes().unwrap_or(0);
            self.blocks = None;
            self.place = Place { input: self.place.input + 1, at_bytes: 0 };
        }
        let blocks = self.blocks.as_mut().expect("a block was read");
        let end = cut.find_records(delimiter);
        cut.may_wait = blocks.may_wait() && end == cut.block.len();
        blocks.take_back(&mut cut.block, end);
        cut.digest(&mut self.rule, &mut self.scratch);
        self.place.at_bytes += end as u64;
        cut.end = self.place;
        cut.consumed_bytes = self.done_bytes + blocks.reader().consumed_bytes();
        Ok(true)
    }
}

/// Skips the bytes that an earlier run has processed.
fn skip(input: &mut Input, len_bytes: u64) -> Result<(), Failure> {
    let mut rest = std::io::Read::take(&mut *input, len_bytes);
    let skipped = std::io::copy(&mut rest, &mut std::io::sink());
    match skipped.map_err(|error| input.failure(&error))? {
        skipped if skipped == len_bytes => Ok(()),
        skipped => Err(Failure::new(format!(
            "{}: ends at byte {skipped}, but an earlier run has read {len_bytes}; give it the same \
             input, or --restart",
            input.name()
        ))),
    }
}
