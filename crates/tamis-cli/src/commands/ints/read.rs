//! Reads integers from files and standard input, one block at a time: decimal text or binary. A
//! second thread reads while the first thread processes the integers.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use memchr::memchr_iter;

use crate::commands::ints::decimal;
use crate::exit::Failure;
use crate::io::input::{self, Input, InputForm};
use crate::io::prefetcher::Prefetcher;
use crate::io::progress::Progress;
use crate::io::read::read_some;

/// The encoding of integers in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum IntFormat {
    /// Decimal, separated by newlines or other white space
    #[default]
    Text,
    /// Binary, 4 bytes each, little-endian
    U32,
    /// Binary, 8 bytes each, little-endian
    U64,
}

impl IntFormat {
    /// Returns the number of bytes of a binary integer, and 1 for text.
    fn width(self) -> usize {
        match self {
            IntFormat::Text => 1,
            IntFormat::U32 => 4,
            IntFormat::U64 => 8,
        }
    }
}

/// A block of integers, in the order of the input.
#[derive(Default)]
pub struct IntBlock {
    /// The integers. A block holds at least one integer.
    pub values: Vec<u64>,
    /// If true, the input may block before the next bytes, as a pipe does, so the caller should
    /// flush its results before the next read.
    pub may_wait: bool,
    /// The number of bytes read so far from all inputs, before decompression.
    consumed_bytes: u64,
}

/// The number of bytes of one read. A token that is longer than one read is not an integer.
const BLOCK_BYTES: usize = 256 << 10;

/// Reads integers from a list of inputs.
pub struct IntReader {
    paths: std::vec::IntoIter<PathBuf>,
    source: Option<Source>,
    format: IntFormat,
    form: InputForm,
    range: Option<RangeInclusive<u64>>,
    threads: usize,
    done_bytes: u64,
}

/// The current input.
struct Source {
    input: Input,
    // The number of lines, and the number of bytes, that the input has before `buffer`.
    lines: u64,
    bytes: u64,
    buffer: Vec<u8>,
    // `buffer[..kept]` is the start of an integer whose end has not been read yet.
    kept: usize,
}

impl IntReader {
    /// Creates a reader of `paths`. Integers outside `range` are errors.
    pub fn new(
        paths: Vec<PathBuf>,
        format: IntFormat,
        form: InputForm,
        range: Option<RangeInclusive<u64>>,
        threads: usize,
    ) -> Self {
        let paths = paths.into_iter();
        Self { paths, source: None, format, form, range, threads, done_bytes: 0 }
    }

    /// Calls `visit` with the integers of all inputs in order.
    ///
    /// # Errors
    ///
    /// Returns the errors of `visit`. Returns an error if an input cannot be read, if a token is
    /// not an integer, or if an integer is outside the range. The message names the file and the
    /// line, or the byte of a binary file.
    pub fn for_each(
        mut self,
        mut visit: impl FnMut(&IntBlock) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut progress = Progress::new(input::total_len_bytes(self.paths.as_slice()));
        let threads = self.threads;
        let mut blocks = Prefetcher::new(move |block: &mut IntBlock| self.next(block));
        let mut block = IntBlock::default();
        while blocks.next(&mut block)? {
            // The thread starts after the first full block, because a short input does not justify
            // a thread.
            if threads > 1 && !block.may_wait {
                blocks.start();
            }
            progress.at(block.consumed_bytes);
            visit(&block)?;
        }
        Ok(())
    }

    /// Replaces the contents of `block` with the next integers. Returns false at the end of all
    /// inputs.
    fn next(&mut self, block: &mut IntBlock) -> Result<bool, Failure> {
        block.values.clear();
        while block.values.is_empty() {
            let mut source = match self.source.take() {
                Some(source) => source,
                None => match self.paths.next() {
                    Some(path) => Source {
                        input: Input::open(&path, self.form)?,
                        lines: 0,
                        bytes: 0,
                        buffer: vec![0; BLOCK_BYTES],
                        kept: 0,
                    },
                    None => return Ok(false),
                },
            };
            if self.read_from(&mut source, block)? {
                self.source = Some(source);
            }
        }
        Ok(true)
    }

    /// Reads from the input once. Returns false at the end of the input.
    fn read_from(&mut self, source: &mut Source, block: &mut IntBlock) -> Result<bool, Failure> {
        let buffer = &mut source.buffer[source.kept..];
        let len = read_some(&mut source.input, buffer);
        let len = len.map_err(|error| source.input.failure(&error))?;
        let end = source.kept + len;
        let read = &source.buffer[..end];
        let whole = if len == 0 { end } else { self.whole_bytes(read) };
        if whole == 0 && end == source.buffer.len() {
            return Err(source.failure_at(0, decimal::not_an_integer(read)));
        }
        self.decode(source, &read[..whole], &mut block.values)?;
        if self.format == IntFormat::Text {
            source.lines += memchr_iter(b'\n', &read[..whole]).count() as u64;
        }
        source.bytes += whole as u64;
        block.consumed_bytes = self.done_bytes + source.input.consumed_bytes();
        block.may_wait = len < source.buffer.len() / 2;
        if len == 0 {
            self.done_bytes += source.input.consumed_bytes();
            return Ok(false);
        }
        source.buffer.copy_within(whole..end, 0);
        source.kept = end - whole;
        Ok(true)
    }

    /// Returns the number of bytes at the start of `read` that certainly hold whole integers.
    fn whole_bytes(&self, read: &[u8]) -> usize {
        match self.format {
            IntFormat::Text => {
                read.iter().rposition(|&byte| decimal::is_space(byte)).map_or(0, |at| at + 1)
            }
            binary => read.len() / binary.width() * binary.width(),
        }
    }

    fn decode(&self, source: &Source, bytes: &[u8], values: &mut Vec<u64>) -> Result<(), Failure> {
        let width = self.format.width() as u64;
        match self.format {
            IntFormat::Text => {
                decimal::parse(bytes, values).map_err(|bad| source.failure_at(bad.at, bad))?;
            }
            IntFormat::U32 => {
                let whole = bytes.as_chunks().0.iter();
                values.extend(whole.map(|&bytes| u64::from(u32::from_le_bytes(bytes))));
            }
            IntFormat::U64 => {
                values.extend(bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)));
            }
        }
        let name = source.input.name();
        if let Some((nth, refusal)) = self.outside(values) {
            if self.format == IntFormat::Text {
                return Err(source.failure_at(start_of_token(bytes, nth), refusal));
            }
            let at = source.bytes + nth as u64 * width;
            return Err(Failure::new(format!("{name}:byte {at}: {refusal}")));
        }
        let total = source.bytes + bytes.len() as u64;
        if !total.is_multiple_of(width) {
            return Err(Failure::new(format!(
                "{name}: {total} bytes are no whole number of integers of {width} bytes; \
                 is the file cut short, or another --format?"
            )));
        }
        Ok(())
    }

    /// Returns the index of the first integer outside the range, and the error message.
    fn outside(&self, values: &[u64]) -> Option<(usize, String)> {
        let range = self.range.as_ref()?;
        let nth = values.iter().position(|value| !range.contains(value))?;
        let (value, first, last) = (values[nth], range.start(), range.end());
        Some((nth, format!("{value} is outside --range {first}..={last}")))
    }
}

impl Source {
    /// Returns the failure for the text at byte `at` of the buffer. The message names the line of
    /// the text.
    fn failure_at(&self, at: usize, what: impl fmt::Display) -> Failure {
        let line = self.lines + memchr_iter(b'\n', &self.buffer[..at]).count() as u64 + 1;
        Failure::new(format!("{}:{line}: {what}", self.input.name()))
    }
}

/// Returns the offset at which integer `nth` of a text block starts.
fn start_of_token(text: &[u8], nth: usize) -> usize {
    let is_start =
        |at: usize| !decimal::is_space(text[at]) && (at == 0 || decimal::is_space(text[at - 1]));
    (0..text.len()).filter(|&at| is_start(at)).nth(nth).unwrap_or(0)
}
