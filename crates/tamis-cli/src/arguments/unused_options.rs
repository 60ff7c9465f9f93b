//! Decides on which files a decode option has an effect. A command rejects an option without an
//! effect, because the user expects an effect.

use tamis_formats::{FORMATS, Format, ItemDomain, Items, Parameter};

use crate::arguments::decode_options::DecodeArgs;
use crate::exit::Failure;

/// A decode option of [`DecodeArgs`].
#[derive(Debug)]
pub struct DecodeOption {
    /// The name of the option on the command line.
    name: &'static str,
    is_given: fn(&DecodeArgs) -> bool,
    effect: Effect,
}

/// The parameter that a decode option sets. The parameter decides on which files the option has an
/// effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The format of the filter.
    Format,
    /// The item type of a filter of another system.
    Items,
    /// The planned rate of a filter of another system. Commands compare the current rate with the
    /// planned rate.
    Rate,
    /// The key of the filter, in a file with several keys.
    Key,
    /// The column of a Parquet table or of an ORC file.
    Column,
    /// A decode parameter of some formats.
    Parameter(Parameter),
}

/// Every decode option.
static OPTIONS: [DecodeOption; 10] = [
    DecodeOption::new("--format", |it| it.format.is_some(), Effect::Format),
    DecodeOption::new("--funnel", |it| it.funnel.is_some(), Effect::Items),
    DecodeOption::new("--charset", |it| it.charset.is_some(), Effect::Items),
    DecodeOption::parameter("--items-planned", |it| it.items_planned.is_some(), Parameter::Items),
    DecodeOption::new("--rate-planned", |it| it.rate_planned.is_some(), Effect::Rate),
    DecodeOption::new("--key", |it| it.key.is_some(), Effect::Key),
    DecodeOption::new("--column", |it| it.column.is_some(), Effect::Column),
    DecodeOption::parameter(
        "--format-version",
        |it| it.format_version.is_some(),
        Parameter::Version,
    ),
    DecodeOption::parameter("--block-hash", |it| it.block_hash.is_some(), Parameter::BlockHash),
    DecodeOption::parameter("--md5", |it| it.md5, Parameter::Md5),
];

impl DecodeOption {
    const fn new(name: &'static str, is_given: fn(&DecodeArgs) -> bool, effect: Effect) -> Self {
        Self { name, is_given, effect }
    }

    const fn parameter(
        name: &'static str,
        is_given: fn(&DecodeArgs) -> bool,
        parameter: Parameter,
    ) -> Self {
        Self::new(name, is_given, Effect::Parameter(parameter))
    }
}

/// The properties of a file that decide which decode options have an effect.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// The format of the filters in the file.
    pub format: &'static Format,
    /// The location of the filters in the file.
    pub place: FilterLocation,
}

/// The location of the filters in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterLocation {
    /// The file is a filter.
    File,
    /// The filters are stored under keys, in a snapshot of Redis or in commands.
    Keys,
    /// The filters belong to the columns of a Parquet table or of an ORC file.
    Columns,
}

/// The options that the user gave and that had no effect yet.
pub struct UnusedOptions {
    options: Vec<&'static DecodeOption>,
}

impl UnusedOptions {
    /// Creates the set of all options that the user gave.
    pub fn of(decode: &DecodeArgs) -> Self {
        Self { options: OPTIONS.iter().filter(|option| (option.is_given)(decode)).collect() }
    }

    /// Removes the options that have an effect on an input file.
    pub fn read(&mut self, file: FileKind, decode: &DecodeArgs) {
        self.options.retain(|option| !option.effect.is_on(file, decode));
    }

    /// Removes the options that have an effect on a filter of `format` that `convert`
    /// writes. `is_from_items` is true if the filter is built from items.
    pub fn write(&mut self, format: &Format, is_from_items: bool) {
        self.options.retain(|option| match option.effect {
            Effect::Format | Effect::Column => false,
            Effect::Items => !is_from_items && format.items != Items::Unspecified,
            Effect::Rate => !is_from_items && !format.writes(Parameter::Rate),
            Effect::Key => !format.writes(Parameter::Key),
            Effect::Parameter(parameter) => !format.writes(parameter),
        });
    }

    /// Returns an explanation for each option that had no effect.
    pub fn phrases(&self) -> Vec<String> {
        let phrase = |option: &&DecodeOption| {
            format!("{} has no effect here: {}", option.name, option.effect.purpose())
        };
        self.options.iter().map(phrase).collect()
    }

    /// Returns the names of the options that had no effect.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().map(|option| option.name)
    }

    /// Rejects the options that had no effect.
    ///
    /// # Errors
    ///
    /// A message if an option had no effect. `files` names the input files.
    pub fn check(&self, files: &str) -> Result<(), Failure> {
        match &self.phrases()[..] {
            [] => Ok(()),
            [one] => Err(Failure::new(format!("{files}: {one}; leave it out"))),
            all => Err(Failure::new(format!("{files}: {}; leave them out", all.join("; ")))),
        }
    }
}

impl Effect {
    /// Tests whether an option has an effect on an input file.
    fn is_on(self, FileKind { format, place }: FileKind, decode: &DecodeArgs) -> bool {
        let is_own = format.name == "tamis";
        match self {
            Effect::Format => decode.format.as_deref() == Some(format.name),
            Effect::Items => !is_own,
            Effect::Rate => !is_own && format.item_domain != ItemDomain::Integers,
            Effect::Key => place == FilterLocation::Keys && format.reads(Parameter::Key),
            Effect::Column => place == FilterLocation::Columns,
            Effect::Parameter(parameter) => format.reads(parameter),
        }
    }

    /// Returns the purpose of an option, as a clause for a message.
    fn purpose(self) -> String {
        let readers_of = |parameter| {
            let readers = FORMATS.iter().filter(|format| format.reads(parameter));
            readers.map(|format| format.name).collect::<Vec<_>>().join(", ")
        };
        match self {
            Effect::Format => "the bytes show another format".to_owned(),
            Effect::Items => "the items of a Tamis filter are always bytes".to_owned(),
            Effect::Rate => "it is for filters of other systems that have a rate".to_owned(),
            Effect::Key => format!(
                "it names a key in a Redis snapshot or in commands that load a filter; formats \
                 that take it: {}",
                readers_of(Parameter::Key)
            ),
            Effect::Column => "it is for Parquet tables and ORC files".to_owned(),
            Effect::Parameter(parameter) => format!("it is for {}", readers_of(parameter)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        decode: DecodeArgs,
    }

    fn left(line: &str, format: &str, place: FilterLocation) -> Vec<String> {
        let words = std::iter::once("program").chain(line.split_whitespace());
        let decode = Program::parse_from(words).decode;
        let mut unused = UnusedOptions::of(&decode);
        unused.read(FileKind { format: Format::named(format).unwrap(), place }, &decode);
        unused.options.iter().map(|option| option.name.to_owned()).collect()
    }

    #[test]
    fn a_tamis_file_takes_no_decode_option_but_its_format() {
        let hash = "00".repeat(32);
        let line = format!(
            "--funnel text --charset UTF-8 --items-planned 5 --rate-planned 0.1 --key k --column c \
             --format-version 2 --block-hash {hash} --md5 --format"
        );
        let all: Vec<_> = OPTIONS.iter().map(|option| option.name).collect();
        assert_eq!(left(&format!("{line} guava"), "tamis", FilterLocation::File), all);
        assert_eq!(left(&format!("{line} tamis"), "tamis", FilterLocation::File), all[1..]);
    }

    #[test]
    fn an_option_has_an_effect_on_the_formats_that_use_it() {
        for (line, format, place, is_used) in [
            ("--md5", "pybloom-live", FilterLocation::File, true),
            ("--md5", "guava", FilterLocation::File, false),
            ("--key k", "redisbloom", FilterLocation::Keys, true),
            ("--key k", "redisbloom", FilterLocation::File, false),
            ("--key k", "redis-bitmaps", FilterLocation::Keys, false),
            ("--column c", "parquet", FilterLocation::Columns, true),
            ("--column c", "parquet", FilterLocation::File, false),
            ("--items-planned 5", "redisson", FilterLocation::Keys, true),
            ("--items-planned 5", "guava", FilterLocation::File, false),
            ("--rate-planned 0.1", "guava", FilterLocation::File, true),
            ("--rate-planned 0.1", "roaring", FilterLocation::File, false),
            ("--format-version nb", "cassandra", FilterLocation::File, true),
            ("--format-version 31", "guava", FilterLocation::File, false),
            ("--format guava", "guava", FilterLocation::File, true),
            ("--format guava", "spark", FilterLocation::File, false),
            ("--funnel bytes", "guava", FilterLocation::File, true),
        ] {
            assert_eq!(left(line, format, place).is_empty(), is_used, "{line} {format}");
        }
    }
}
