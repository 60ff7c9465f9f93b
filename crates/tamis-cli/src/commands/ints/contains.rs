//! `tamis ints contains`: prints the integers that are in a set.

use std::path::PathBuf;

use tamis::Answers;

use crate::commands::ints::streams::{Reading, Writing};
use crate::exit::{CommandResult, Exit, Failure};

/// Print the integers that are in SET, in the order of the input, repeats included
///
/// The exit status is 0 if an integer was printed or counted, and 1 if no integer was printed or
/// counted.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis ints contains blocked.txt < today.txt        which of today's are blocked
  tamis ints contains -v blocked.txt today.txt       which are not
  tamis ints contains -c blocked.txt today.txt       how many are")]
pub struct Args {
    /// File of integers to search in
    set: PathBuf,

    /// Files of integers to look for [default: standard input]
    files: Vec<PathBuf>,

    /// Print the integers that are not in SET
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only the number of integers
    #[arg(short = 'c', long)]
    count: bool,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    writing: Writing,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    if args.set.as_os_str() == "-" && (args.files.is_empty() || args.files.contains(&"-".into())) {
        return Err(Failure::new(
            "standard input cannot be both the set and what to look for: name a file for one",
        ));
    }
    let mut set = args.reading.set()?;
    let mut answers = Answers::new();
    let lookups = args.reading.reader_of_present(&args.files, args.writing.output.as_deref())?;
    let reader = args.reading.reader(std::slice::from_ref(&args.set))?;
    let mut writer =
        args.writing.writer(&args.reading, &[&args.files, std::slice::from_ref(&args.set)])?;
    reader.for_each(|block| set.insert_each(&block.values, &mut answers))?;
    let mut found = 0;
    lookups.for_each(|block| {
        set.contains_each(&block.values, &mut answers);
        let ones = answers.count_ones();
        found += if args.invert { block.values.len() - ones } else { ones } as u64;
        let mut print = |at: usize| writer.write(block.values[at]);
        match (args.count, args.invert) {
            (true, _) => Ok(()),
            (false, false) => answers.ones().try_for_each(&mut print),
            (false, true) => answers.zeros().try_for_each(&mut print),
        }?;
        if block.may_wait && !args.count { writer.flush() } else { Ok(()) }
    })?;
    if args.count {
        writer.write(found)?;
    }
    writer.finish()?;
    Ok(if found > 0 { Exit::Yes } else { Exit::No })
}
