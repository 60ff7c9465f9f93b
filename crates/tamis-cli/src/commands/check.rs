//! `tamis check`: prints the lines that are in a filter.

use std::ops::ControlFlow;
use std::path::PathBuf;

use tamis::Answers;

use crate::arguments::decode_options::DecodeArgs;
use crate::exit::{CommandResult, Exit, Failure};
use crate::filters::lookup::Lookup;
use crate::filters::open_filter::{OpenFilter, Trust};
use crate::filters::opener::Opener;
use crate::filters::rate_notes::Notes;
use crate::filters::redis_key::RedisTarget;
use crate::filters::table_filters::check_one_column;
use crate::io::input;
use crate::io::output::{Output, refuse_endless};
use crate::records::csv::OutputHeader;
use crate::records::items::{ItemBatch, ItemEncoding};
use crate::records::key::{KeyArgs, KeyRule, RecordArgs, no_key};
use crate::records::record_reader::{RecordBlock, RecordReader};

/// Print the lines that are in a filter, as grep does
///
/// A line that is not printed is certainly not in the filter. A printed line is in the filter,
/// except for false positives at the filter's rate. With several filters, each line is printed once
/// for each filter that has the line, after the filter's name and a colon.
///
/// The command maps the file into memory and first verifies its checksums in one pass. The command
/// queries a filter of another system in the same way as that system does: see 'tamis formats'.
///
/// A filter may be a key of a Redis or Valkey server: redis://HOST/KEY. For a key, the server looks
/// up the lines.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis check seen.tamis new.txt                 the lines that were seen
  tamis check -v seen.tamis new.txt              the lines that certainly were not
  tamis check -f monday.tamis -f tuesday.tamis requests.txt     on which day
  echo \"$url\" | tamis check -q seen.tamis && echo seen
  tamis check users.guava --funnel text --charset UTF-8 names.txt
  tamis check redis://localhost/seen new.txt

Exit status: 0 a line was printed, 1 no line was printed, 2 failed, 3 lines were found by a
filter over its rate: more of them are wrong than planned (--force ignores this).")]
pub struct Args {
    /// Query this filter (may be repeated); with -f, all positional arguments are inputs
    #[arg(short, long = "filter", value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// The filter (unless -f is given), then files of lines; '-' or none is standard input
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

    /// Print each line once, without the name of the filter
    #[arg(long)]
    no_name: bool,

    /// Print before each line an upper bound for its count in the filter; 15+ means 15 or more
    /// (counting and cuckoo filters)
    #[arg(long, conflicts_with_all = ["invert", "count", "quiet"])]
    copies: bool,

    /// Skip the verification of the filter's checksums
    #[arg(long)]
    no_verify: bool,

    /// Exit with status 0 or 1, instead of 3, if a filter exceeds its planned false positive rate
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    records: RecordArgs,

    // The decode options are the last field, because clap puts all options after this field under
    // the heading of the decode options.
    #[command(flatten)]
    decode: DecodeArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let (filters, files) = args.split()?;
    let files = input::present(files, &[])?;
    refuse_endless(&files, None)?;
    let asks_stdin = filters.iter().filter(|path| input::is_stdin(path)).count();
    if asks_stdin + files.iter().filter(|path| input::is_stdin(path)).count() > 1 {
        return Err(Failure::new(
            "standard input can be read only once: name files for the others",
        ));
    }
    let trust = if args.no_verify { Trust::Assume } else { Trust::Verify };
    let mut opened = Vec::with_capacity(filters.len());
    let decode = DecodeArgs { requires_funnel: true, ..args.decode.clone() };
    let mut opener = Opener::new(&decode);
    for path in filters {
        if let Some(target) = opener.redis(path)? {
            opened.push(Opened::Redis(Box::new(target)));
            continue;
        }
        let of_path = opener.all(path, trust)?;
        check_one_column(&of_path)?;
        for filter in of_path {
            let filter = filter.map_err(|none| {
                none.failure(", so any item may be in it: look into the table itself")
            })?;
            opened.push(Opened::File(Box::new(filter)));
        }
    }
    opener.finish()?;
    let rule = args.key.rule();
    let form = args.records.form(&args.key);
    rule.check(form)?;
    let queries = opened.iter_mut().map(|filter| Query::new(filter, &rule, args.copies));
    let mut check = Check {
        args,
        queries: queries.collect::<Result<_, _>>()?,
        rule,
        output: if args.quiet { Output::nowhere() } else { Output::open(None)? },
        printed: 0,
        records: 0,
        keyless: 0,
        batch: ItemBatch::default(),
        encoding: None,
        header: OutputHeader::default(),
    };
    RecordReader::new(&files, form).for_each(|block| check.block(block))?;
    check.finish()
}

impl Args {
    /// Splits the file arguments into filters and inputs.
    fn split(&self) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
        if !self.filters.is_empty() {
            return Ok((&self.filters, &self.files));
        }
        if self.files.is_empty() {
            return Err(Failure::new("no filter is given: tamis check FILTER [FILES]"));
        }
        Ok(self.files.split_at(1))
    }
}

/// A filter to query.
enum Opened {
    File(Box<OpenFilter>),
    Redis(Box<RedisTarget>),
}

/// A filter and its results.
struct Query<'a> {
    name: String,
    /// The filter, if the filter is in a file.
    filter: Option<&'a OpenFilter>,
    lookup: Lookup<'a>,
    is_over_rate: bool,
    /// For each item of the current block: whether the filter contains the item.
    answers: Answers,
    /// Number of items found so far.
    found: u64,
}

impl<'a> Query<'a> {
    fn new(opened: &'a mut Opened, rule: &KeyRule, copies: bool) -> Result<Self, Failure> {
        let (name, filter, lookup, is_over_rate) = match opened {
            Opened::File(filter) => {
                let lookup = Lookup::new(filter, rule)?;
                let is_over_rate = filter.report(Notes::Rate)? == Exit::OverRate;
                (filter.name.clone(), Some(&**filter), lookup, is_over_rate)
            }
            Opened::Redis(target) => {
                let is_over_rate = target.report();
                (target.name.clone(), None, Lookup::Redis(target), is_over_rate)
            }
        };
        if copies && lookup.counting().is_none() {
            return Err(Failure::new(format!(
                "{name}: does not count: --copies is for counting and cuckoo filters of Tamis; \
                 leave it out"
            )));
        }
        Ok(Self { name, filter, lookup, is_over_rate, answers: Answers::new(), found: 0 })
    }

    /// Returns an upper bound for the number of copies of the record's key in the filter. A plus
    /// sign marks the maximum of a counter.
    fn copies(&self, rule: &KeyRule, record: &[u8]) -> String {
        let Some(filter) = self.lookup.counting() else { return String::new() };
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
    queries: Vec<Query<'a>>,
    output: Output,
    /// Number of lines printed or counted.
    printed: u64,
    /// The number of lines read. The next field is the number of lines without a key.
    records: u64,
    keyless: u64,
    /// Items of a block, encoded for the filter that was queried last.
    batch: ItemBatch,
    encoding: Option<ItemEncoding>,
    header: OutputHeader,
}

impl Check<'_> {
    /// Queries every filter with all records of a block, then prints the result.
    fn block(&mut self, block: &RecordBlock<'_>) -> Result<ControlFlow<(), usize>, Failure> {
        if block.is_header {
            self.header(block)?;
            return Ok(ControlFlow::Continue(1));
        }
        self.encoding = None;
        for query in &mut self.queries {
            let encoding = query.lookup.encoding();
            if self.encoding != Some(encoding) {
                let column = query.filter.and_then(|filter| filter.column.as_ref());
                let hint = column.map(|it| format!("; an item of the column is {}", it.item));
                self.batch.read(block, &self.rule, encoding, &hint.unwrap_or_default())?;
                self.encoding = Some(encoding);
            }
            query.lookup.contains_each(&self.batch, &mut query.answers)?;
            query.found += query.answers.count_ones() as u64;
        }
        for filter in self.queries.iter().filter_map(|query| query.filter) {
            filter.check_unchanged()?;
        }
        // A record without a key is in no filter.
        let (mut skipped, mut item) = (self.batch.skipped.iter().copied().peekable(), 0);
        let names = self.queries.len() > 1 && !self.args.no_name && !self.args.invert;
        let is_printing = !self.args.count && !self.args.quiet;
        for (index, record) in block.records().enumerate() {
            let (at, has_key) = (item, skipped.next_if_eq(&index).is_none());
            item += usize::from(has_key);
            let found = self.queries.iter().filter(|query| has_key && query.answers.get(at));
            let mut found = found.peekable();
            if found.peek().is_none() != self.args.invert {
                continue;
            }
            self.printed += 1;
            if !is_printing {
                continue;
            }
            if self.args.invert {
                self.output.write(record)?;
                self.output.write(&[block.delimiter()])?;
            }
            for query in found.take(if names { usize::MAX } else { 1 }) {
                if names {
                    self.output.write(query.name.as_bytes())?;
                    self.output.write(b":")?;
                }
                if self.args.copies {
                    let copies = query.copies(&self.rule, record);
                    self.output.write(format!("{copies:>7} ").as_bytes())?;
                }
                self.output.write(record)?;
                self.output.write(&[block.delimiter()])?;
            }
        }
        let records = item + self.batch.skipped.len();
        self.records += records as u64;
        self.keyless += self.batch.skipped.len() as u64;
        if self.args.quiet && self.printed > 0 {
            return Ok(ControlFlow::Break(()));
        }
        // Flush the output here, so that a reader of a pipe gets each result as soon as the input
        // arrives.
        self.output.flush()?;
        Ok(ControlFlow::Continue(records))
    }

    /// Finds the column in the header of an input, and writes the header of the first input.
    fn header(&mut self, block: &RecordBlock<'_>) -> Result<(), Failure> {
        let header = block.header();
        self.rule.set_header(header).map_err(|why| block.failure(0, &why))?;
        if self.args.count || self.args.quiet {
            return Ok(());
        }
        if self.header.is_first(header).map_err(|why| block.failure(0, &why))? {
            if self.args.copies {
                self.output.write(format!("{:>7} ", "").as_bytes())?;
            }
            self.output.write(header)?;
            self.output.write(&[block.delimiter()])?;
        }
        Ok(())
    }

    fn finish(mut self) -> CommandResult {
        if self.args.count {
            let names = self.queries.len() > 1 && !self.args.no_name && !self.args.invert;
            let text = if names {
                let line = |query: &Query<'_>| format!("{}:{}\n", query.name, query.found);
                self.queries.iter().map(line).collect()
            } else {
                format!("{}\n", self.printed)
            };
            self.output.write(text.as_bytes())?;
        }
        self.output.finish()?;
        if self.records > 0 && self.keyless == self.records {
            return Err(no_key(&self.rule.describe()));
        }
        // A filter over its rate still has no false negatives, but has more false positives than
        // planned. Without -v, the output contains the false positives. With -v, the output lacks
        // the false positives.
        let doubtful = self.queries.iter().any(|query| query.is_over_rate && query.found > 0);
        Ok(match self.printed {
            _ if doubtful && !self.args.force => Exit::OverRate,
            0 => Exit::No,
            _ => Exit::Yes,
        })
    }
}
