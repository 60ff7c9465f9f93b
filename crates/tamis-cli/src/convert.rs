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
/// The bits themselves move where both systems place items alike, in whatever order their bits and words are. Where they do
/// not, no program can do it without the items: with --items the filter is built anew of them, and each item is looked for in
/// both filters.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis convert 1.bitmap users.guava --format redis-bitmaps --items-planned 1000 --rate-planned 0.01 --funnel bytes
  tamis convert users.guava users.tamis --funnel text --charset UTF-8 --items users.txt
  tamis convert users.tamis users.guava --items users.txt --to-funnel text --to-charset UTF-8

What is told with --to-... is of OUT; all else is of IN, and of OUT too where nothing else is told of that.

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

    /// Build OUT anew of the items in FILE, one a line, plain or packed (gzip, zstd, xz, bzip2) (may be repeated)
    #[arg(long, value_name = "FILE")]
    items: Vec<PathBuf>,

    /// With --items: what an item is in OUT, if it is not the same as in IN
    #[arg(long, value_name = "FUNNEL", ignore_case = true, hide_possible_values = true, value_parser = crate::told::funnel_parser(), requires = "items")]
    to_funnel: Option<String>,

    /// With --to-funnel: how text becomes bytes in OUT [default: --charset]
    #[arg(long, value_name = "CHARSET", ignore_case = true, value_parser = charset_parser(), requires = "to_funnel")]
    to_charset: Option<Charset>,

    /// For how many items OUT is planned; for a bitmap of integers, how many values it has place for [default: as many as FILE
    /// has; --items-planned, if OUT will not say itself]
    #[arg(long, value_name = "N")]
    to_items: Option<Count>,

    /// For which rate OUT is planned [default: that of IN, or 0.01; --rate-planned, if OUT will not say itself]
    #[arg(long, alias = "rate", value_name = "R", value_parser = rate)]
    to_rate: Option<f64>,

    /// Which version of its format OUT is to be, such as 'nb' for SSTables of Cassandra 4, 2 for Spark since 4.1, 64 for Roaring, or 31
    /// for Guava before 33.4
    #[arg(long, value_name = "V")]
    to_version: Option<Box<str>>,

    /// Put the several filters of IN, such as those of a Parquet table's row groups, together as one where OUT has place for just
    /// one: it is fuller than it was planned for
    #[arg(long)]
    union: bool,

    /// With --items: convert even if IN does not have all of them, or has many others, or OUT is over its rate with them
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

/// The rate of a filter that is built anew, if none is told.
const RATE: f64 = 0.01;

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    check_filter_output(&args.output)?;
    let to = args.to_format()?;
    match (&args.to_version, to.versions) {
        (Some(version), None) => {
            return Err(Failure::new(format!(
                "--to-version {version}: there is but one version of {}: leave it out",
                to.name
            )));
        }
        (Some(version), Some(versions)) if versions.are_plans && args.items.is_empty() => {
            return Err(Failure::new(format!(
                "--to-version {version}: versions of {} differ in how they plan, and their files are the same: leave it out, or build OUT \
                 anew with --items FILE",
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
            "--items-planned is for filters whose places depend on it, as those over bitmaps of Redis: for how many items OUT is planned \
             is told by --to-items",
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
            "{option} is for filters that are built anew, with --items FILE, or do not say their plan themselves: leave it out for {}",
            to.name
        )));
    }
    from.check_output(&args.output)?;
    let told = args.told_of_output(&from, to);
    if !args.items.is_empty() {
        return args.rebuild(&from, to, told);
    }
    if from.funnel.is_none() {
        // Nobody is asked what items are, only to hear then that they do not help.
        from.write(&mut io::sink(), &args.output, to, &told)
            .map_err(|failure| with_items(failure, to))?;
    }
    check_same_items(&from, to)?;
    from.save(&args.output, to, &told).map_err(|failure| with_items(failure, to))?;
    let facts = from.contents.facts();
    from.warn(&facts);
    Ok(from.judge(&facts))
}

/// Adds to a message that asks for a filter to be built how that is done.
fn with_items(failure: Failure, to: &Format) -> Failure {
    const ADVICE: &str = "build one from the items";
    let Failure::Message(message) = failure else { return failure };
    let Some(why) = message.strip_suffix(ADVICE) else { return Failure::Message(message) };
    Failure::new(match to.create {
        Some(_) => format!("{why}{ADVICE}, with --items FILE"),
        None => format!("{}, and tamis builds none anew", why.trim_end_matches([' ', ':', ';'])),
    })
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
        "{name}: its items are something else than those of {format}, which is never told what they are: build it anew, \
         with --items FILE"
    )))
}

/// Reads the filter to convert; a copy, also if it is one of ours.
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
                    "{name}: has no filter, so that none of the table would find its items"
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

    /// What is told of OUT.
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

    /// Returns what a filter that is built anew needs and the user did not give, as whole phrases.
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

    /// Builds the filter anew of its items, and looks for each of them in both.
    fn rebuild(&self, from: &Foreign, to: &'static Format, told: Told) -> Outcome {
        let name = input::name(&self.output);
        let create = to.create.ok_or_else(|| {
            Failure::new(format!("{name}: tamis builds no filters of {} anew", to.name))
        })?;
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
        let mut contents = create(&told).map_err(|error| match error {
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
                "{}: does not have {} of the {} items: they are not those it was made of, or its items are \
                 something else (--funnel, --charset)",
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
            return Err(Failure::new("--items: there are no items; nothing was written"));
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
