//! `tamis add`: adds items to an existing filter.

use std::path::PathBuf;

use tamis::{Answers, Kind};

use crate::build::judge;
use crate::clock::now_millis;
use crate::exit::{Failure, Outcome};
use crate::file_bytes::is_raw;
use crate::filter_file::{Trust, check_clock, check_unpacked, lock_to_change, read, save};
use crate::foreign::{Foreign, judge_changed};
use crate::foreign_items::each_keys;
use crate::input;
use crate::items::{ItemArgs, hash_all};
use crate::metadata::expect_same_items;
use crate::opened::{Opened, Opener};
use crate::repeats::{Inserter, RepeatArgs, Repeats};
use crate::told::TellArgs;

/// Adds items to a filter
///
/// The command changes the filter in memory and then replaces the file. The file stays unchanged if anything fails,
/// or if the filter would exceed its rate.
///
/// Without --copies, one run of `tamis add` inserts a repeated line once into a cuckoo filter. A second run inserts it again. Delete a line at most as
/// often as it was inserted: one more delete may remove another line. With --if-absent, adding the same
/// file again changes nothing; do not delete from such a filter. A cuckoo filter of RedisBloom always accepts a line
/// only if it does not have it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis add seen.tamis today.txt
  tail -n +2 users.csv | tamis add users.tamis -k 2 -d ,

Exit status: 0 added, 2 failed, 3 added with --force, but over its rate.")]
pub struct Args {
    /// The filter to change
    filter: PathBuf,

    /// Add with exit status 3 even if there are more items than the rate allows
    #[arg(long)]
    force: bool,

    /// Insert a line into a cuckoo or counting filter only if the filter does not have it. A false positive is then
    /// not stored: do not delete from such a filter
    #[arg(long, conflicts_with = "copies")]
    if_absent: bool,

    #[command(flatten)]
    repeats: RepeatArgs,

    #[command(flatten)]
    items_from: ItemArgs,

    // This is the last field: clap puts later options under its heading in the help.
    #[command(flatten)]
    tell: TellArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let paths = input::checked(&args.items_from.files)?;
    let lock = lock_to_change(&args.filter)?;
    if !is_raw(&args.filter, &args.tell) {
        check_unpacked(&args.filter)?;
    }
    let tell = TellArgs { asks_items: true, ..args.tell.clone() };
    let mut opener = Opener::new(&tell);
    let opened = opener.one(&args.filter, Trust::Verify)?;
    opener.finish()?;
    if let Opened::Foreign(file) = opened {
        return args.add_to_foreign(*file, &paths);
    }
    let mut file = read(&args.filter)?;
    let repeats = args.repeats(file.filter.plan().kind())?;
    let rule = args.items_from.key.rule();
    expect_same_items(&file.metadata, &rule, &input::name(&args.filter))?;
    check_clock(&file.filter, now_millis(), &input::name(&args.filter))?;
    let advice = match repeats {
        Repeats::Once => {
            "if it has some of these lines already, skip them with --if-absent if you delete nothing from this filter; \
             otherwise build a larger one with --items N"
        }
        _ => repeats.advice(file.filter.plan().kind()),
    };
    let (hasher, mut inserter) = (file.filter.hasher(), Inserter::new(repeats, u64::MAX, advice)?);
    let delimiter = args.items_from.records.delimiter();
    let tally = hash_all(&paths, &rule, delimiter, hasher, |hashes| {
        // A window filter records each batch at the time when the batch arrives.
        file.filter.advance(now_millis());
        inserter.insert(&mut file.filter, hashes, &args.filter)
    })?;
    file.added = file.added.saturating_add(tally.items);
    tally.warn();
    let exit = judge(&file, &args.filter, args.force)?;
    save(&args.filter, &file)?;
    drop(lock);
    Ok(exit)
}

impl Args {
    fn repeats(&self, kind: Kind) -> Result<Repeats, Failure> {
        match (self.if_absent, kind.can_remove()) {
            (false, _) => self.repeats.of(Some(kind)),
            (true, true) => Ok(Repeats::IfAbsent),
            (true, false) => Err(Failure::new(
                "--if-absent is for counting and cuckoo filters: others hold a line once in any case",
            )),
        }
    }

    fn add_to_foreign(&self, mut file: Foreign, paths: &[PathBuf]) -> Outcome {
        let options = [
            ("--copies", "cuckoo filters", self.repeats.copies),
            ("--if-absent", "counting and cuckoo filters", self.if_absent),
        ];
        if let Some((option, kinds, _)) = options.into_iter().find(|(_, _, is_given)| *is_given) {
            let (name, format) = (&file.name, file.format.name);
            return Err(Failure::new(format!(
                "{name}: {option} is for {kinds} of Tamis, not for {format}"
            )));
        }
        file.check_output(&self.filter)?;
        let (rule, delimiter) = (self.items_from.key.rule(), self.items_from.records.delimiter());
        let (funnel, mut answers) = (file.funnel()?, Answers::new());
        let tally = each_keys(paths, &rule, delimiter, funnel, |keys| {
            file.contents.insert_each(keys, &mut answers).map_err(|error| {
                Failure::new(format!("{}: {error}; nothing was written", file.name))
            })
        })?;
        tally.warn();
        let exit = judge_changed(&file, self.force)?;
        file.save(&self.filter, file.format, &file.told)?;
        Ok(exit)
    }
}
