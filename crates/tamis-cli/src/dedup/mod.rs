//! `tamis dedup`: each record once, in first-seen order.

mod approx;
mod cut;
mod cuts;
mod digest;
mod occurrences;
mod seen;
mod sketch;
mod spill;
mod state;
mod stats;
mod stream;
mod tally;
mod window;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Instant, UNIX_EPOCH};

use clap::builder::Resettable;
use clap::{ArgGroup, Id};
use tamis::Hasher;

use self::approx::Expected;
use self::cut::Rule;
use self::digest::Width;
use self::seen::{Budget, Seen};
use self::state::{Checkpoint, InputId, State, Wanted};
use self::stats::{Form, Stats, shown};
use self::stream::{Emit, Judge, Source, Stream, WORTH_SAYING};
use self::tally::{Keep, Tally};
use self::window::WindowArgs;
use crate::budget::{OWN_BYTES, left_bytes};
use crate::count::Count;
use crate::exit::{Exit, Failure, Outcome};
use crate::hash_key::random_hasher;
use crate::input::{self, Sample};
use crate::key::{KeyArgs, RecordArgs};
use crate::notice;
use crate::output::{Mark, Output, folder, is_same_file, is_stdout, refuse_endless};
use crate::size::Size;
use crate::temporary::hint_at_interruption;
use crate::unpack;

/// Removes repeated lines: prints the first occurrence of each, in order
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
// Times are fields too: the delimiter may be for them alone.
#[command(group = ArgGroup::new("fields").args(["field", "time_field"]).multiple(true))]
#[command(mut_arg("delimiter", |arg| {
    let help = "Split records at DELIM (such as ',' or '\\t'); needs -k or --time-field";
    arg.requires(Resettable::<Id>::Reset).requires("fields").help(help)
}))]
pub struct Args {
    /// Files to read, plain or packed (gzip, zstd, xz, bzip2); '-' or none is standard input
    files: Vec<PathBuf>,

    /// Write to FILE, which is replaced when all is done (it may be one of the inputs)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    record: RecordArgs,

    #[command(flatten)]
    key: KeyArgs,

    /// Print repeats instead: each repeated line once, or all occurrences after the first
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true,
        default_missing_value = "once", help_heading = "What is printed")]
    repeated: Option<Repeated>,

    /// Print only lines that occur once; kept in memory until the end
    #[arg(long, conflicts_with = "repeated", help_heading = "What is printed")]
    unique: bool,

    /// Print how often each line occurs before it, as 'uniq -c' does; at the end
    #[arg(short, long, help_heading = "What is printed")]
    count: bool,

    /// Print what was done and what it is worth to stderr
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true,
        default_missing_value = "text", help_heading = "What is printed")]
    stats: Option<Form>,

    /// Compare whole keys, not their hashes: exact whatever happens, with more memory
    #[arg(long, help_heading = "How exact, how large")]
    full: bool,

    /// Width of the hashes compared: 64 serve 60 million distinct lines, 128 any number
    /// [default: by the size of the input; 128 for a new --state]
    #[arg(long, value_name = "BITS", value_parser = ["64", "128"],
        conflicts_with_all = ["full", "approx"], help_heading = "How exact, how large")]
    hash_bits: Option<String>,

    /// Stay within SIZE, such as 512M; a set that outgrows it becomes approximate, with a note
    #[arg(long, value_name = "SIZE", help_heading = "How exact, how large")]
    memory: Option<Size>,

    /// Fail rather than become approximate
    #[arg(long, conflicts_with = "approx", help_heading = "How exact, how large")]
    exact: bool,

    /// Be approximate from the start: a new line is lost with at most this chance
    #[arg(long, value_name = "RATE", value_parser = crate::key::rate,
        conflicts_with_all = ["full", "count", "unique"], help_heading = "How exact, how large")]
    approx: Option<f64>,

    /// Plan --approx for N distinct lines (such as 10M); with --window for N in a window, if they
    /// come evenly
    #[arg(long, value_name = "N", requires = "approx", help_heading = "How exact, how large")]
    items: Option<Count>,

    /// Chance of a loss above which a run that became approximate ends with status 3
    #[arg(long, value_name = "RATE", value_parser = crate::key::rate, default_value = "0.0001",
        conflicts_with = "approx", help_heading = "How exact, how large")]
    rate: f64,

    /// Write lines dropped on an approximate answer to FILE, to be checked by a second pass
    #[arg(long, value_name = "FILE", conflicts_with_all = ["exact", "full", "count", "unique", "state"],
        help_heading = "How exact, how large")]
    suspects: Option<PathBuf>,

    #[command(flatten)]
    window: WindowArgs,

    /// Remember lines in FILE, so that later runs drop what earlier ones have seen
    #[arg(long, value_name = "FILE", conflicts_with_all = ["full", "count", "unique"],
        help_heading = "Between runs")]
    state: Option<PathBuf>,

    /// Forget a run that was killed, instead of going on with it
    #[arg(long, requires = "state", help_heading = "Between runs")]
    restart: bool,

    /// Save the state after each SIZE of input
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256M",
        requires = "state",
        help_heading = "Between runs"
    )]
    checkpoint: Size,

    /// Use at most N threads: the second reads and hashes, the third unpacks
    /// [default: all that help]
    #[arg(long, value_name = "N", value_parser = crate::count::threads)]
    threads: Option<NonZeroUsize>,

    /// Hash without a secret key, by this seed. Runs whose output depends on the hash (--approx, --memory without
    /// --exact) do so by seed 0 unless --keyed or --state is given, so that equal input gives equal output
    #[arg(long, value_name = "N", help_heading = "How exact, how large")]
    seed: Option<u64>,

    /// Hash with a secret key of this run also with --approx and --memory, for lines that an attacker may choose: without
    /// the key the attacker can have lines of others dropped. A --state has a key of its own
    #[arg(long, conflicts_with_all = ["seed", "state"], help_heading = "How exact, how large")]
    keyed: bool,

    /// Chosen when the run begins.
    #[arg(skip)]
    hasher: OnceLock<Hasher>,
}

const EXAMPLES: &str = "\
Examples:
  tamis dedup urls.txt.gz > once.txt           first occurrences, in order
  tamis dedup -o list.txt list.txt             in place: replaced when all is done
  tamis dedup --repeated list.txt              which lines occur more than once
  tamis dedup -d, -k2 people.csv               the first line for each value of column 2
  tamis dedup --json /url --url pages.jsonl    the first page for each canonical URL
  tamis dedup --memory 2G --stats huge.zst     never more than 2 GiB; says what that cost
  tamis dedup --state seen.db today.txt        lines that no earlier day had
  tail -f app.log | tamis dedup --window 15m   a line that was not printed for a quarter of an hour
  tamis dedup --window 24h --json /user --time-json /at events.jsonl    each user once a day or so

Exit status: 0 done, 2 could not, 3 done but more lines may be lost than --rate or --approx allows.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Repeated {
    /// Each repeated line once, at its second occurrence.
    Once,
    /// Every occurrence after the first.
    All,
}

/// What the program needs for blocks on their way between threads; with no more memory than so many times that, one thread
/// does it all unless the user asks for more.
const BETWEEN_BYTES: u64 = 2 << 20;
const BETWEEN_WORTH: u64 = 32;

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let started = Instant::now();
    args.check()?;
    let hasher = args.choose_hasher()?;
    // A state would remember a run without the missing input as done.
    let inputs = match args.state {
        Some(_) => input::checked(&args.files)?,
        None => input::present(&args.files)?,
    };
    refuse_endless(&inputs, args.output.as_deref())?;
    left_bytes(args.memory, &inputs)?;
    let found = args.open_state(hasher)?;
    args.hasher.get_or_init(|| found.as_ref().map_or(hasher, |found| found.state.hasher()));
    let sample = Sample::of(&inputs, args.record.delimiter());
    let mut stats = if args.count || args.unique {
        args.tally(&inputs)?
    } else if args.full {
        args.full(&inputs)?
    } else {
        args.by_hash(&inputs, sample.as_ref(), found)?
    };
    stats.set_time(started.elapsed());
    args.report(&stats)
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        if self.repeated == Some(Repeated::Once)
            && !self.count
            && (self.approx.is_some() || self.state.is_some() || self.suspects.is_some())
        {
            return Err(Failure::new(
                "--repeated=once needs an exact set of this run; use --repeated=all with --approx, \
                 --state or --suspects",
            ));
        }
        // Clap drops `requires` where the option that is required conflicts with another one.
        if self.items.is_some() && self.approx.is_none() {
            return Err(Failure::new(
                "--items N is the number of lines that --approx is planned for, and has no effect here: leave it out",
            ));
        }
        if self.restart && self.state.is_none() {
            return Err(Failure::new(
                "--restart forgets an unfinished run of a --state, and has no effect here: leave it out",
            ));
        }
        let is_once = self.repeated == Some(Repeated::Once);
        self.window.check(self.approx.is_some(), self.items.is_some(), is_once)?;
        self.check_files()
    }

    /// Refuses one file in two uses, where one would destroy the other.
    fn check_files(&self) -> Result<(), Failure> {
        let is_input = |path: &Path| self.files.iter().any(|file| is_same_file(file, path));
        let output = self.output.as_deref();
        if self.state.is_some() && output.is_some_and(is_input) {
            return Err(Failure::new(
                "with --state the output cannot be one of the inputs: a run that is killed needs \
                 the input again",
            ));
        }
        for (option, path) in [("--state", &self.state), ("--suspects", &self.suspects)] {
            let Some(path) = path else { continue };
            let is_output = output.is_some_and(|output| is_same_file(output, path));
            if is_output || is_input(path) {
                let other = if is_output { "the output" } else { "an input" };
                let path = path.display();
                return Err(Failure::new(format!(
                    "{path}: is {other} too; name another file for {option}"
                )));
            }
        }
        Ok(())
    }

    fn hasher(&self) -> Hasher {
        *self.hasher.get().expect("chosen when the run begins")
    }

    /// Chooses the hash of this run, or of a new state: with a new secret key, so that no input makes the run slow, but
    /// where the output depends on the hash.
    fn choose_hasher(&self) -> Result<Hasher, Failure> {
        let may_be_approximate =
            self.approx.is_some() || self.memory.is_some() && !self.exact && !self.full;
        let is_free = !may_be_approximate || self.state.is_some();
        match self.seed {
            None if self.keyed || is_free => random_hasher(),
            seed => Ok(Hasher::xxh3(seed.unwrap_or(0))),
        }
    }

    fn budget(&self) -> Budget {
        let between_bytes = if self.is_memory_little() { 0 } else { BETWEEN_BYTES };
        let own_bytes = OWN_BYTES + between_bytes + unpack::aside();
        let mut max_bytes = self.memory.map_or(u64::MAX, |memory| memory.bytes - own_bytes);
        if self.state.is_some() {
            // Its file is read and written too.
            max_bytes -= (max_bytes / 4).min(2 << 20);
        }
        let is_once = self.repeated == Some(Repeated::Once);
        Budget {
            // Repeats that are printed once are kept in a second set.
            max_bytes: if is_once { max_bytes / 2 } else { max_bytes },
            is_exact: self.exact || self.full,
            target: self.approx.unwrap_or(self.rate),
        }
    }

    fn is_memory_little(&self) -> bool {
        self.memory.is_some_and(|memory| memory.bytes <= BETWEEN_WORTH * BETWEEN_BYTES)
    }

    fn threads(&self) -> Option<NonZeroUsize> {
        self.threads.or_else(|| self.is_memory_little().then_some(NonZeroUsize::MIN))
    }

    fn emit(&self) -> Emit {
        match self.repeated {
            None => Emit::First,
            Some(Repeated::All) => Emit::EachRepeat,
            Some(Repeated::Once) => Emit::OneRepeat,
        }
    }

    fn tally(&self, inputs: &[PathBuf]) -> Result<Stats, Failure> {
        let run = occurrences::Run {
            budget: self.budget(),
            folder: match self.output.as_deref() {
                Some(path) if !is_stdout(path) => folder(path).to_path_buf(),
                _ => std::env::temp_dir(),
            },
            rule: self.rule(),
            output: Output::open(self.output.as_deref())?,
            threads: self.threads(),
            with_counts: self.count,
            counts: match (self.unique, self.repeated) {
                (true, _) => 1..=1,
                (false, Some(_)) => 2..=u64::MAX,
                (false, None) => 1..=u64::MAX,
            },
        };
        run.run(inputs)
    }

    fn full(&self, inputs: &[PathBuf]) -> Result<Stats, Failure> {
        let max_bytes = self.budget().max_bytes;
        let tally = || Tally::new(Keep::Key, max_bytes);
        let again = (self.emit() == Emit::OneRepeat).then(tally);
        let judge = Judge::<u64>::Full { seen: tally(), again };
        let output = Output::open(self.output.as_deref())?;
        self.stream(judge, output, None)?.run(self.source(inputs), Checkpoint::default())
    }

    /// Opens the file of `--state`; a new one gets `hasher`.
    fn open_state(&self, hasher: Hasher) -> Result<Option<state::Found>, Failure> {
        let Some(path) = &self.state else { return Ok(None) };
        // A state grows from run to run. A filter takes 64 bits of any hash.
        let lasting_bits = if self.approx.is_none() { 128 } else { 64 };
        let wanted = Wanted {
            description: &self.description(),
            hasher,
            is_hasher_fixed: self.seed.is_some(),
            width_bits: self.hash_bits().unwrap_or(lasting_bits),
            is_width_fixed: self.hash_bits.is_some(),
        };
        State::open(path, &wanted).map(Some)
    }

    fn hash_bits(&self) -> Option<u32> {
        self.hash_bits.as_deref().map(|bits| if bits == "64" { 64 } else { 128 })
    }

    /// Removes repeats by hash. Its width is that of the state or of `--hash-bits`, or follows from the size of the input.
    fn by_hash(
        &self,
        inputs: &[PathBuf],
        sample: Option<&Sample>,
        found: Option<state::Found>,
    ) -> Result<Stats, Failure> {
        // Later lines may be shorter than the first ones.
        let most = sample.map_or(0.0, |sample| sample.records * 1.5) as u64;
        let is_large = tamis::expected_collisions(most, 64) > WORTH_SAYING;
        // A filter takes 64 bits of any hash.
        let usual = if is_large && self.approx.is_none() { 128 } else { 64 };
        let bits = match &found {
            Some(found) => found.state.width_bits(),
            None => self.hash_bits().unwrap_or(usual),
        };
        if bits == 64 {
            self.by_digest::<u64>(inputs, sample, found)
        } else {
            self.by_digest::<u128>(inputs, sample, found)
        }
    }

    fn by_digest<D: Width>(
        &self,
        inputs: &[PathBuf],
        sample: Option<&Sample>,
        found: Option<state::Found>,
    ) -> Result<Stats, Failure> {
        let budget = self.budget();
        if let Some(recent) = self.window.recent::<D>(self.approx, self.items, budget.max_bytes) {
            let judge = Judge::Window(Box::new(recent?));
            let output = Output::open(self.output.as_deref())?;
            return self
                .stream(judge, output, None)?
                .run(self.source(inputs), Checkpoint::default());
        }
        let mut seen = if self.approx.is_some() {
            let guess = sample.filter(|sample| sample.is_bound).map(|s| s.records as u64);
            let expected = match (self.items, guess) {
                (Some(Count(items)), _) => Expected::Stated(items),
                (None, Some(records)) => Expected::Guessed(records),
                (None, None) => Expected::Unknown,
            };
            Seen::<D>::approx(budget, expected)?
        } else {
            Seen::<D>::exact(budget)
        };
        let mut from = Checkpoint { inputs: described(inputs), ..Checkpoint::default() };
        let Some(found) = found else {
            let output = Output::open(self.output.as_deref())?;
            let again = (self.emit() == Emit::OneRepeat).then(|| Box::new(Seen::exact(budget)));
            let judge = Judge::Digests { seen, again };
            return self.stream(judge, output, None)?.run(self.source(inputs), from);
        };
        let mut state = found.state;
        let killed = found.killed.filter(|_| !self.restart);
        if let Some((checkpoint, _)) = &killed
            && checkpoint.inputs != from.inputs
        {
            let names: Vec<_> = checkpoint.inputs.iter().map(|id| id.name.as_str()).collect();
            return Err(Failure::new(format!(
                "a run over {} was killed before its end: give it the same input again, or forget it \
                 with --restart",
                names.join(", ")
            )));
        }
        // The same run, if it is the last one: files unchanged, and an output to tell by.
        let is_known = from.inputs.iter().all(|id| id.file.is_some());
        let again = found.last.filter(|(last, _)| {
            killed.is_none() && !self.restart && is_known && last.inputs == from.inputs
        });
        let mut begin_at = None;
        if let Some((last, start)) = again
            && let Some((was, is)) = last.output.zip(Mark::of_output(self.output.as_deref()))
        {
            if is.continues(&was) {
                state.begin(None)?;
                note!("this run was finished before; its output is left as it is");
                return Ok(Stats { records: last.records, ..Stats::default() });
            }
            begin_at = is.is_cut(&was).then_some(start);
        }
        let mark = killed.as_ref().and_then(|(checkpoint, _)| checkpoint.output);
        let (output, is_resumed) = Output::open_resumable(self.output.as_deref(), mark.as_ref())?;
        hint_at_interruption(if output.is_resumable() {
            "run the same command again to go on from there, or add --restart to forget this run"
                .into()
        } else {
            "nothing of this run is remembered; run the same command again".into()
        });
        match killed {
            Some((checkpoint, end)) if is_resumed => {
                state.begin(Some(end))?;
                from = checkpoint;
            }
            _ => state.begin(begin_at)?,
        }
        let (mut digests, mut new) = (Vec::new(), tamis::Answers::new());
        state.replay(|bytes| {
            D::read_each(bytes, &mut digests);
            seen.insert_each(&digests, &mut new).map(drop)
        })?;
        let judge = Judge::Digests { seen, again: None };
        self.stream(judge, output, Some(state))?.run(self.source(inputs), from)
    }

    fn stream<D: Width>(
        &self,
        judge: Judge<D>,
        output: Output,
        state: Option<State>,
    ) -> Result<Stream<D>, Failure> {
        let suspects = self.suspects.as_deref().map(|path| Output::open(Some(path))).transpose()?;
        Ok(Stream {
            judge,
            emit: self.emit(),
            output,
            suspects,
            state,
            checkpoint_bytes: self.checkpoint.bytes.max(1),
        })
    }

    fn source<'a>(&self, paths: &'a [PathBuf]) -> Source<'a> {
        Source { paths, rule: self.rule(), threads: self.threads() }
    }

    fn rule(&self) -> Rule {
        Rule {
            key: self.key.rule(),
            hasher: self.hasher(),
            delimiter: self.record.delimiter(),
            keeps_keys: self.full || self.count || self.unique,
            timer: self.window.timer(&self.key),
        }
    }

    /// Returns what a state must have been made with to be used by this run.
    fn description(&self) -> String {
        let ends = if self.record.delimiter() == 0 { "NUL" } else { "newline" };
        format!("{}, records end with {ends}", self.key.rule().describe())
    }

    fn report(&self, stats: &Stats) -> Outcome {
        if let Some(form) = self.stats {
            notice::line(stats.show(form));
        }
        if stats.timeless > 0 && (self.stats.is_none() || stats.timeless == stats.records) {
            let timeless = stats::grouped(stats.timeless);
            let lines = if stats.timeless == 1 { "line" } else { "lines" };
            note!("{timeless} {lines} without a time: taken as of the latest one before");
            if stats.timeless == stats.records {
                return Err(Failure::new(
                    "no line had a time that can be read: is the field right? Unix seconds, milliseconds and \
                     2026-11-21T10:00:00Z are",
                ));
            }
        }
        if stats.late > 0 && self.stats.is_none() {
            let late = stats::grouped(stats.late);
            let lines = if stats.late == 1 { "line" } else { "lines" };
            note!(
                "{late} {lines} more than a window older than one before: taken as of the latest; was one \
                 time far ahead?"
            );
        }
        let lost = shown(stats.expected_lost);
        let Some((rate, target)) = stats.rate.zip(stats.target_rate) else {
            if stats.expected_lost > WORTH_SAYING && self.stats.is_none() {
                note!("{lost} lines are expected to have been taken for another");
            }
            return Ok(Exit::Yes);
        };
        // The bits of a window tell its rate with an error, which may lie above the target by chance.
        let is_over = stats.window.as_ref().map_or(rate > target, |window| window.over_rate);
        if self.approx.is_none() || is_over {
            let distinct = stats::grouped(stats.distinct);
            let what = match (self.repeated, stats.expected_wrong) {
                (Some(_), wrong) if !self.count => {
                    let wrong = shown(wrong);
                    format!(
                        "{wrong} lines that occur once are expected to be printed as repeats, and {lost} repeats to \
                         be left out"
                    )
                }
                (_, wrong) if self.unique => {
                    let lost = shown(stats.expected_lost + wrong);
                    format!("{lost} lines that occur once are expected to be left out")
                }
                (_, wrong) if self.count => {
                    let wrong = shown(wrong);
                    format!(
                        "{lost} new lines are expected to be lost beside {distinct} distinct ones, and {wrong} counts \
                         to be too high"
                    )
                }
                _ => format!(
                    "{lost} new lines are expected to be lost beside {distinct} distinct ones"
                ),
            };
            note!("approximate: {what}");
        }
        if is_over {
            let advice = match (self.window.is_some(), self.items, self.memory, self.approx) {
                (true, ..) => "more lines came at a time than planned; give a larger --items",
                (_, Some(_), None, _) => "give a larger --items",
                (_, Some(_), Some(_), _) => "give more --memory, and a larger --items",
                (_, None, _, Some(_)) => {
                    "give more --memory, or say how many lines come with --items N"
                }
                (_, None, _, None) => "give more --memory",
            };
            let of = if self.count || self.unique || self.repeated.is_some() {
                "to be wrong about a line"
            } else {
                "to lose a new line"
            };
            note!("the chance {of} rose to {rate:.1e}, above the {target:.1e} asked for; {advice}");
            return Ok(Exit::OverRate);
        }
        Ok(Exit::Yes)
    }
}

/// Returns what a later run will know the inputs by.
fn described(inputs: &[PathBuf]) -> Vec<InputId> {
    let file = |path: &PathBuf| {
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let is_named = !input::is_stdin(path);
        is_named.then_some((metadata.len(), changed.as_nanos() as u64))
    };
    inputs.iter().map(|path| InputId { name: input::name(path), file: file(path) }).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn hasher(line: &str) -> Hasher {
        let words = std::iter::once("dedup").chain(line.split_whitespace());
        Program::parse_from(words).args.choose_hasher().unwrap()
    }

    #[test]
    fn each_run_has_its_own_key_where_the_output_does_not_depend_on_it() {
        for line in [
            "",
            "--full",
            "--count",
            "--window 1h",
            "--exact --memory 1G",
            "--approx 0.01 --keyed",
            "--state s",
            "--approx 0.01 --state s",
        ] {
            assert!(hasher(line).is_keyed(), "{line}");
            assert_ne!(hasher(line), hasher(line), "{line}");
        }
        for line in ["--approx 0.01", "--memory 1G", "--seed 0", "--state s --seed 0"] {
            assert_eq!(hasher(line), Hasher::xxh3(0), "{line}");
        }
        assert_eq!(hasher("--seed 7"), Hasher::xxh3(7));
    }
}
