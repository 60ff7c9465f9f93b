//! `tamis ints uniq`, `sort` and `dups`: print distinct or repeated integers once each.

use tamis::Answers;

use crate::commands::ints::streams::StreamArgs;
use crate::exit::{CommandResult, Exit};

/// Runs `uniq`.
pub fn uniq(args: &StreamArgs) -> CommandResult {
    let mut set = args.reading.set()?;
    let reader = args.reading.reader_of_present(&args.files, args.writing.output.as_deref())?;
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
pub fn sort(args: &StreamArgs) -> CommandResult {
    let mut set = args.reading.set()?;
    let reader = args.reading.reader_of_present(&args.files, args.writing.output.as_deref())?;
    let mut writer = args.writing.writer(&args.reading, &[&args.files])?;
    let mut new = Answers::new();
    reader.for_each(|block| set.insert_each(&block.values, &mut new))?;
    set.into_sorted(|value| writer.write(value))?;
    writer.finish()?;
    Ok(Exit::Yes)
}

/// Runs `dups`.
pub fn dups(args: &StreamArgs) -> CommandResult {
    let mut repeats = args.reading.repeats()?;
    let reader = args.reading.reader_of_present(&args.files, args.writing.output.as_deref())?;
    let mut writer = args.writing.writer(&args.reading, &[&args.files])?;
    reader.for_each(|block| repeats.feed(&block.values))?;
    repeats.into_sorted_repeats(|value| writer.write(value))?;
    writer.finish()?;
    Ok(Exit::Yes)
}
