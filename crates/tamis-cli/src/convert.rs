//! `tamis convert`: a filter from one system to another.

use std::path::{Path, PathBuf};

use tamis::{Answers, DigestSet, Hasher};
use tamis_formats::{Charset, Contents, EncodeError, FORMATS, Format, Funnel, Items, Takes, Told};

use crate::count::Count;
use crate::exit::{Failure, Outcome};
use crate::filter_file::Trust;
use crate::foreign::{Foreign, Opened, each_keys, judge_changed};
use crate::input;
use crate::key::{KeyArgs, RecordArgs, rate};
use crate::told::{TellArgs, format_parser, funnel, funnel_names, missing_to_write, parse_funnel};

/// Writes a filter as another system has it
///
/// The bits themselves move where both systems place items alike, in whatever order their bits and words are. Where they do
/// not, no program can do it without the items: with --items the filter is built anew of them, and each item is looked for in
/// both filters.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis convert users.guava users.bitmap --to redis-bitmaps
  tamis convert users.guava users.tamis --funnel text --charset UTF-8 --items users.txt

Exit status: 0 converted, 2 could not, 3 converted though over its rate.")]
pub struct Args {
    /// The filter to convert
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Where the converted filter goes; replaced only once it is complete
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The format of OUT; by default what its name ends in
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = format_parser())]
    to: Option<String>,

    /// Build OUT anew of the items in FILE, one a line (may be repeated)
    #[arg(long, value_name = "FILE")]
    items: Vec<PathBuf>,

    /// With --items: false positive rate of OUT [default: --rate-planned, or 0.01]
    #[arg(long, value_name = "R", value_parser = rate)]
    rate: Option<f64>,

    /// With --items: what an item is in OUT, if it is not the same as in IN
    #[arg(long, value_name = "FUNNEL", hide_possible_values = true, value_parser = crate::told::funnel_parser())]
    to_funnel: Option<String>,

    /// Which version of its format OUT is to be, such as 'nb' for SSTables of Cassandra 4, 1 for Spark before 4, or 31 for Guava before 33.4
    #[arg(long, value_name = "V")]
    to_version: Option<Box<str>>,

    /// Put the several filters of IN together as one where OUT has place for just one: it is fuller than it was planned for
    #[arg(long)]
    union: bool,

    /// With --items: convert even if IN does not have all of them, or OUT is over its rate with them
    #[arg(long, requires = "items")]
    force: bool,

    #[command(flatten)]
    tell: TellArgs,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    records: RecordArgs,
}

/// The rate of a filter that is built anew, if none is told.
const RATE: f64 = 0.01;

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let to = args.to_format()?;
    let mut tell = args.tell.clone();
    tell.is_charset_of_output = args.to_funnel.is_some();
    let from = open(&args.input, &tell)?;
    from.check_output(&args.output)?;
    let told = args.told_of_output(&from, to);
    if !args.items.is_empty() {
        return args.rebuild(&from, to, told);
    }
    check_same_items(&from, to)?;
    from.save(&args.output, to, &told).map_err(|failure| match failure {
        Failure::Message(message) if message.ends_with("the items") && to.create.is_some() => {
            Failure::new(format!("{message}, with --items FILE"))
        }
        failure => failure,
    })?;
    let facts = from.contents.facts();
    from.warn(&facts);
    Ok(from.judge(&facts))
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
fn open(path: &Path, tell: &TellArgs) -> Result<Foreign, Failure> {
    match Opened::one(path, tell, Trust::Assume)? {
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
                is_whole_file: true,
                path: path.to_path_buf(),
            })
        }
    }
}

impl Args {
    /// The format to write.
    fn to_format(&self) -> Result<&'static Format, Failure> {
        if let Some(name) = &self.to {
            return Ok(Format::named(name).expect("clap checked the name"));
        }
        let extension = self.output.extension().and_then(|extension| extension.to_str());
        let of_name = |format: &&Format| {
            extension.is_some_and(|extension| format.extensions.contains(&extension))
        };
        let name = input::name(&self.output);
        match FORMATS.iter().filter(of_name).collect::<Vec<_>>()[..] {
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

    /// What is told of OUT: the same as of IN, but for its version where that means something else there.
    fn told_of_output(&self, from: &Foreign, to: &Format) -> Told {
        let of_input = from.told.version.clone().filter(|_| from.format.name == to.name);
        let version = self.to_version.clone().or(of_input);
        Told { version, union: self.union, ..from.told.clone() }
    }

    /// Builds the filter anew of its items, and looks for each of them in both.
    fn rebuild(&self, from: &Foreign, to: &'static Format, told: Told) -> Outcome {
        if self.items.iter().any(|path| input::is_stdin(path)) {
            return Err(Failure::new("--items: items are read several times: name a file"));
        }
        let items = input::checked(&self.items)?;
        let from_funnel = from.funnel()?;
        let to_funnel = self.funnel_of(to, from.funnel)?;
        // A plan that was told is that of the program that will ask the filter: it computes places by it.
        let planned = match told.items {
            Some(items) => Some(items),
            // Their greatest decides, not their number.
            None if to.takes == Takes::Integers => None,
            None => Some(self.count(&items)?),
        };
        let rate = self.rate.or(told.rate).unwrap_or(RATE);
        let told = Told { items: planned, rate: Some(rate), ..told };
        let name = input::name(&self.output);
        let create = to.create.ok_or_else(|| {
            Failure::new(format!("{name}: {} is a format that is not built anew", to.name))
        })?;
        let mut contents = create(&told).map_err(|error| match error {
            EncodeError::Missing(fact) => missing_to_write(fact, &name),
            error => Failure::new(format!("{name}: {error}")),
        })?;
        let (mut answers, mut lacking) = (Answers::new(), 0);
        let total = self.each(&items, from_funnel, |keys| {
            from.contents.contains_each(keys, &mut answers);
            lacking += (keys.len() - answers.count_ones()) as u64;
            Ok(())
        })?;
        if lacking > 0 {
            let state = format!(
                "{}: does not have {} of the {} items: they are not those it was made of, or its items are \
                 something else (--funnel, --charset)",
                from.name,
                Count(lacking),
                Count(total)
            );
            if !self.force {
                return Err(Failure::new(format!(
                    "{state}; nothing was written (--force: convert)"
                )));
            }
            eprintln!("tamis: {state}");
        }
        self.each(&items, to_funnel, |keys| {
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
            len_bytes: 0,
            is_whole_file: true,
        };
        self.verify(&rebuilt, &items, to_funnel)?;
        let exit = judge_changed(&rebuilt, self.force)?;
        rebuilt.warn(&rebuilt.contents.facts());
        rebuilt.save(&self.output, to, &rebuilt.told)?;
        Ok(exit)
    }

    /// What an item is in OUT.
    fn funnel_of(&self, to: &Format, of_input: Option<Funnel>) -> Result<Funnel, Failure> {
        let told = match &self.to_funnel {
            Some(name) => Some(parse_funnel(name, self.tell.charset)?),
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

    /// Counts the distinct items.
    fn count(&self, items: &[PathBuf]) -> Result<u64, Failure> {
        let mut distinct = DigestSet::<u64>::within(u64::MAX);
        let (hasher, mut hashes, mut answers) = (Hasher::default(), Vec::new(), Answers::new());
        self.each(items, Funnel::Bytes, |keys| {
            hashes.clear();
            hashes.extend(keys.iter().map(|key| hasher.hash(key)));
            distinct.insert_each(&hashes, &mut answers).map_err(Failure::new)
        })?;
        Ok(distinct.len().max(1))
    }

    /// Reads the filter back from its bytes, and looks for every item.
    fn verify(&self, file: &Foreign, items: &[PathBuf], funnel: Funnel) -> Result<(), Failure> {
        let (name, format, told) = (&file.name, file.format, &file.told);
        let failure = |error: &dyn std::fmt::Display| Failure::new(format!("{name}: {error}"));
        let mut bytes = Vec::new();
        let encode = format.encode.expect("what is built is written");
        encode(&file.contents, told, &mut bytes).map_err(|error| failure(&error))?;
        let back = (format.decode)(&bytes, told).map_err(|error| failure(&error))?;
        drop(bytes);
        let (mut answers, mut lacking) = (Answers::new(), 0);
        self.each(items, funnel, |keys| {
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

    fn each(
        &self,
        items: &[PathBuf],
        funnel: Funnel,
        each: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        each_keys(items, &self.key.rule(), self.records.delimiter(), funnel, each)
    }
}
