//! `tamis ints dups`: prints the integers that occur more than once.

use std::path::PathBuf;

use crate::exit::{Exit, Outcome};
use crate::ints::repeats::RepeatSearch;
use crate::ints::{Reading, Writing};

/// Prints each integer that occurs more than once, once, ascending.
///
/// All of u32 takes two bitmaps of 512 MiB, whatever the size of the input. Exit status 0, also if
/// nothing repeats.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis ints dups ids.txt                                    which ids occur more than once
  tamis ints dups --format u32 --output-format text x.bin    binary in, text out")]
pub struct Args {
    /// Files of integers [default: standard input]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    writing: Writing,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let memory = args.reading.memory()?;
    let mut repeats =
        RepeatSearch::new(args.reading.range.as_ref(), memory, args.reading.threads());
    let reader = args.reading.reader_of_present(&args.files)?;
    let mut writer = args.writing.writer(&args.reading, &[&args.files])?;
    reader.for_each(|block| repeats.feed(&block.values))?;
    repeats.finish().into_sorted_repeats(|value| writer.write(value))?;
    writer.finish()?;
    Ok(Exit::Yes)
}
