//! `tamis add`: more items into a filter that exists.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use tamis::Filter as _;

use crate::build::{full, judge};
use crate::clock::now_millis;
use crate::exit::{Failure, Outcome};
use crate::filter_file::{check_clock, read, save};
use crate::input;
use crate::items::{ItemArgs, hash_all, insert_all};
use crate::metadata::expect_same_items;

/// Adds items to a filter
///
/// The filter is read, changed in memory and put in place of the old one, which stays as it is if
/// anything fails, or if the filter would pass its rate.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis add seen.tamis today.txt
  tail -n +2 users.csv | tamis add users.tamis -k 2 -d ,

Exit status: 0 added, 2 could not, 3 added with --force though over its rate.")]
pub struct Args {
    /// The filter to change
    filter: PathBuf,

    /// Add even if more items come than the rate allows; exit status 3 then
    #[arg(long)]
    force: bool,

    /// Into a counting or cuckoo filter: a line that it has, or takes for one it has, is not added again
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    items_from: ItemArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    if input::is_stdin(&args.filter) {
        return Err(Failure::new("the filter to change must be a file, not standard input"));
    }
    let paths = input::checked(&args.items_from.files)?;
    // Held until the end: without it, of two that add at once one would lose its items.
    let _lock = lock(&args.filter)?;
    let mut file = read(&args.filter)?;
    if args.once && !file.filter.plan().kind().can_remove() {
        let (name, kind) = (input::name(&args.filter), file.filter.plan().kind());
        return Err(Failure::new(format!(
            "{name}: --once is for filters that count, not for a {kind} one"
        )));
    }
    let rule = args.items_from.key.rule();
    expect_same_items(&file.metadata, &rule, &input::name(&args.filter))?;
    check_clock(&file.filter, now_millis(), &input::name(&args.filter))?;
    let (hasher, mut answers) = (file.filter.hasher(), Vec::new());
    let delimiter = args.items_from.records.delimiter();
    let tally = hash_all(&paths, &rule, delimiter, hasher, |hashes| {
        // What comes late comes at its own time.
        file.filter.advance(now_millis());
        insert_all(&mut file.filter, hashes, args.once, &mut answers)
            .map_err(|error| full(&args.filter, &error))
    })?;
    file.added = file.added.saturating_add(tally.items);
    tally.warn();
    let exit = judge(&file, &args.filter, args.force)?;
    save(&args.filter, &file)?;
    Ok(exit)
}

/// Locks the file at `path` against other processes that would change it, until the file is closed.
///
/// # Errors
///
/// If it cannot be opened, or another process has locked it.
pub fn lock(path: &Path) -> Result<File, Failure> {
    let failure = |error: &std::io::Error| Failure::io(input::name(path), error);
    loop {
        let file = File::open(path).map_err(|error| failure(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(format!(
                    "{}: another process is changing it; try again later",
                    path.display()
                )));
            }
            // Some network file systems know no locks.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        // Whoever held the lock may have put another file in its place meanwhile.
        if is_still_at(&file, path).map_err(|error| failure(&error))? {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (held, there) = (file.metadata()?, path.metadata()?);
    Ok((held.dev(), held.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}
