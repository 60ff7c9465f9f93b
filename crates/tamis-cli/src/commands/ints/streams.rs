//! The options of `tamis ints` for its inputs and its output.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::memory_limit::reserve_unpacking;
use crate::commands::ints::memory::Memory;
use crate::commands::ints::read::{IntFormat, IntReader};
use crate::commands::ints::repeats::RepeatSearch;
use crate::commands::ints::set::IntSet;
use crate::commands::ints::write::IntEncoder;
use crate::commands::ints::write_behind::IntWriter;
use crate::exit::Failure;
use crate::io::input::{self, InputForm};
use crate::io::output::{Output, refuse_endless, refuse_terminal};
use crate::io::packing::Unpack;
use crate::io::unpack;

/// A decoder may use a quarter of the memory. The sets need the other three quarters, because sets
/// grow in steps.
const DECODER_PARTS: u64 = 4;

/// The arguments of a command that reads all integers of its inputs.
#[derive(clap::Args)]
pub struct StreamArgs {
    /// Files of integers [default: standard input]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub reading: Reading,

    #[command(flatten)]
    pub writing: Writing,
}

/// The options for reading integers, and the memory limit.
#[derive(clap::Args)]
pub struct Reading {
    /// Format of the input
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: IntFormat,

    /// How to decompress the inputs: auto, no, gzip, zstd, xz or bzip2 [default: auto for text, by
    /// their first bytes; no for binary]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub unpack: Option<Unpack>,

    /// Reject integers outside A..=B; a narrow range above u32 gets its own bitmap
    #[arg(long, value_name = "A..=B", value_parser = parse_range)]
    pub range: Option<RangeInclusive<u64>>,

    /// Fail if the command needs more than SIZE of memory, such as 600M or 2G (at least 16M)
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,

    /// Use up to N threads; with 2 or more threads, the command may read and write on separate
    /// threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = crate::arguments::numbers::threads)]
    pub threads: Option<NonZeroUsize>,
}

impl Reading {
    /// Opens a reader of `files`. A missing file is an error.
    pub fn reader(&self, files: &[PathBuf]) -> Result<IntReader, Failure> {
        Ok(self.reader_of(input::checked(files)?))
    }

    /// Opens a reader of the files that exist, and skips missing files. If `output` is a file, a
    /// missing input file is an error.
    pub fn reader_of_present(
        &self,
        files: &[PathBuf],
        output: Option<&Path>,
    ) -> Result<IntReader, Failure> {
        Ok(self.reader_of(input::present(files, &[output])?))
    }

    fn reader_of(&self, paths: Vec<PathBuf>) -> IntReader {
        unpack::set_parts(DECODER_PARTS);
        if let Some(memory) = self.memory {
            reserve_unpacking(&paths, self.form(), memory, DECODER_PARTS);
        }
        IntReader::new(paths, self.format, self.form(), self.range.clone(), self.threads())
    }

    /// Returns the form in which the inputs are read.
    fn form(&self) -> InputForm {
        InputForm { unpack: self.unpack, is_text: self.format == IntFormat::Text }
    }

    /// Returns the maximum number of threads.
    pub fn threads(&self) -> usize {
        let available = || std::thread::available_parallelism().ok();
        self.threads.or_else(available).map_or(1, NonZeroUsize::get)
    }

    /// Returns the memory limit of the sets.
    pub fn memory(&self) -> Result<Memory, Failure> {
        Memory::new(self.memory)
    }

    /// Creates a search for repeated integers.
    pub fn repeats(&self) -> Result<RepeatSearch, Failure> {
        Ok(RepeatSearch::new(self.range.as_ref(), self.memory()?, self.threads()))
    }

    /// Creates an empty set.
    pub fn set(&self) -> Result<IntSet, Failure> {
        Ok(IntSet::new(self.range.as_ref(), self.memory()?))
    }
}

/// The options for the output.
#[derive(clap::Args)]
pub struct Writing {
    /// Write to FILE; replace FILE only after success
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Format of the output [default: the format of the input]
    #[arg(long, value_name = "FORMAT")]
    pub output_format: Option<IntFormat>,
}

impl Writing {
    /// Opens a writer for the results of `inputs`.
    pub fn writer(&self, reading: &Reading, inputs: &[&[PathBuf]]) -> Result<IntWriter, Failure> {
        for files in inputs {
            let stdin = [PathBuf::from("-")];
            let files = if files.is_empty() { &stdin } else { *files };
            refuse_endless(files, self.output.as_deref())?;
        }
        let format = self.output_format.unwrap_or(reading.format);
        if format != IntFormat::Text {
            refuse_terminal(self.output.as_deref(), "these integers are")?;
        }
        let output = Output::open(self.output.as_deref())?;
        Ok(IntWriter::new(IntEncoder::new(output, format), reading.threads()))
    }
}

/// Reads a range such as `0..=999` or `0-999`, both ends included.
fn parse_range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let wrong = || format!("'{text}' is not a range: write the first and last value as 0..=999");
    let (first, last) =
        text.split_once("..=").or_else(|| text.split_once('-')).ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let range = number(first)?..=number(last)?;
    if range.is_empty() {
        return Err(format!("'{text}' is an empty range: write the smaller value first"));
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_first_and_last() {
        assert_eq!(parse_range("0..=999"), Ok(0..=999));
        assert_eq!(parse_range("5-5"), Ok(5..=5));
        for text in ["", "5", "..=", "1..5", "5..=4", "-1..=4", "a..=b", "0..=18446744073709551616"]
        {
            assert!(parse_range(text).is_err(), "{text}");
        }
    }
}
