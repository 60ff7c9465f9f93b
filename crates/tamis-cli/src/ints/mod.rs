//! `tamis ints`: exact operations on integers.

mod algebra;
mod contains;
mod count;
pub mod decimal;
mod distinct;
mod memory;
mod read;
mod repeats;
mod set;
mod sparse;
mod write;
mod write_behind;

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Subcommand;

use crate::byte_size::ByteSize;
use crate::exit::{Failure, Outcome};
use crate::input;
use crate::ints::memory::Memory;
use crate::ints::read::{IntFormat, IntReader};
use crate::ints::write::IntEncoder;
use crate::ints::write_behind::IntWriter;
use crate::memory_limit::reserve_unpacking;
use crate::output::{Output, refuse_endless, refuse_terminal};

/// Find repeated and distinct integers and combine sets of integers, exactly and at any size
#[derive(clap::Args)]
#[command(
    long_about = LONG_ABOUT,
    after_help = EXAMPLES,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Args {
    #[command(subcommand)]
    job: Job,
}

const LONG_ABOUT: &str = "\
Find repeated and distinct integers and combine sets of integers, exactly and at any size

Integers from 0 to 18446744073709551615 are read from FILES, or from standard input if there are none: \
decimal text, one per line or separated by any white space, or binary (--format). Gzip, zstd, xz \
and bzip2 are \
unpacked by their first bytes. The command never sorts on disk and is never approximate. It keeps \
few integers in a compressed \
set, and many in a bitmap with one bit for each of the 2^32 values of u32: 512 MiB for any \
number of integers. It keeps larger integers in a hash set, or in a compressed set if they are \
close together.";

const EXAMPLES: &str = "\
Examples:
  tamis ints dups ids.txt                          which ids occur more than once
  tamis ints dups --format u32 five-billion.bin    the same of a 18.6 GiB file, in 1.1 GiB
  zcat logs*.gz | cut -f3 | tamis ints uniq        first occurrence of each, while they arrive
  tamis ints count --json orders.txt.zst           how many, how many distinct, how many repeated
  tamis ints andnot all.txt deleted.txt            what is in the first and not in the second
  tamis ints contains blocked.txt < today.txt      which of today's are blocked";

#[derive(Subcommand)]
enum Job {
    /// Print each integer that occurs more than once, once, ascending
    ///
    /// All of u32 takes two bitmaps of 512 MiB, whatever the size of the input. The exit status is
    /// 0, also if no integer repeats.
    #[command(after_help = "\
Examples:
  tamis ints dups ids.txt                                    which ids occur more than once
  tamis ints dups --format u32 --output-format text x.bin    binary in, text out")]
    Dups(StreamArgs),

    /// Print the first occurrence of each integer, in the order of the input
    ///
    /// The command prints results while it reads the input. For ascending order at the same cost,
    /// see `sort`.
    #[command(after_help = "\
Examples:
  tamis ints uniq ids.txt -o once.txt          first occurrences, in the order of the input
  zcat logs*.gz | cut -f3 | tamis ints uniq    while they arrive")]
    Uniq(StreamArgs),

    /// Print each integer once, ascending
    ///
    /// The result is that of `sort -n -u`, without sorting: a set of integers is in order by
    /// itself.
    #[command(after_help = "\
Examples:
  tamis ints sort ids.txt                              as 'sort -n -u'
  tamis ints sort --output-format u32 a.txt > a.bin    4 bytes each")]
    Sort(StreamArgs),

    Count(count::Args),
    Contains(contains::Args),

    /// Print the integers that are in all files, ascending
    #[command(after_help = "\
Example:
  tamis ints and monday.txt sunday.txt    who came on both days")]
    And(algebra::Args),

    /// Print the integers that are in any file, ascending
    #[command(mut_arg("files", |arg| arg.num_args(1..).help("Files of integers; `-` is standard input")))]
    #[command(after_help = "\
Example:
  tamis ints or monday.txt sunday.txt.gz -o any.txt    who came at all")]
    Or(algebra::Args),

    /// Print the integers that are in an odd number of files (of two: in one but not in both),
    /// ascending
    #[command(after_help = "\
Example:
  tamis ints xor before.txt after.txt    what was added or removed")]
    Xor(algebra::Args),

    /// Print the integers that are in the first file and in none of the others, ascending
    #[command(after_help = "\
Example:
  tamis ints andnot all.txt deleted.txt    what is left")]
    Andnot(algebra::Args),
}

/// The arguments of a job on all integers of its inputs.
#[derive(clap::Args)]
struct StreamArgs {
    /// Files of integers [default: standard input]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    writing: Writing,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    match &args.job {
        Job::Dups(args) => distinct::dups(args),
        Job::Uniq(args) => distinct::uniq(args),
        Job::Sort(args) => distinct::sort(args),
        Job::Count(args) => count::run(args),
        Job::Contains(args) => contains::run(args),
        Job::And(args) => algebra::and(args),
        Job::Or(args) => algebra::or(args),
        Job::Xor(args) => algebra::xor(args),
        Job::Andnot(args) => algebra::and_not(args),
    }
}

/// How integers are read, and in how much memory.
#[derive(clap::Args)]
struct Reading {
    /// Format of the input
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: IntFormat,

    /// Reject integers outside A..=B; a narrow range above u32 gets its own bitmap
    #[arg(long, value_name = "A..=B", value_parser = parse_range)]
    range: Option<RangeInclusive<u64>>,

    /// Fail if more memory than this is needed, such as 600M or 2G (at least 16M)
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// Use up to N threads; from 2 on, one more may read and one more may write [default: one for
    /// each processor]
    #[arg(long, value_name = "N", value_parser = crate::numbers::threads)]
    threads: Option<NonZeroUsize>,
}

impl Reading {
    /// Opens a reader of `files`. A missing file is an error.
    fn reader(&self, files: &[PathBuf]) -> Result<IntReader, Failure> {
        Ok(self.reader_of(input::checked(files)?))
    }

    /// Opens a reader of the files that exist, and skips missing ones.
    fn reader_of_present(&self, files: &[PathBuf]) -> Result<IntReader, Failure> {
        Ok(self.reader_of(input::present(files)?))
    }

    fn reader_of(&self, paths: Vec<PathBuf>) -> IntReader {
        if let Some(memory) = self.memory {
            reserve_unpacking(&paths, memory.bytes / 2);
        }
        IntReader::new(paths, self.format, self.range.clone(), self.threads())
    }

    /// Returns the maximum number of threads.
    fn threads(&self) -> usize {
        let available = || std::thread::available_parallelism().ok();
        self.threads.or_else(available).map_or(1, NonZeroUsize::get)
    }

    fn memory(&self) -> Result<Memory, Failure> {
        Memory::new(self.memory)
    }

    /// Creates an empty set.
    fn set(&self) -> Result<set::IntSet, Failure> {
        Ok(set::IntSet::new(self.range.as_ref(), self.memory()?))
    }
}

/// Where results go, and how they are written.
#[derive(clap::Args)]
struct Writing {
    /// Write to FILE; replace it only after success
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Format of the output [default: that of the input]
    #[arg(long, value_name = "FORMAT")]
    output_format: Option<IntFormat>,
}

impl Writing {
    /// Opens a writer for the results of `inputs`.
    fn writer(&self, reading: &Reading, inputs: &[&[PathBuf]]) -> Result<IntWriter, Failure> {
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
        return Err(format!("'{text}' holds no value: put the smaller one first"));
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
