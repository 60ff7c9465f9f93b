//! `tamis convert`: a filter from one system to another.

use std::io;
use std::path::{Path, PathBuf};

use tamis::{Answers, DigestSet};
use tamis_formats::{
    Charset, Contents, EncodeError, Fact, Facts, Format, Funnel, Items, Takes, Told,
};

use crate::count::{About, Count};
use crate::exit::{Failure, Outcome};
use crate::filter_file::Trust;
use crate::foreign::{Foreign, Opened, each_keys, judge_changed};
use crate::hash_key::random_hasher;
use crate::input;
use crate::items::Tally;
use crate::key::{KeyArgs, RecordArgs, rate};
use crate::output::{check_filter_output, refuse_input_as_output};
use crate::parquet_table::check_one_column;
use crate::told::{
    TellArgs, asked_of_output, charset_parser, format_parser, funnel, funnel_names,
    missing_to_write, parse_funnel,
};

/// Writes a filter as another system has it
///
/// The bits move if both systems place items alike, whatever the order of their bits and words. Otherwise the items are
/// needed: with --items the command builds OUT from them, and looks for each item in both filters.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis convert 1.bitmap users.guava --format redis-bitmaps --items-planned 1000 --rate-planned 0.01 --funnel bytes
  tamis convert users.guava users.tamis --funnel text --charset UTF-8 --items users.txt
  tamis convert users.tamis users.guava --items users.txt --to-funnel text --to-charset UTF-8

Options with --to-... apply to OUT. All others apply to IN, and to OUT too if OUT has no option of its own.

Exit status: 0 converted, 2 could not, 3 converted though over its rate.")]
pub struct Args {
    /// The filter to convert; '-' is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Where the converted filter goes, replaced only once it is complete; '-' is standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The format of OUT; by default what its name ends in
    #[arg(long, value_name = "FORMAT", ignore_case = true, hide_possible_values = true, value_parser = format_parser())]
    to: Option<String>,

    /// Build OUT from the items in FILE, one a line, plain or packed (gzip, zstd, xz, bzip2) (may be repeated)
    #[arg(long, value_name = "FILE")]
    items: Vec<PathBuf>,

    /// With --items: what an item is in OUT, if it is not the same as in IN
    #[arg(long, value_name = "FUNNEL", ignore_case = true, hide_possible_values = true, value_parser = crate::told::funnel_parser(), requires = "items")]
    to_funnel: Option<String>,

    /// With --to-funnel: how text becomes bytes in OUT [default: --charset]
    #[arg(long, value_name = "CHARSET", ignore_case = true, value_parser = charset_parser(), requires = "to_funnel")]
    to_charset: Option<Charset>,

    /// Capacity of OUT in items; of a bitmap of integers, the number of values [default: the items in FILE; --items-planned
    /// if the format does not store it]
    #[arg(long, value_name = "N")]
    to_items: Option<Count>,

    /// Planned rate of OUT [default: that of IN, or 0.01; --rate-planned if the format does not store it]
    #[arg(long, alias = "rate", value_name = "R", value_parser = rate)]
    to_rate: Option<f64>,

    /// Version of the format of OUT, such as 'nb' for SSTables of Cassandra 4, 2 for Spark since 4.1, 64 for Roaring, or 31
    /// for Guava before 33.4
    #[arg(long, value_name = "V")]
    to_version: Option<Box<str>>,

    /// Join several filters of IN, such as those of a Parquet table's row groups, into one: it is fuller than planned
    #[arg(long)]
    union: bool,

    /// With --items: convert even if IN lacks some of the items or holds many others, or if OUT is over its rate
    #[arg(long, requires = "items")]
    force: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    records: RecordArgs,

    // Last: what follows would stand under its heading in the help.
    #[command(flatten)]
    tell: TellArgs,
}

/// The rate of a filter that is built from items, if the user gives none and IN stores none.
const RATE: f64 = 0.01;

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    check_filter_output(&args.output)?;
    let to = args.to_format()?;
    match (&args.to_version, to.versions) {
        (Some(version), None) => {
            return Err(Failure::new(format!(
                "--to-version {version}: {} has only one version; leave the option out",
                to.name
            )));
        }
        (Some(version), Some(versions)) if versions.are_plans && args.items.is_empty() => {
            return Err(Failure::new(format!(
                "--to-version {version}: versions of {} differ only in how filters are planned; leave the option out, or build OUT \
                 from the items with --items FILE",
                to.name
            )));
        }
        (_, _) => {}
    }
    let mut tell = args.tell.clone();
    if !args.items.is_empty() {
        tell.asks_items = true;
        tell.also_missing = args.missing_of_output(to);
    }
    tell.is_charset_of_output = args.to_funnel.is_some();
    let from = open(&args.input, &tell, args.union)?;
    let asks = |format: &Format| format.asks.contains(&Fact::Items);
    if from.told.items.is_some() && !asks(from.format) && !asks(to) {
        return Err(Failure::new(
            "--items-planned has no effect here: it is for filters whose bits depend on the plan, such as those over bitmaps of \
             Redis; set the capacity of OUT with --to-items",
        ));
    }
    // A set without a length gets one.
    let gets_length = to.takes == Takes::Integers && matches!(from.contents, Contents::Roaring(_));
    let in_vain = match (args.to_items, args.to_rate) {
        _ if !args.items.is_empty() || asks(to) => None,
        (Some(_), _) if !gets_length => Some("--to-items"),
        (_, Some(_)) => Some("--to-rate"),
        _ => None,
    };
    if let Some(option) = in_vain {
        return Err(Failure::new(format!(
            "{option} has no effect on {} without --items FILE: leave it out, or build OUT from the items",
            to.name
        )));
    }
    from.check_output(&args.output)?;
    let told = args.told_of_output(&from, to);
    if !args.items.is_empty() {
        return args.rebuild(&from, to, told);
    }
    if from.funnel.is_none() {
        // Refuses a format without a place for this filter before it asks for a funnel.
        from.write(&mut io::sink(), &args.output, to, &told).map_err(with_items)?;
    }
    check_same_items(&from, to)?;
    from.save(&args.output, to, &told).map_err(with_items)?;
    let facts = from.contents.facts();
    from.warn(&facts);
    Ok(from.judge(&facts))
}

/// Adds the option to a message that advises to build a filter from items.
fn with_items(failure: Failure) -> Failure {
    const ADVICE: &str = "build one from the items";
    let Failure::Message(message) = failure else { return failure };
    let Some(why) = message.strip_suffix(ADVICE) else { return Failure::Message(message) };
    Failure::new(format!("{why}{ADVICE}, with --items FILE"))
}

/// Refuses to move bits into a format whose items are something else: every answer would be no.
fn check_same_items(from: &Foreign, to: &Format) -> Result<(), Failure> {
    let (Items::Asked, Items::Are(of_out)) = (from.format.items, to.items) else { return Ok(()) };
    // Text is read as UTF-8.
    let plain = |funnel| match funnel {
        Funnel::Text(Charset::Utf8) => Funnel::Bytes,
        other => other,
    };
    if plain(from.funnel()?) == plain(of_out) {
        return Ok(());
    }
    let (name, format) = (&from.name, to.name);
    Err(Failure::new(format!(
        "{name}: its items are of another type than those of {format}, which has only one: build OUT from the items \
         with --items FILE"
    )))
}

/// Reads a copy of the filter to convert.
fn open(path: &Path, tell: &TellArgs, union: bool) -> Result<Foreign, Failure> {
    let all = Opened::all(path, tell, Trust::Assume)?;
    if union && all.len() > 1 {
        return row_groups_as_one(path, all);
    }
    match Opened::only(path, all)? {
        Opened::Foreign(file) => Ok(*file),
        Opened::Unfiltered(name) => Err(Failure::new(format!("{name}: has no filter"))),
        Opened::Tamis(source) => {
            let name = source.name().to_owned();
            let file = source.into_file()?;
            Ok(Foreign {
                name,
                format: Format::named("tamis").expect("the first row"),
                len_bytes: file.len_bytes(),
                contents: Contents::Tamis(file),
                told: tell.told(),
                funnel: tell.funnel()?,
                column: None,
                is_whole_file: true,
                path: path.to_path_buf(),
            })
        }
    }
}

/// By how much the number of items may be less than is told of it.
fn slack(contents: &Contents, facts: &Facts) -> f64 {
    match contents {
        Contents::Integers(_) | Contents::Roaring(_) | Contents::RedisBloom(_) => 0.0,
        _ => match facts.probes {
            // Of m bits the part f is set, give or take σ: items are -m/k ln(1 - f), give or take m/k · σ/(1 - f).
            Some(k) if facts.noise > 0.0 => {
                let (m, k, f) = (facts.bits as f64, f64::from(k), facts.fill);
                let deviation = facts.noise * f / k;
                4.0 * m / k * deviation / (1.0 - f) + 1.0
            }
            _ => 0.1 * facts.items + 1.0,
        },
    }
}

/// Puts the filters of a column's row groups together.
fn row_groups_as_one(path: &Path, all: Vec<Opened>) -> Result<Foreign, Failure> {
    check_one_column(&all)?;
    let mut one: Option<Foreign> = None;
    for opened in all {
        let file = match opened {
            Opened::Foreign(file) => *file,
            Opened::Tamis(source) => unreachable!("{}: a filter alone", source.name()),
            Opened::Unfiltered(name) => {
                return Err(Failure::new(format!(
                    "{name}: has no filter, so a filter of the table would miss its items"
                )));
            }
        };
        match &mut one {
            None => one = Some(Foreign { name: input::name(path), ..file }),
            Some(one) => one
                .contents
                .merge(&file.contents)
                .map_err(|error| Failure::new(format!("{}: {error}", file.name)))?,
        }
    }
    Ok(one.expect("there are several"))
}

impl Args {
    /// The format to write.
    fn to_format(&self) -> Result<&'static Format, Failure> {
        if let Some(name) = &self.to {
            return Ok(Format::named(name).expect("clap checked the name"));
        }
        let name = input::name(&self.output);
        match Format::of_name(&self.output)[..] {
            [format] => Ok(format),
            [] => Err(Failure::new(format!(
                "{name}: in which format? say --to: 'tamis formats' lists them"
            ))),
            ref several => {
                let names: Vec<_> = several.iter().map(|format| format.name).collect();
                Err(Failure::new(format!(
                    "{name}: in which format? say --to ({})",
                    names.join(", ")
                )))
            }
        }
    }

    /// Returns the decode options of OUT.
    fn told_of_output(&self, from: &Foreign, to: &Format) -> Told {
        // What it does not say itself, the program that will ask it knows: it computes places by that.
        let kept = |fact| to.asks.contains(&fact);
        let items = self.to_items.map(|Count(items)| items);
        let version = from.told.version.clone().filter(|_| from.format.name == to.name);
        let of_name = to.version_of_name(&self.output).map(Into::into);
        Told {
            items: items.or(from.told.items.filter(|_| kept(Fact::Items))),
            rate: self.to_rate.or(from.told.rate.filter(|_| kept(Fact::Rate))),
            version: self.to_version.clone().or(of_name).or(version),
            union: self.union,
            ..from.told.clone()
        }
    }

    /// Returns the parameters that OUT needs and the user did not give, as whole phrases.
    fn missing_of_output(&self, to: &Format) -> Vec<String> {
        let name = input::name(&self.output);
        let mut missing = Vec::new();
        if to.items == Items::Asked && self.to_funnel.is_none() && self.tell.funnel.is_none() {
            missing.push(format!(
                "{name}: what is an item there? say --to-funnel ({})",
                funnel_names(to.takes)
            ));
        }
        let has_version = self.to_version.is_some() || to.version_of_name(&self.output).is_some();
        for &fact in to.asks {
            let is_missing = match fact {
                Fact::Version => !has_version,
                Fact::BlockHash => self.tell.block_hash.is_none(),
                // Counted, or that of IN.
                _ => false,
            };
            if is_missing {
                missing.push(format!("{name}: {}", asked_of_output(fact)));
            }
        }
        missing
    }

    /// Builds OUT from the items, and looks for each item in both filters.
    fn rebuild(&self, from: &Foreign, to: &'static Format, told: Told) -> Outcome {
        let name = input::name(&self.output);
        let items = self.checked_items()?;
        self.check_nothing_is_missing(from, to)?;
        let from_funnel = from.funnel()?;
        let to_funnel = self.funnel_of(to, from.funnel)?;
        let (distinct, total) = self.count(&items)?;
        total.warn();
        let facts = from.contents.facts();
        self.check_count(from, &facts, distinct)?;
        // Where a set of integers ends their greatest decides, not their number.
        let planned = told.items.or((to.takes != Takes::Integers).then_some(distinct));
        let of_input = from.told.rate.or(facts.planned_rate);
        let of_input = of_input.filter(|&rate| rate > 0.0 && rate < 1.0);
        let rate = told.rate.or(of_input).unwrap_or(RATE);
        let told = Told { items: planned, rate: Some(rate), ..told };
        let mut contents = (to.create)(&told).map_err(|error| match error {
            EncodeError::Missing(fact) => missing_to_write(fact, &told, to, &name),
            error => Failure::new(format!("{name}: {error}")),
        })?;
        let (mut answers, mut lacking) = (Answers::new(), 0);
        self.each_again(&items, total, from_funnel, |keys| {
            from.contents.contains_each(keys, &mut answers);
            lacking += (keys.len() - answers.count_ones()) as u64;
            Ok(())
        })?;
        if lacking > 0 {
            self.refuse(&format!(
                "{}: lacks {} of the {} items: the filter was made of other items, or with another --funnel or \
                 --charset",
                from.name,
                Count(lacking),
                Count(total.items)
            ))?;
        }
        self.each_again(&items, total, to_funnel, |keys| {
            contents
                .insert_each(keys, &mut answers)
                .map_err(|error| Failure::new(format!("{name}: {error}; nothing was written")))
        })?;
        let rebuilt = Foreign {
            path: self.output.clone(),
            name,
            format: to,
            contents,
            told,
            funnel: Some(to_funnel),
            column: None,
            len_bytes: 0,
            is_whole_file: true,
        };
        self.verify(&rebuilt, &items, total, to_funnel)?;
        let exit = judge_changed(&rebuilt, self.force)?;
        rebuilt.warn(&rebuilt.contents.facts());
        rebuilt.save(&self.output, to, &rebuilt.told)?;
        Ok(exit)
    }

    /// Refuses at once for all that is missing, not for one thing a try.
    fn check_nothing_is_missing(&self, from: &Foreign, to: &Format) -> Result<(), Failure> {
        let mut missing = Vec::new();
        match from.funnel() {
            Err(Failure::Message(message)) => missing.push(message),
            other => drop(other?),
        }
        let of_output = self.missing_of_output(to);
        // A version of the same format is that of IN.
        let is_kept = from.format.name == to.name && from.told.version.is_some();
        missing
            .extend(of_output.into_iter().filter(|it| !(is_kept && it.contains("--to-version"))));
        if missing.is_empty() { Ok(()) } else { Err(Failure::new(missing.join("; "))) }
    }

    /// The files of items: they are read several times.
    fn checked_items(&self) -> Result<Vec<PathBuf>, Failure> {
        let items = input::checked(&self.items)?;
        for path in &items {
            if input::is_stdin(path) || !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                return Err(Failure::new(format!(
                    "--items {}: items are read several times: name a file, not a pipe",
                    path.display()
                )));
            }
        }
        refuse_input_as_output(&items, &self.output)?;
        Ok(items)
    }

    /// Refuses items that are none, or far fewer than the filter has: the others would not be found any more.
    fn check_count(&self, from: &Foreign, facts: &Facts, distinct: u64) -> Result<(), Failure> {
        if distinct == 0 {
            return Err(Failure::new("--items: the file has no items; nothing was written"));
        }
        if !facts.items.is_finite() || distinct as f64 >= facts.items - slack(&from.contents, facts)
        {
            return Ok(());
        }
        self.refuse(&format!(
            "{}: holds about {} items, and --items has {}: the others would not be found in {}",
            from.name,
            About(facts.items),
            Count(distinct),
            input::name(&self.output)
        ))
    }

    /// Refuses to go on, unless that is wanted.
    fn refuse(&self, state: &str) -> Result<(), Failure> {
        if !self.force {
            return Err(Failure::new(format!("{state}; nothing was written (--force: convert)")));
        }
        note!("{state}");
        Ok(())
    }

    /// What an item is in OUT.
    fn funnel_of(&self, to: &Format, of_input: Option<Funnel>) -> Result<Funnel, Failure> {
        let told = match &self.to_funnel {
            Some(name) => Some(parse_funnel(name, self.to_charset.or(self.tell.charset))?),
            // What was told is what the items of IN are; formats whose items are always the same keep theirs.
            None if to.items == Items::Asked => of_input,
            None => None,
        };
        let out = input::name(&self.output);
        match told {
            None if to.items == Items::Asked => Err(Failure::new(format!(
                "{out}: what is an item there? say --to-funnel ({})",
                funnel_names(to.takes)
            ))),
            told => funnel(to, told, &out),
        }
    }

    /// Counts the distinct items, and all.
    fn count(&self, items: &[PathBuf]) -> Result<(u64, Tally), Failure> {
        let mut distinct = DigestSet::<u64>::within(u64::MAX);
        // With a secret key: an attacker may have chosen the items.
        let (hasher, mut hashes, mut answers) = (random_hasher()?, Vec::new(), Answers::new());
        let total = self.each(items, Funnel::Bytes, |keys| {
            hashes.clear();
            hashes.extend(keys.iter().map(|key| hasher.hash(key)));
            distinct.insert_each(&hashes, &mut answers).map_err(Failure::new)
        })?;
        Ok((distinct.len(), total))
    }

    /// Reads the filter back from its bytes, and looks for every item.
    fn verify(
        &self,
        file: &Foreign,
        items: &[PathBuf],
        total: Tally,
        funnel: Funnel,
    ) -> Result<(), Failure> {
        let (name, format, told) = (&file.name, file.format, &file.told);
        let mut bytes = Vec::new();
        file.write(&mut bytes, &self.output, format, told)?;
        let failure = |error: &dyn std::fmt::Display| Failure::new(format!("{name}: {error}"));
        let back = (format.decode)(&bytes, told).map_err(|error| failure(&error))?;
        drop(bytes);
        let (mut answers, mut lacking) = (Answers::new(), 0);
        self.each_again(items, total, funnel, |keys| {
            back.contains_each(keys, &mut answers);
            lacking += (keys.len() - answers.count_ones()) as u64;
            Ok(())
        })?;
        if lacking > 0 {
            return Err(failure(&format!(
                "{} items were lost on the way, which must not happen; nothing was written",
                Count(lacking)
            )));
        }
        Ok(())
    }

    /// Reads the items once more, and refuses others than the first time.
    fn each_again(
        &self,
        items: &[PathBuf],
        total: Tally,
        funnel: Funnel,
        each: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.each(items, funnel, each)? == total {
            return Ok(());
        }
        Err(Failure::new("--items: the items changed while they were read; nothing was written"))
    }

    fn each(
        &self,
        items: &[PathBuf],
        funnel: Funnel,
        each: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<Tally, Failure> {
        each_keys(items, &self.key.rule(), self.records.delimiter(), funnel, each)
    }
}
