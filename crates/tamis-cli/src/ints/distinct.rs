//! `tamis ints uniq` and `sort`: print every integer once, in first-seen or in sorted order.

use std::path::PathBuf;

use tamis::Answers;

use crate::exit::{Exit, Outcome};
use crate::ints::{Reading, Writing};

/// Prints the first occurrence of each integer, in the order of the input.
///
/// Prints results while it reads the input. For ascending order at the same cost, see `sort`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis ints uniq ids.txt -o once.txt          first occurrences, in the order of the input
  zcat logs*.gz | cut -f3 | tamis ints uniq    while they arrive")]
pub struct UniqArgs {
    /// Files of integers [default: standard input]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    writing: Writing,
}

/// Prints each integer once, ascending.
///
/// As `sort -n -u`, without sorting: a set of integers is in order by itself.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis ints sort ids.txt                              as 'sort -n -u'
  tamis ints sort --output-format u32 a.txt > a.bin    4 bytes each")]
pub struct SortArgs {
    /// Files of integers [default: standard input]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    writing: Writing,
}

/// Runs `uniq`.
pub fn uniq(args: &UniqArgs) -> Outcome {
    let mut set = args.reading.set()?;
    let reader = args.reading.reader_of_present(&args.files)?;
    let mut writer = args.writing.writer(&args.reading, &[&args.files])?;
    let mut new = Answers::new();
    reader.for_each(|block| {
        set.insert_each(&block.values, &mut new)?;
        new.ones().try_for_each(|at| writer.write(block.values[at]))?;
        if block.may_wait { writer.flush() } else { Ok(()) }
    })?;
    writer.finish()?;
    Ok(Exit::Yes)
}

/// Runs `sort`.
pub fn sort(args: &SortArgs) -> Outcome {
    let mut set = args.reading.set()?;
    let reader = args.reading.reader_of_present(&args.files)?;
    let mut writer = args.writing.writer(&args.reading, &[&args.files])?;
    let mut new = Answers::new();
    reader.for_each(|block| set.insert_each(&block.values, &mut new))?;
    set.into_sorted(|value| writer.write(value))?;
    writer.finish()?;
    Ok(Exit::Yes)
}
