//! Reads integers from files and standard input, one block at a time: decimal text or binary. A
//! second thread reads while the first one uses the integers.

use std::fmt;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use memchr::memchr_iter;

use crate::commands::ints::decimal;
use crate::exit::Failure;
use crate::io::input::{self, Input, InputForm};
use crate::io::prefetcher::Prefetcher;
use crate::io::progress::Progress;

/// How integers are written down.
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
    /// The integers. A block holds at least one.
    pub values: Vec<u64>,
    /// If true, the input may block before the next bytes, as a pipe does, so the caller should
    /// flush results now.
    pub may_wait: bool,
    /// The number of bytes read so far from all inputs, before decompression.
    consumed_bytes: u64,
}

/// The size of a read in bytes. A longer token is not an integer.
const BLOCK_BYTES: usize = 256 << 10;

/// Reads integers from a list of inputs.
pub struct IntReader {
    decoder: Decoder,
    progress: Progress,
    threads: usize,
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
        let progress = Progress::new(input::total_len_bytes(&paths));
        let decoder =
            Decoder { paths: paths.into_iter(), source: None, format, form, range, done_bytes: 0 };
        Self { decoder, progress, threads }
    }

    /// Calls `visit` with the integers of all inputs in order.
    ///
    /// # Errors
    ///
    /// Errors of `visit`; an input that cannot be read; a token that is not an integer or is
    /// outside the range. The message names the file and the line, or the byte of a binary file.
    pub fn for_each(
        self,
        mut visit: impl FnMut(&IntBlock) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { mut decoder, mut progress, threads } = self;
        let mut blocks = Prefetcher::new(move |block: &mut IntBlock| decoder.next(block));
        let mut block = IntBlock::default();
        while blocks.next(&mut block)? {
            // The thread starts after a full block, because a short input does not justify a
            // thread.
            if threads > 1 && !block.may_wait {
                blocks.start();
            }
            progress.at(block.consumed_bytes);
            visit(&block)?;
        }
        Ok(())
    }
}

/// Decodes the bytes of all inputs to integers.
struct Decoder {
    paths: std::vec::IntoIter<PathBuf>,
    source: Option<Source>,
    format: IntFormat,
    form: InputForm,
    range: Option<RangeInclusive<u64>>,
    done_bytes: u64,
}

/// The current input.
struct Source {
    input: Input,
    place: Place,
    buffer: Vec<u8>,
    /// `buffer[..kept]` is the start of an integer whose end is not read yet.
    kept: usize,
}

impl Source {
    fn open(path: &Path, form: InputForm) -> Result<Self, Failure> {
        let place = Place { lines: 0, bytes: 0 };
        Ok(Self { input: Input::open(path, form)?, place, buffer: vec![0; BLOCK_BYTES], kept: 0 })
    }
}

impl Decoder {
    /// Replaces the contents of `block` with the next integers. Returns false at the end of all
    /// inputs.
    fn next(&mut self, block: &mut IntBlock) -> Result<bool, Failure> {
        block.values.clear();
        while block.values.is_empty() {
            let mut source = match self.source.take() {
                Some(source) => source,
                None => match self.paths.next() {
                    Some(path) => Source::open(&path, self.form)?,
                    None => return Ok(false),
                },
            };
            if self.read_from(&mut source, block)? {
                self.source = Some(source);
            }
        }
        Ok(true)
    }

    /// Reads once. Returns false at the end of the input.
    fn read_from(&mut self, source: &mut Source, block: &mut IntBlock) -> Result<bool, Failure> {
        let Source { input, place, buffer, kept } = source;
        let len = match input.read(&mut buffer[*kept..]) {
            Ok(len) => len,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(input.failure(&error)),
        };
        let end = *kept + len;
        let read = &buffer[..end];
        let whole = if len == 0 { end } else { self.whole_bytes(read) };
        if whole == 0 && end == buffer.len() {
            let line = place.lines + 1;
            let token = decimal::show(read);
            return Err(fail(input, line, format!("'{token}' is not an integer")));
        }
        self.decode(input, &read[..whole], place, &mut block.values)?;
        if self.format == IntFormat::Text {
            place.lines += memchr_iter(b'\n', &read[..whole]).count() as u64;
        }
        place.bytes += whole as u64;
        block.consumed_bytes = self.done_bytes + input.consumed_bytes();
        block.may_wait = len < buffer.len() / 2;
        if len == 0 {
            self.done_bytes += input.consumed_bytes();
            return Ok(false);
        }
        buffer.copy_within(whole..end, 0);
        *kept = end - whole;
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

    fn decode(
        &self,
        input: &Input,
        bytes: &[u8],
        place: &Place,
        values: &mut Vec<u64>,
    ) -> Result<(), Failure> {
        match self.format {
            IntFormat::Text => {
                let text = bytes;
                decimal::parse(text, values).map_err(|bad| {
                    let line = place.line_of(text, bad.at);
                    fail(input, line, bad)
                })?;
                if let Some((nth, refusal)) = self.outside(values) {
                    let line = place.line_of(text, start_of_token(text, nth));
                    return Err(fail(input, line, refusal));
                }
            }
            IntFormat::U32 => {
                let whole = bytes.as_chunks().0.iter();
                values.extend(whole.map(|&bytes| u64::from(u32::from_le_bytes(bytes))));
                self.check_binary(input, values, bytes, place)?;
            }
            IntFormat::U64 => {
                values.extend(bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)));
                self.check_binary(input, values, bytes, place)?;
            }
        }
        Ok(())
    }

    fn check_binary(
        &self,
        input: &Input,
        values: &[u64],
        bytes: &[u8],
        place: &Place,
    ) -> Result<(), Failure> {
        let width = self.format.width() as u64;
        if let Some((nth, refusal)) = self.outside(values) {
            let at = place.bytes + nth as u64 * width;
            return Err(fail(input, format!("byte {at}"), refusal));
        }
        let total = place.bytes + bytes.len() as u64;
        if !total.is_multiple_of(width) {
            let name = input.name();
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

/// The position in an input.
struct Place {
    lines: u64,
    bytes: u64,
}

impl Place {
    /// Returns the line number, counted from 1, of byte `at` of the current block.
    fn line_of(&self, text: &[u8], at: usize) -> u64 {
        self.lines + memchr_iter(b'\n', &text[..at]).count() as u64 + 1
    }
}

/// Returns the offset at which integer `nth` of a text block starts.
fn start_of_token(text: &[u8], nth: usize) -> usize {
    let is_start =
        |at: usize| !decimal::is_space(text[at]) && (at == 0 || decimal::is_space(text[at - 1]));
    (0..text.len()).filter(|&at| is_start(at)).nth(nth).unwrap_or(0)
}

fn fail(input: &Input, place: impl fmt::Display, what: impl fmt::Display) -> Failure {
    Failure::new(format!("{}:{place}: {what}", input.name()))
}
