//! `tamis check`: prints the lines that are in a filter.

use std::io;
use std::path::{Path, PathBuf};

use tamis::{Answers, AnyFilter, BitView, Filter as _, Hasher};
use tamis_formats::{Funnel, TamisFile};

use crate::clock::now_millis;
use crate::count::{Rate, holds};
use crate::exit::{Exit, Failure, Outcome};
use crate::filter_file::{Source, Trust};
use crate::foreign::Foreign;
use crate::foreign_items::{Keys, no_item};
use crate::input::{self, Input};
use crate::key::{KeyArgs, KeyRule, RecordArgs};
use crate::metadata::expect_same_items;
use crate::opened::{Opened, Opener};
use crate::output::{Output, refuse_endless};
use crate::parquet_table;
use crate::progress::Progress;
use crate::records::{Blocks, records};
use crate::told::TellArgs;

/// Prints the lines that are in a filter, as grep does
///
/// A line that is not printed is certainly not in the filter. A printed line is in the filter, except for false
/// positives at the filter's rate. With several filters, each line is printed once for each filter
/// that has it, after the filter's name and a colon.
///
/// The command maps the file and first verifies its checksums in one pass. It queries filters of other systems
/// ('tamis formats') as those systems do.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis check seen.tamis new.txt                 the lines that were seen
  tamis check -v seen.tamis new.txt              the lines that certainly were not
  tamis check -f monday.tamis -f tuesday.tamis requests.txt     on which day
  echo \"$url\" | tamis check -q seen.tamis && echo seen
  tamis check users.guava --funnel text --charset UTF-8 names.txt

Exit status: 0 a line was printed, 1 no line was printed, 2 failed, 3 lines were found by a
filter over its rate: more of them are wrong than planned (--force ignores this).")]
pub struct Args {
    /// Another filter to query; all positional arguments are then inputs
    #[arg(short, long = "filter", value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// The filter (unless -f is given), then files of lines; none, or '-', is standard input
    #[arg(value_name = "FILTER|FILES")]
    files: Vec<PathBuf>,

    /// Print the lines that are in none of the filters
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only the number of lines
    #[arg(short, long)]
    count: bool,

    /// Print nothing, stop at the first line found
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// Print lines without the filter's name, once each
    #[arg(long)]
    no_name: bool,

    /// Print before each line how often it is in the filter at most; 15+ means 15 or more (counting and cuckoo filters)
    #[arg(long, conflicts_with_all = ["invert", "count", "quiet"])]
    copies: bool,

    /// Skip the verification of the filter's checksums
    #[arg(long)]
    no_verify: bool,

    /// Exit with 0 or 1 even if a filter that is over its rate found lines
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    records: RecordArgs,

    // This is the last field: clap puts later options under its heading in the help.
    #[command(flatten)]
    tell: TellArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let (filters, files) = args.split()?;
    let files = input::present(files)?;
    refuse_endless(&files, None)?;
    let asks_stdin = filters.iter().filter(|path| input::is_stdin(path)).count();
    if asks_stdin + files.iter().filter(|path| input::is_stdin(path)).count() > 1 {
        return Err(Failure::new(
            "standard input can be read only once: name files for the others",
        ));
    }
    let trust = if args.no_verify { Trust::Assume } else { Trust::Verify };
    let mut opened = Vec::with_capacity(filters.len());
    let tell = TellArgs { asks_items: true, ..args.tell.clone() };
    let mut opener = Opener::new(&tell);
    for path in filters {
        let of_path = opener.all(path, trust)?;
        parquet_table::check_one_column(&of_path)?;
        opened.extend(of_path);
    }
    opener.finish()?;
    let rule = args.key.rule();
    let mut asked = Vec::with_capacity(opened.len());
    for opened in &opened {
        let source = match opened {
            Opened::Tamis(source) => source,
            Opened::Unfiltered(name) => {
                return Err(Failure::new(format!(
                    "{name}: has no filter, so any item may be in it: look into the table itself"
                )));
            }
            Opened::Foreign(file) => {
                asked.push(Asked::foreign(file, args.copies)?);
                continue;
            }
        };
        let mut file = source.file()?;
        file.filter.advance(now_millis());
        expect_same_items(&file.metadata, &rule, source.name())?;
        if args.copies && !file.filter.plan().kind().can_remove() {
            let (name, kind) = (source.name(), file.filter.plan().kind());
            return Err(Failure::new(format!(
                "{name}: a {kind} filter does not count: leave out --copies"
            )));
        }
        let is_over_rate = file.is_over_rate();
        if is_over_rate {
            warn(source.name(), &file);
        }
        let filter = Asking::Tamis(Box::new(file.filter));
        let (name, source) = (source.name(), Some(source));
        asked.push(Asked { name, source, filter, is_over_rate, found: 0 });
    }
    let mut check = Check {
        args,
        rule,
        asked,
        output: if args.quiet { Output::nowhere() } else { Output::open(None)? },
        printed: 0,
        hashes: Vec::new(),
        keys: Keys::default(),
        answers: Vec::new(),
    };
    check.read(&files)?;
    check.finish()
}

fn warn(name: &str, file: &TamisFile<BitView<'_>>) {
    note!(
        "{name}: {}, more than planned: its rate is {}, not {}",
        holds(file.filter.estimate_items()),
        Rate(file.filter.estimate_rate()),
        Rate(file.filter.plan().rate()),
    );
}

impl Args {
    /// Splits the file arguments into filters and inputs.
    fn split(&self) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
        if !self.filters.is_empty() {
            return Ok((&self.filters, &self.files));
        }
        if self.files.is_empty() {
            return Err(Failure::new("which filter? tamis check FILTER [FILES]"));
        }
        Ok(self.files.split_at(1))
    }
}

/// A filter and its results.
struct Asked<'a> {
    name: &'a str,
    /// The source of the filter's bits, if the command uses them in place.
    source: Option<&'a Source>,
    filter: Asking<'a>,
    is_over_rate: bool,
    found: u64,
}

/// The way to query a filter.
enum Asking<'a> {
    /// By the hashes of the items.
    Tamis(Box<AnyFilter<BitView<'a>>>),
    /// By the bytes that the funnel of another system produces for an item.
    Foreign(&'a Foreign, Funnel),
}

impl<'a> Asked<'a> {
    fn foreign(file: &'a Foreign, copies: bool) -> Result<Self, Failure> {
        if copies {
            let (name, format) = (&file.name, file.format.name);
            return Err(Failure::new(format!(
                "{name}: --copies is for filters of Tamis, not for {format}"
            )));
        }
        let is_over_rate = file.judge(&file.contents.info()) == Exit::OverRate;
        let filter = Asking::Foreign(file, file.funnel()?);
        Ok(Self { name: &file.name, source: None, filter, is_over_rate, found: 0 })
    }

    /// Returns an upper bound for the number of copies of the record's key in the filter. A plus
    /// sign marks the maximum of a counter.
    fn copies(&self, rule: &KeyRule, record: &[u8]) -> String {
        let Asking::Tamis(filter) = &self.filter else { return String::new() };
        let mut scratch = Vec::new();
        let item = rule.of(record, &mut scratch);
        let count = item.and_then(|item| filter.count_hash(filter.hasher().hash(item)));
        let is_most = count == filter.max_count();
        format!("{}{}", count.unwrap_or(0), if is_most { "+" } else { "" })
    }
}

struct Check<'a> {
    args: &'a Args,
    rule: KeyRule,
    asked: Vec<Asked<'a>>,
    output: Output,
    /// Number of lines printed or counted.
    printed: u64,
    /// Hashes of a block for one hasher.
    hashes: Vec<u64>,
    /// Keys of a block for one funnel.
    keys: Keys,
    /// Answers to a block, for each filter.
    answers: Vec<Vec<u64>>,
}

impl Check<'_> {
    fn read(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let delimiter = self.args.records.delimiter();
        let mut progress = Progress::new(input::total_len_bytes(files));
        let mut done_bytes = 0;
        for path in files {
            let failed = |error: io::Error| {
                Failure::Message(format!("{}: {}", input::name(path), crate::exit::plain(&error)))
            };
            let mut blocks = Blocks::new(Input::open(path)?, delimiter);
            let mut line = 0;
            while let Some(block) = blocks.next_block().map_err(failed)? {
                self.block(block, delimiter, path, &mut line)?;
                if self.args.quiet && self.printed > 0 {
                    return Ok(());
                }
                // A program that reads the output from a pipe gets the answers as soon as the items
                // arrive.
                self.output.flush()?;
                progress.at(done_bytes + blocks.reader().consumed_bytes());
            }
            done_bytes += blocks.reader().consumed_bytes();
        }
        Ok(())
    }

    /// Queries every filter with all records of a block, then prints the result. `line` is the
    /// number of records that precede the block in the file.
    fn block(
        &mut self,
        block: &[u8],
        delimiter: u8,
        path: &Path,
        line: &mut u64,
    ) -> Result<(), Failure> {
        // A record without a key is in no filter.
        let mut keyless = Vec::new();
        let (mut hashed_by, mut poured_by) = (None, None);
        self.answers.resize(self.asked.len(), Vec::new());
        for (asked, answers) in self.asked.iter_mut().zip(&mut self.answers) {
            answers.clear();
            let keyless = match &mut asked.filter {
                Asking::Tamis(filter) => {
                    filter.advance(now_millis());
                    let hasher = filter.hasher();
                    if hashed_by != Some(hasher) {
                        hash(block, delimiter, &self.rule, hasher, &mut self.hashes, &mut keyless);
                        hashed_by = Some(hasher);
                    }
                    answers.resize(self.hashes.len().div_ceil(64), 0);
                    filter.contains_hashes(&self.hashes, answers);
                    &keyless
                }
                Asking::Foreign(file, funnel) => {
                    if poured_by != Some(*funnel) {
                        self.keys.read(block, delimiter, &self.rule, *funnel).map_err(
                            |(index, error)| {
                                no_item(path, *line + index as u64, &error, file.column.as_ref())
                            },
                        )?;
                        poured_by = Some(*funnel);
                    }
                    let mut found = Answers::new();
                    file.contents.contains_each(&self.keys.all(), &mut found);
                    answers.extend_from_slice(found.words());
                    &self.keys.keyless
                }
            };
            for &index in keyless {
                answers[index / 64] &= !(1 << (index % 64));
            }
        }
        for source in self.asked.iter().filter_map(|asked| asked.source) {
            source.check_unchanged()?;
        }
        *line += records(block, delimiter).count() as u64;
        for (asked, answers) in self.asked.iter_mut().zip(&self.answers) {
            asked.found += answers.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        if self.args.invert { self.print_absent(block) } else { self.print_found(block) }
    }

    fn print_absent(&mut self, block: &[u8]) -> Result<(), Failure> {
        let delimiter = self.args.records.delimiter();
        for (index, record) in records(block, delimiter).enumerate() {
            if self.answers.iter().any(|answers| bit(answers, index)) {
                continue;
            }
            self.printed += 1;
            if self.is_printing() {
                self.output.write(record)?;
                self.output.write(&[delimiter])?;
            }
        }
        Ok(())
    }

    fn print_found(&mut self, block: &[u8]) -> Result<(), Failure> {
        let delimiter = self.args.records.delimiter();
        let names = self.asked.len() > 1 && !self.args.no_name;
        let is_printing = self.is_printing();
        let copies = self.args.copies;
        for (index, record) in records(block, delimiter).enumerate() {
            let mut is_found = false;
            for (asked, answers) in self.asked.iter().zip(&self.answers) {
                if !bit(answers, index) || (is_found && !names) {
                    continue;
                }
                is_found = true;
                if is_printing {
                    if names {
                        self.output.write(asked.name.as_bytes())?;
                        self.output.write(b":")?;
                    }
                    if copies {
                        let copies = asked.copies(&self.rule, record);
                        self.output.write(format!("{copies:>7} ").as_bytes())?;
                    }
                    self.output.write(record)?;
                    self.output.write(&[delimiter])?;
                }
            }
            self.printed += u64::from(is_found);
        }
        Ok(())
    }

    fn is_printing(&self) -> bool {
        !self.args.count && !self.args.quiet
    }

    fn finish(mut self) -> Outcome {
        if self.args.count {
            let names = self.asked.len() > 1 && !self.args.no_name && !self.args.invert;
            let text = if names {
                self.asked.iter().map(|asked| format!("{}:{}\n", asked.name, asked.found)).collect()
            } else {
                format!("{}\n", self.printed)
            };
            self.output.write(text.as_bytes())?;
        }
        self.output.finish()?;
        // A filter over its rate still has no false negatives. Its false positives exceed the
        // planned rate: these lines are printed, or left out with -v.
        let doubtful = self.asked.iter().any(|asked| asked.is_over_rate && asked.found > 0);
        Ok(match self.printed {
            _ if doubtful && !self.args.force => Exit::OverRate,
            0 => Exit::No,
            _ => Exit::Yes,
        })
    }
}

/// Hashes the keys of all records. Writes the indices of the records without a key to `keyless`.
fn hash(
    block: &[u8],
    delimiter: u8,
    rule: &KeyRule,
    hasher: Hasher,
    hashes: &mut Vec<u64>,
    keyless: &mut Vec<usize>,
) {
    hashes.clear();
    keyless.clear();
    if rule.is_whole() {
        hashes.extend(records(block, delimiter).map(|record| hasher.hash(record)));
        return;
    }
    let mut scratch = Vec::new();
    for (index, record) in records(block, delimiter).enumerate() {
        match rule.of(record, &mut scratch) {
            Some(item) => hashes.push(hasher.hash(item)),
            None => {
                hashes.push(0);
                keyless.push(index);
            }
        }
    }
}

fn bit(words: &[u64], index: usize) -> bool {
    words[index / 64] >> (index % 64) & 1 == 1
}
