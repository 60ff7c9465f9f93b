//! `tamis add`: adds items to an existing filter.

use std::path::PathBuf;

use tamis::{Answers, Kind};

use crate::arguments::decode_options::DecodeArgs;
use crate::clock::{check_clock, now_millis};
use crate::exit::{CommandResult, Exit, Failure};
use crate::filters::change_lock::lock_to_change;
use crate::filters::open_filter::{OpenFilter, Trust};
use crate::filters::opener::Opener;
use crate::filters::rate_notes::Notes;
use crate::filters::redis_url::is_url;
use crate::io::input;
use crate::records::items::ItemArgs;
use crate::records::repeats::{Inserter, RepeatArgs, RepeatPolicy};

/// Add items to a filter
///
/// The command changes the filter in memory and then replaces the file. If anything fails, or if
/// the filter would exceed its rate, the file stays unchanged.
///
/// A filter may be a key of a Redis or Valkey server: redis://HOST/KEY. For a key, the command
/// sends the items to the server in batches. Items that were added to a key before a failure stay
/// in the filter. A key needs --force only if its filter exceeds its rate before the command
/// starts.
///
/// Without --copies, one run of `tamis add` inserts a repeated line once into a cuckoo filter. A
/// second run of `tamis add` inserts the same line again. Delete a line at most as often as it was
/// inserted: one more delete may remove another line. With --if-absent, adding the same file again
/// changes nothing. Do not delete from a filter that was filled with --if-absent. A cuckoo filter
/// of RedisBloom accepts a line only if the filter does not have the line.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis add seen.tamis today.txt
  tail -n +2 users.csv | tamis add users.tamis -k 2 -d ,
  tamis add redis://localhost/seen today.txt

Exit status: 0 added, 2 failed, 3 added, but over its rate (to a file only with --force).")]
pub struct Args {
    /// The filter to change
    filter: PathBuf,

    /// Write the filter even if its false positive rate exceeds the planned rate; the exit status
    /// is 3
    #[arg(long)]
    force: bool,

    /// Insert a line into a cuckoo or counting filter only if the filter does not have the line.
    /// With --if-absent, a line that is a false positive is not stored: do not delete lines from
    /// the filter
    #[arg(long, conflicts_with = "copies")]
    if_absent: bool,

    #[command(flatten)]
    repeats: RepeatArgs,

    #[command(flatten)]
    items_from: ItemArgs,

    // The decode options are the last field, because clap puts all options after this field under
    // the heading of the decode options.
    #[command(flatten)]
    decode: DecodeArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let paths = input::checked(&args.items_from.files)?;
    if is_url(&args.filter) {
        return args.add_on_server(&paths);
    }
    let _lock = lock_to_change(&args.filter)?;
    let decode = DecodeArgs { requires_funnel: true, ..args.decode.clone() };
    let mut opener = Opener::new(&decode);
    let filter = opener.one(&args.filter, Trust::Assume)?;
    opener.finish()?;
    filter.check_unpacked()?;
    filter.check_output(&args.filter)?;
    let mut filter = filter.into_decoded()?;
    let mut inserter = args.inserter(&mut filter)?;
    let encoding = filter.encoding(&args.items_from.key.rule())?;
    let mut answers = Answers::new();
    let count = args.items_from.reader(&paths).each_batch(encoding, |batch| {
        match filter.tamis_mut() {
            Some(file) => {
                // A window filter records each batch at the time when the batch arrives.
                file.filter.advance(now_millis());
                inserter.insert(&mut file.filter, batch.hashes(), &args.filter)?;
                file.added = file.added.saturating_add(batch.len() as u64);
                Ok(())
            }
            None => {
                let inserted = filter.contents_mut().insert_each(&batch.keys(), &mut answers);
                inserted.map_err(|error| {
                    Failure::new(format!("{}: {error}; nothing was written", filter.name))
                })
            }
        }
    })?;
    count.warn();
    filter.save(&args.filter, args.force, Notes::Rate)
}

impl Args {
    /// Adds items to a filter on a Redis server. Items that were added before a failure stay in the
    /// filter.
    fn add_on_server(&self, paths: &[PathBuf]) -> CommandResult {
        let decode = DecodeArgs { requires_funnel: true, ..self.decode.clone() };
        let mut opener = Opener::new(&decode);
        let name = input::name(&self.filter);
        let mut target = opener.redis(&self.filter)?.ok_or_else(|| {
            Failure::new(format!(
                "{name}: 'tamis add' cannot change a value of this format on a server: use \
                 redis-cli, such as SETBIT for a set of integers"
            ))
        })?;
        opener.finish()?;
        for (option, is_given) in
            [("--copies", self.repeats.copies), ("--if-absent", self.if_absent)]
        {
            if is_given {
                return Err(Failure::new(format!("{name}: {option} is for filters in files")));
            }
        }
        if let Some(excess) = target.excess.as_ref().filter(|_| !self.force) {
            return Err(Failure::new(format!(
                "{name}: {excess}; nothing was added: build one for more items, or accept it with \
                 --force"
            )));
        }
        let mut added = 0_u64;
        let reader = self.items_from.reader(paths);
        let count = reader.each_batch(target.encoding(), |batch| {
            target.insert_each(batch)?;
            added += batch.len() as u64;
            Ok(())
        });
        let count = count.map_err(|failure| match failure {
            Failure::Message(message) => Failure::new(format!(
                "{message}; at least the first {added} items were added: repeat the command"
            )),
            Failure::BrokenPipe => failure,
        })?;
        count.warn();
        target.finish()?;
        let is_over_rate = target.reopened(&decode)?.report();
        Ok(if is_over_rate { Exit::OverRate } else { Exit::Yes })
    }

    /// Returns the inserter for the filter.
    fn inserter(&self, filter: &mut OpenFilter) -> Result<Inserter, Failure> {
        let (name, format) = (filter.name.clone(), filter.format.name);
        let Some(file) = filter.tamis_mut() else {
            let options = [
                ("--copies", "cuckoo filters", self.repeats.copies),
                ("--if-absent", "counting and cuckoo filters", self.if_absent),
            ];
            return match options.into_iter().find(|(_, _, is_given)| *is_given) {
                Some((option, kinds, _)) => Err(Failure::new(format!(
                    "{name}: {option} is for {kinds} of Tamis, not for {format}"
                ))),
                None => Inserter::new(RepeatPolicy::Each, u64::MAX, ""),
            };
        };
        check_clock(&file.filter, &name)?;
        let kind = file.filter.plan().kind();
        let repeats = self.repeat_policy(kind)?;
        let advice = match repeats {
            RepeatPolicy::Once => {
                "if it has some of these lines already, skip them with --if-absent if you delete \
                 nothing from this filter; otherwise build a larger one with --items N"
            }
            _ => repeats.advice(kind),
        };
        Inserter::new(repeats, u64::MAX, advice)
    }

    fn repeat_policy(&self, kind: Kind) -> Result<RepeatPolicy, Failure> {
        match (self.if_absent, kind.can_remove()) {
            (false, _) => self.repeats.of(Some(kind)),
            (true, true) => Ok(RepeatPolicy::IfAbsent),
            (true, false) => Err(Failure::new(
                "--if-absent is for counting and cuckoo filters: others hold a line once in any \
                 case",
            )),
        }
    }
}
