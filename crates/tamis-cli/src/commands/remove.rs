//! `tamis remove`: deletes items from a counting or cuckoo filter.

use std::path::PathBuf;

use tamis::{Kind, Removed};

use crate::arguments::numbers::HumanCount;
use crate::exit::{CommandResult, Exit, Failure};
use crate::filters::change_lock::lock_to_change;
use crate::filters::opener::tamis_to_change;
use crate::io::input;
use crate::records::items::ItemArgs;

/// Delete items from a counting or cuckoo filter
///
/// Each occurrence of a line in the input deletes one copy. If a line is not in the filter, the
/// command refuses the line and deletes nothing. Delete only lines that were added: deleting a
/// false positive damages other lines.
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
pub fn run(args: &Args) -> CommandResult {
    let paths = input::checked(&args.items_from.files)?;
    let _lock = lock_to_change(&args.filter)?;
    let mut filter = tamis_to_change(&args.filter)?;
    let encoding = filter.encoding(&args.items_from.key.rule())?;
    let name = input::name(&args.filter);
    let file = filter.tamis_mut().expect("a Tamis filter");
    let kind = file.filter.plan().kind();
    if !kind.can_remove() {
        let able: Vec<&str> =
            Kind::ALL.iter().filter(|kind| kind.can_remove()).map(|kind| kind.name()).collect();
        return Err(Failure::new(format!(
            "{name}: nothing can be deleted from a {kind} filter; build one with --kind {}",
            able.join(" or --kind ")
        )));
    }
    let (mut removed, mut absent, mut saturated) = (0_u64, 0_u64, 0_u64);
    let count = args.items_from.reader(&paths).each_batch(encoding, |batch| {
        for &hash in batch.hashes() {
            match file.filter.remove_hash(hash) {
                Some(Removed::Yes) => removed += 1,
                Some(Removed::Saturated) => saturated += 1,
                Some(Removed::Absent) | None => absent += 1,
            }
        }
        Ok(())
    })?;
    count.warn();
    file.added = file.added.saturating_sub(removed);
    if removed > 0 {
        filter.save_as(&args.filter, filter.format, &filter.options)?;
    }
    let lines = |n: u64| format!("{} {}", HumanCount(n), if n == 1 { "line" } else { "lines" });
    if absent > 0 {
        note!("{name}: {} not in it; they were ignored", lines(absent));
    }
    if saturated > 0 {
        note!(
            "{name}: {} not removed: the items were added more often than a counter can count; \
             rebuild the filter with wider counters",
            lines(saturated)
        );
    }
    Ok(if absent + saturated > 0 { Exit::No } else { Exit::Yes })
}
