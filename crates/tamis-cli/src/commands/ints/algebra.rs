//! `tamis ints and`, `or`, `xor`, `andnot`: set operations on files.

use std::path::{Path, PathBuf};

use tamis::Answers;

use crate::commands::ints::memory::THREADS_BYTES;
use crate::commands::ints::set::IntSet;
use crate::commands::ints::streams::{Reading, Writing};
use crate::exit::{CommandResult, Exit, Failure};
use crate::io::input;

/// The arguments of each operation.
#[derive(clap::Args)]
pub struct Args {
    /// Files of integers, at least two; '-' is standard input
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    writing: Writing,
}

/// Runs `and`.
pub fn and(args: &Args) -> CommandResult {
    let memory = args.reading.memory()?.less(THREADS_BYTES);
    combine(args, &args.files, |set, file| {
        let mut both = args.reading.set()?;
        let mut answers = Answers::new();
        let mut common = Vec::new();
        args.each_block(file, |values| {
            set.contains_each(values, &mut answers);
            common.clear();
            common.extend(answers.ones().map(|at| values[at]));
            both.limit(memory.less(set.memory_bytes()));
            both.insert_each(&common, &mut answers)
        })?;
        Ok(both)
    })
}

/// Runs `or`.
pub fn or(args: &Args) -> CommandResult {
    // If an input is missing, the command skips this input, because a union of the other inputs is
    // still useful.
    combine(
        args,
        &input::present(&args.files, &[args.writing.output.as_deref()])?,
        |mut set, file| {
            let mut answers = Answers::new();
            args.each_block(file, |values| set.insert_each(values, &mut answers))?;
            Ok(set)
        },
    )
}

/// Runs `xor`.
pub fn xor(args: &Args) -> CommandResult {
    let memory = args.reading.memory()?;
    combine(args, &args.files, |mut set, file| {
        let mut other = args.reading.set()?;
        let (mut new, mut added) = (Answers::new(), Answers::new());
        let mut fresh = Vec::new();
        args.each_block(file, |values| {
            // Only the first occurrence of a value in each file changes the result.
            other.limit(memory.less(set.memory_bytes()));
            other.insert_each(values, &mut new)?;
            set.limit(memory.less(other.memory_bytes()));
            fresh.clear();
            fresh.extend(new.ones().map(|at| values[at]));
            set.insert_each(&fresh, &mut added)?;
            for at in added.zeros() {
                set.remove(fresh[at])?;
            }
            Ok(())
        })?;
        Ok(set)
    })
}

/// Runs `andnot`.
pub fn and_not(args: &Args) -> CommandResult {
    combine(args, &args.files, |mut set, file| {
        args.each_block(file, |values| values.iter().try_for_each(|&value| set.remove(value)))?;
        Ok(set)
    })
}

/// Reads the set of the first file, combines this set with each other file, and prints the result.
fn combine(
    args: &Args,
    files: &[PathBuf],
    mut with: impl FnMut(IntSet, &Path) -> Result<IntSet, Failure>,
) -> CommandResult {
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return Err(Failure::new("standard input can be one set only: name files for the others"));
    }
    // The command opens every file first, to report a missing file before the work starts.
    args.reading.reader(files)?;
    let mut writer = args.writing.writer(&args.reading, &[&args.files])?;
    let mut set = args.reading.set()?;
    let mut answers = Answers::new();
    let (first, others) =
        files.split_first().expect("clap requires one, and at least one is present");
    args.each_block(first, |values| set.insert_each(values, &mut answers))?;
    for file in others {
        set = with(set, file)?;
    }
    set.into_sorted(|value| writer.write(value))?;
    writer.finish()?;
    Ok(Exit::Yes)
}

impl Args {
    fn each_block(
        &self,
        file: &Path,
        mut visit: impl FnMut(&[u64]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let reader = self.reading.reader(&[file.to_path_buf()])?;
        reader.for_each(|block| visit(&block.values))
    }
}
