//! `tamis ints`: exact operations on integers.

mod algebra;
mod contains;
mod count;
pub mod decimal;
mod distinct;
mod memory;
mod read;
mod repeats;
mod scattered;
mod set;
mod store;
mod streams;
mod write;
mod write_behind;

use clap::Subcommand;

use crate::commands::ints::streams::StreamArgs;
use crate::exit::CommandResult;

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
  tamis ints dups ids.txt                          ids that occur more than once
  tamis ints dups --format u32 five-billion.bin    the same for an 18.6 GiB file, in 1.1 GiB
  zcat logs*.gz | cut -f3 | tamis ints uniq        first occurrence of each, while they arrive
  tamis ints count --json orders.txt.zst           number of all, distinct and repeated integers
  tamis ints andnot all.txt deleted.txt            integers in the first file but not the second
  tamis ints contains blocked.txt < today.txt      integers of today.txt that are blocked";

#[derive(Subcommand)]
enum Job {
    /// Print the repeated integers, each once, ascending
    ///
    /// For the whole range of u32, the command needs two bitmaps of 512 MiB for an input of any
    /// size. The exit status is 0 even if no integer repeats.
    #[command(after_help = "\
Examples:
  tamis ints dups ids.txt                                    ids that occur more than once
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
    /// The result equals the result of `sort -n -u`. The command does not sort, because a set of
    /// integers is always in order.
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
  tamis ints and monday.txt sunday.txt    ids that occur on both days")]
    And(algebra::Args),

    /// Print the integers that are in any file, ascending
    #[command(mut_arg("files", |arg| arg.num_args(1..).help("Files of integers; '-' is standard input")))]
    #[command(after_help = "\
Example:
  tamis ints or monday.txt sunday.txt.gz -o any.txt    ids that occur on any day")]
    Or(algebra::Args),

    /// Print the integers that are in an odd number of files (of two files: in exactly one file),
    /// ascending
    #[command(after_help = "\
Example:
  tamis ints xor before.txt after.txt    ids that were added or removed")]
    Xor(algebra::Args),

    /// Print the integers that are in the first file and in no other file, ascending
    #[command(after_help = "\
Example:
  tamis ints andnot all.txt deleted.txt    ids that are left")]
    Andnot(algebra::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
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
