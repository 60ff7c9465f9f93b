//! `tamis dedup`: prints each record once, in first-seen order.

mod approx;
mod batch_reader;
mod by_hash;
mod check;
mod deduplicator;
mod digest;
mod key_set;
mod occurrences;
mod record_batch;
mod report;
mod sample;
mod seen;
mod sketch;
mod spill;
mod state;
mod stats;
mod stream;
mod window;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use clap::builder::Resettable;
use clap::{ArgGroup, Id};
use tamis::Hasher;
use tamis_state::Requirements;

use crate::arguments::byte_size::ByteSize;
use crate::arguments::hash_key::random_hasher;
use crate::arguments::memory_limit::left_bytes;
use crate::arguments::numbers::HumanCount;
use crate::commands::dedup::deduplicator::Deduplicator;
use crate::commands::dedup::key_set::{Keep, KeySet};
use crate::commands::dedup::occurrences::Counts;
use crate::commands::dedup::record_batch::RecordRule;
use crate::commands::dedup::sample::InputSample;
use crate::commands::dedup::seen::Budget;
use crate::commands::dedup::state::{StateFile, open_state};
use crate::commands::dedup::stats::{RunStats, StatsFormat};
use crate::commands::dedup::window::WindowArgs;
use crate::exit::{CommandResult, Failure};
use crate::io::input;
use crate::io::output::{folder, is_stdout, refuse_endless};
use crate::io::unpack;
use crate::records::key::{KeyArgs, KeyRule, RecordArgs, RecordForm};

/// Remove repeated lines: print the first occurrence of each line, in input order
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
// The time can also be read from a field, so `--delimiter` needs one option of this group.
#[command(group = ArgGroup::new("fields").args(["field", "time_field", "csv"]).multiple(true))]
#[command(mut_arg("delimiter", |arg| {
    let help = "Split records at DELIM (such as ',' or '\\t'); needs -k, --time-field or --csv";
    arg.requires(Resettable::<Id>::Reset).requires("fields").help(help)
}))]
pub struct Args {
    /// Files to read, plain or compressed (gzip, zstd, xz, bzip2); '-' or none is standard input
    files: Vec<PathBuf>,

    /// Write to FILE; replace FILE only after success (FILE may be one of the inputs)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    record: RecordArgs,

    #[command(flatten)]
    key: KeyArgs,

    /// Print only repeated lines: each repeated line once, or all occurrences after the first
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true,
        default_missing_value = "once", help_heading = "Output")]
    repeated: Option<Repeated>,

    /// Print only lines that occur once, at the end of the run
    #[arg(long, conflicts_with = "repeated", help_heading = "Output")]
    unique: bool,

    /// Print the number of occurrences before each line, as 'uniq -c' does, at the end of the run
    #[arg(short, long, help_heading = "Output")]
    count: bool,

    /// Print statistics and the accuracy of the result to stderr
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true,
        default_missing_value = "text", help_heading = "Output")]
    stats: Option<StatsFormat>,

    /// Compare whole keys instead of hashes: always exact, uses more memory
    #[arg(long, help_heading = "Accuracy and memory")]
    full: bool,

    /// Width of the compared hashes: 64 bits are enough for 60 million distinct lines, 128 for any
    /// number [default: by the size of the input; 128 for a new --state]
    #[arg(long, value_name = "BITS", value_parser = ["64", "128"],
        conflicts_with_all = ["full", "approx"], help_heading = "Accuracy and memory")]
    hash_bits: Option<String>,

    /// Allocate at most SIZE of memory, such as 512M. The pages of the program file (up to 10 MB)
    /// are not counted. A set that exceeds SIZE becomes approximate, with a note
    #[arg(long, value_name = "SIZE", help_heading = "Accuracy and memory")]
    memory: Option<ByteSize>,

    /// Fail if the result would become approximate
    #[arg(long, conflicts_with = "approx", help_heading = "Accuracy and memory")]
    exact: bool,

    /// Use an approximate filter from the start: a line that occurs for the first time is dropped
    /// with at most this probability
    #[arg(long, value_name = "RATE", value_parser = crate::records::key::rate,
        conflicts_with_all = ["full", "count", "unique"], help_heading = "Accuracy and memory")]
    approx: Option<f64>,

    /// Plan --approx for N distinct lines, such as 10M; with --window, for N lines in a window if
    /// the lines arrive evenly
    #[arg(long, value_name = "N", requires = "approx", help_heading = "Accuracy and memory")]
    items: Option<HumanCount>,

    /// Probability of a wrongly dropped line above which the exit status is 3
    #[arg(long, value_name = "RATE", value_parser = crate::records::key::rate, default_value = "0.0001",
        conflicts_with = "approx", help_heading = "Accuracy and memory")]
    rate: f64,

    /// Write to FILE each line that an approximate filter dropped, for a second pass
    #[arg(long, value_name = "FILE", conflicts_with_all = ["exact", "full", "count", "unique", "state"],
        help_heading = "Accuracy and memory")]
    suspects: Option<PathBuf>,

    #[command(flatten)]
    window: WindowArgs,

    /// Store the set of lines in FILE: later runs drop the lines of earlier runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["full", "count", "unique"],
        help_heading = "State between runs")]
    state: Option<PathBuf>,

    /// Discard the progress of a killed run instead of continuing the run
    #[arg(long, requires = "state", help_heading = "State between runs")]
    restart: bool,

    /// Save the state after each SIZE of input [default: 256M]
    #[arg(long, value_name = "SIZE", requires = "state", help_heading = "State between runs")]
    checkpoint: Option<ByteSize>,

    /// Use at most N threads: the second thread reads and hashes, the third thread unpacks
    /// [default: as many as are useful]
    #[arg(long, value_name = "N", value_parser = crate::arguments::numbers::threads)]
    threads: Option<NonZeroUsize>,

    /// Hash with this seed instead of a secret key. If the result may be approximate (with
    /// --approx, or with --memory and without --exact), the default is seed 0 unless --keyed or
    /// --state is given. With seed 0, equal input gives equal output
    #[arg(long, value_name = "N", help_heading = "Accuracy and memory")]
    seed: Option<u64>,

    /// Hash with a secret key, also with --approx and --memory. Use a key if an attacker can choose
    /// lines: without the key, the attacker can cause the loss of other users' lines. A --state
    /// always has its own key
    #[arg(long, conflicts_with_all = ["seed", "state"], help_heading = "Accuracy and memory")]
    keyed: bool,

    /// The hash function. The run chooses the hash function at its start.
    #[arg(skip)]
    hasher: OnceLock<Hasher>,
}

const EXAMPLES: &str = "\
Examples:
  tamis dedup urls.txt.gz > once.txt           first occurrences, in order
  tamis dedup -o list.txt list.txt             in place: replaced when all is done
  tamis dedup --repeated list.txt              which lines occur more than once
  tamis dedup --csv -k email people.csv        the first row for each email address
  tamis dedup -k2 access.tsv                   the first line for each value of field 2
  tamis dedup --json /url --url pages.jsonl    the first page for each canonical URL
  tamis dedup --memory 2G --stats huge.zst     at most 2 GiB; reports the accuracy
  tamis dedup --state seen.db today.txt        lines that no earlier day had
  tail -f app.log | tamis dedup --window 15m   a line that was not printed for a quarter of an hour
  tamis dedup --window 24h --json /user --time-json /at events.jsonl    each user once a day or so

Exit status: 0 done, 2 failed, 3 done, but more lines may be lost than --rate or --approx allows.";

/// The memory in bytes of the blocks that threads exchange.
const EXCHANGE_BYTES: u64 = 2 << 20;
/// One thread does all the work if the memory limit is at most this multiple of [`EXCHANGE_BYTES`],
/// unless the user sets the number of threads.
const MIN_LIMIT_FACTOR: u64 = 32;

/// The repeats that `--repeated` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Repeated {
    /// Each repeated line once, at its second occurrence
    Once,
    /// Every occurrence after the first
    All,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let started = Instant::now();
    args.check()?;
    args.key_rule().check(args.form())?;
    if let Some(timer) = args.window.timer(&args.key) {
        timer.check(args.form())?;
    }
    let hasher = args.choose_hasher()?;
    // With a state, a missing input is an error, because the state would record the run as
    // finished.
    let inputs = match args.state {
        Some(_) => input::checked(&args.files)?,
        None => input::present(&args.files, &[args.output.as_deref(), args.suspects.as_deref()])?,
    };
    refuse_endless(&inputs, args.output.as_deref())?;
    left_bytes(args.memory, &inputs, args.form().input)?;
    let state = args.open_state(hasher)?;
    args.hasher.get_or_init(|| state.as_ref().map_or(hasher, StateFile::hasher));
    let sample = InputSample::of(&inputs, args.form());
    let mut stats = if args.count || args.unique {
        args.count_occurrences(&inputs)?
    } else if args.full {
        args.full(&inputs)?
    } else {
        args.by_hash(&inputs, sample.as_ref(), state)?
    };
    stats.seconds = started.elapsed().as_secs_f64();
    args.report(&stats)
}

impl Args {
    fn hasher(&self) -> Hasher {
        *self.hasher.get().expect("chosen when the run begins")
    }

    /// Chooses the hasher of the run, or the hasher of a new state. `--seed` sets the seed of the
    /// hasher. The default is a random secret key, so that an attacker cannot choose input that
    /// makes the run slow. If the output depends on the hash, a run without a state uses seed 0,
    /// unless `--keyed` is set.
    fn choose_hasher(&self) -> Result<Hasher, Failure> {
        let may_be_approximate =
            self.approx.is_some() || self.memory.is_some() && !self.exact && !self.full;
        let is_free = !may_be_approximate || self.state.is_some();
        match self.seed {
            None if self.keyed || is_free => random_hasher(),
            seed => Ok(Hasher::mix(seed.unwrap_or(0))),
        }
    }

    fn budget(&self) -> Budget {
        let exchange_bytes = if self.is_memory_little() { 0 } else { EXCHANGE_BYTES };
        let own_bytes = unpack::OWN_BYTES + exchange_bytes + unpack::reserved_bytes();
        let mut max_bytes = self.memory.map_or(u64::MAX, |memory| memory.bytes - own_bytes);
        if self.state.is_some() && self.memory.is_some() {
            // The buffers for reading and writing the state file need memory too.
            max_bytes -= (max_bytes / 4).min(2 << 20);
        }
        let is_once = self.repeated == Some(Repeated::Once);
        Budget {
            // A second set holds the repeats that were printed.
            max_bytes: if is_once && self.memory.is_some() { max_bytes / 2 } else { max_bytes },
            is_exact: self.exact || self.full,
            target: self.approx.unwrap_or(self.rate),
        }
    }

    fn is_memory_little(&self) -> bool {
        self.memory.is_some_and(|memory| memory.bytes <= MIN_LIMIT_FACTOR * EXCHANGE_BYTES)
    }

    fn threads(&self) -> Option<NonZeroUsize> {
        self.threads.or_else(|| self.is_memory_little().then_some(NonZeroUsize::MIN))
    }

    fn count_occurrences(&self, inputs: &[PathBuf]) -> Result<RunStats, Failure> {
        let folder = match self.output.as_deref() {
            Some(path) if !is_stdout(path) => folder(path).to_path_buf(),
            _ => std::env::temp_dir(),
        };
        let counts = Counts::new(self.budget(), self.hasher(), folder);
        self.stream(inputs, Deduplicator::<u64>::Counts(Box::new(counts)), None)
    }

    fn full(&self, inputs: &[PathBuf]) -> Result<RunStats, Failure> {
        let max_bytes = self.budget().max_bytes;
        let set = || KeySet::new(Keep::Key, max_bytes);
        let again = (self.repeated == Some(Repeated::Once)).then(set);
        self.stream(inputs, Deduplicator::<u64>::Full { seen: set(), again }, None)
    }

    /// Opens the file of `--state`. A new file stores `hasher`.
    fn open_state(&self, hasher: Hasher) -> Result<Option<StateFile>, Failure> {
        let Some(path) = &self.state else { return Ok(None) };
        // A state grows from run to run, so its digests have 128 bits. A filter uses only 64 bits
        // of a hash of any width.
        let lasting_bits = if self.approx.is_none() { 128 } else { 64 };
        let wanted = Requirements {
            description: &self.description(),
            hasher,
            is_hasher_fixed: self.seed.is_some(),
            width_bits: self.hash_bits().unwrap_or(lasting_bits),
            is_width_fixed: self.hash_bits.is_some(),
        };
        open_state(path, &wanted).map(Some)
    }

    fn hash_bits(&self) -> Option<u32> {
        self.hash_bits.as_deref().map(|bits| if bits == "64" { 64 } else { 128 })
    }

    fn key_rule(&self) -> KeyRule {
        self.key.typed_rule()
    }

    fn form(&self) -> RecordForm {
        self.record.form(&self.key).within(self.memory)
    }

    fn rule(&self) -> RecordRule {
        RecordRule {
            key: self.key_rule(),
            hasher: self.hasher(),
            form: self.form(),
            keeps_keys: self.full || self.count || self.unique,
            timer: self.window.timer(&self.key),
        }
    }

    /// Returns the description of the keys and records of this run. The description must equal the
    /// description in the state.
    fn description(&self) -> String {
        let ends = if self.form().end.byte() == 0 { "NUL" } else { "newline" };
        let unpack = self.form().input.describe();
        let unpack = unpack.map_or_else(String::new, |option| format!(", {option}"));
        format!("{}, records end with {ends}{unpack}", self.key_rule().describe())
    }
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
            assert_eq!(hasher(line), Hasher::mix(0), "{line}");
        }
        assert_eq!(hasher("--seed 7"), Hasher::mix(7));
    }
}
