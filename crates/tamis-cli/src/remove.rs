//! `tamis remove`: deletes items from a counting or cuckoo filter.

use std::path::PathBuf;

use tamis::{Kind, Removed};

use crate::count::Count;
use crate::exit::{Exit, Failure, Outcome};
use crate::filter_file::{open_to_change, save};
use crate::input;
use crate::items::{ItemArgs, hash_all};
use crate::metadata::expect_same_items;

/// Deletes items from a counting or cuckoo filter
///
/// Each occurrence of a line in the input deletes one copy. A line that is not in the filter is refused and changes
/// nothing. Delete only lines that were added: deleting a false positive damages other lines.
///
/// The command changes the filter in memory and then replaces the file.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis build --kind cuckoo users.txt -o users.tamis
  tamis remove users.tamis gone.txt
  echo \"$token\" | tamis remove tokens.tamis

Exit status: 0 all deleted, 1 some lines were not in the filter or could not be deleted (all
others were), 2 failed, nothing was changed.")]
pub struct Args {
    /// The filter to change
    filter: PathBuf,

    #[command(flatten)]
    items_from: ItemArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let paths = input::checked(&args.items_from.files)?;
    let (_lock, mut file) = open_to_change(&args.filter)?;
    let name = input::name(&args.filter);
    let kind = file.filter.plan().kind();
    if !kind.can_remove() {
        let able: Vec<&str> =
            Kind::ALL.iter().filter(|kind| kind.can_remove()).map(|kind| kind.name()).collect();
        return Err(Failure::new(format!(
            "{name}: nothing can be deleted from a {kind} filter; build one with --kind {}",
            able.join(" or --kind ")
        )));
    }
    let rule = args.items_from.key.rule();
    expect_same_items(&file.metadata, &rule, &name)?;
    let (mut removed, mut absent, mut saturated) = (0_u64, 0_u64, 0_u64);
    let hasher = file.filter.hasher();
    let delimiter = args.items_from.records.delimiter();
    let tally = hash_all(&paths, &rule, delimiter, hasher, |hashes| {
        for &hash in hashes {
            match file.filter.remove_hash(hash) {
                Some(Removed::Yes) => removed += 1,
                Some(Removed::Saturated) => saturated += 1,
                Some(Removed::Absent) | None => absent += 1,
            }
        }
        Ok(())
    })?;
    tally.warn();
    file.added = file.added.saturating_sub(removed);
    if removed > 0 {
        save(&args.filter, &file)?;
    }
    let lines = |n: u64| format!("{} {}", Count(n), if n == 1 { "line" } else { "lines" });
    if absent > 0 {
        note!("{name}: {} not in it: nothing was changed for these", lines(absent));
    }
    if saturated > 0 {
        note!(
            "{name}: {} stayed: added more often than the filter can count; build it again, with \
             wider counters",
            lines(saturated)
        );
    }
    Ok(if absent + saturated > 0 { Exit::No } else { Exit::Yes })
}
