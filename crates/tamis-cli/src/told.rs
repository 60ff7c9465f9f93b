//! Options by which a user says what the bytes of a filter do not.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis_formats::bitcoin::Hash256;
use tamis_formats::{Charset, FORMATS, Fact, Format, Funnel, Items, Takes, Told};

use crate::count::Count;
use crate::exit::Failure;
use crate::key::rate;

/// What a filter of another system does not say of itself, alike in every command that reads one.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "For filters of other systems")]
pub struct TellArgs {
    /// What the filter is, if its bytes do not show it: see 'tamis formats'
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = format_parser())]
    pub format: Option<String>,

    /// What an item is there (Guava's funnel): bytes, hex, text, twice, chars, int, long, unsigned, unsigned-int, float, double, hash128,
    /// hash-string, hash-integer, ... for Java's hashCode, long-be, double-be for Hive, or orc-bytes, orc-long, orc-double
    #[arg(long, value_name = "FUNNEL", hide_possible_values = true, value_parser = funnel_parser())]
    pub funnel: Option<String>,

    /// How text becomes bytes there: UTF-8, GBK, ISO-8859-1, ...
    #[arg(long, value_name = "CHARSET", ignore_case = true, value_parser = charset_parser())]
    pub charset: Option<Charset>,

    /// For how many items the filter was planned there
    #[arg(long, value_name = "N")]
    pub items_planned: Option<Count>,

    /// For which rate the filter was planned there: a probability, or 1%
    #[arg(long, value_name = "R", value_parser = rate)]
    pub rate_planned: Option<f64>,

    /// Its key, in a snapshot of Redis that has several filters
    #[arg(long, value_name = "KEY")]
    pub key: Option<OsString>,

    /// The column, in a Parquet table where several have filters
    #[arg(long, value_name = "NAME")]
    pub column: Option<String>,

    /// Which version of the format it is, such as 'nb' in the name of an SSTable
    #[arg(long, value_name = "V")]
    pub format_version: Option<Box<str>>,

    /// The hash of the block that it is of, as block explorers show it (BIP-158)
    #[arg(long, value_name = "HASH")]
    pub block_hash: Option<Hash256>,

    /// Its hash is MD5 (pybloom_live before 4)
    #[arg(long)]
    pub md5: bool,

    /// The charset is that of the filter to be written.
    #[arg(skip)]
    pub is_charset_of_output: bool,
}

/// Reads the name of a format. For clap.
pub fn format_parser() -> PossibleValuesParser {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.summary));
    PossibleValuesParser::new(values.collect::<Vec<_>>())
}

/// Reads the name of a funnel. For clap.
pub fn funnel_parser() -> PossibleValuesParser {
    let values = Funnel::NAMES.iter().map(|&(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values.collect::<Vec<_>>())
}

/// Reads the name of a charset. For clap.
pub fn charset_parser() -> impl TypedValueParser<Value = Charset> {
    PossibleValuesParser::new(Charset::ALL.map(Charset::name))
        .map(|name| Charset::named(&name).expect("clap checked the name"))
}

impl TellArgs {
    /// Returns what was told of the filter itself.
    pub fn told(&self) -> Told {
        Told {
            items: self.items_planned.map(|Count(items)| items),
            rate: self.rate_planned,
            version: self.format_version.clone(),
            block_hash: self.block_hash,
            key: self.key.as_ref().map(|key| key.as_encoded_bytes().to_vec()),
            union: false,
            md5: self.md5,
        }
    }

    /// Returns what was told of its items.
    ///
    /// # Errors
    ///
    /// A funnel of text without a charset; a charset of no text.
    pub fn funnel(&self) -> Result<Option<Funnel>, Failure> {
        let funnel =
            self.funnel.as_ref().map(|name| parse_funnel(name, self.charset)).transpose()?;
        let is_text = matches!(funnel, Some(Funnel::Text(_) | Funnel::Twice(_)));
        if self.charset.is_some() && !is_text && !self.is_charset_of_output {
            return Err(Failure::new(
                "--charset is for text: say --funnel text too, or twice; formats whose items are always text have their own",
            ));
        }
        Ok(funnel)
    }
}

/// Returns the funnel of this name, which clap has checked.
///
/// # Errors
///
/// If it is one of text and no charset was told.
pub fn parse_funnel(name: &str, charset: Option<Charset>) -> Result<Funnel, Failure> {
    Funnel::named(name, charset).ok_or_else(|| {
        let charsets = Charset::ALL.map(Charset::name).join(", ");
        Failure::new(format!("funnel {name}: in which charset? add --charset ({charsets})"))
    })
}

/// Returns what the items of a filter are.
///
/// # Errors
///
/// If its bytes do not say, and nobody has told; if no such filter has such items.
pub fn funnel(format: &Format, told: Option<Funnel>, name: &str) -> Result<Funnel, Failure> {
    match (told, format.items) {
        (Some(funnel), _) if !format.takes.funnel(funnel) => Err(Failure::new(format!(
            "{name}: {} has no such items: say another funnel ({})",
            format.name,
            funnel_names(format.takes)
        ))),
        (Some(funnel), _) | (None, Items::Are(funnel)) => Ok(funnel),
        (None, Items::Asked) => Err(Failure::new(format!(
            "{name}: its bytes do not say what its items are: say --funnel ({})",
            funnel_names(format.takes)
        ))),
    }
}

/// The names of the funnels of such items.
pub fn funnel_names(takes: Takes) -> String {
    let names = Funnel::NAMES.iter().map(|&(name, _)| name).filter(|name| {
        // In any charset: all are taken, or none.
        Funnel::named(name, Some(Charset::Utf8)).is_some_and(|funnel| takes.funnel(funnel))
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Asks for a fact by the name of its option.
pub fn missing(fact: Fact, name: &str) -> Failure {
    let option = match fact {
        Fact::Items => "for how many items it was planned: say --items-planned N",
        Fact::Rate => "for which rate it was planned: say --rate-planned R",
        Fact::Key => "which of its keys: say --key KEY",
        Fact::Version => "of which version it is: say --format-version V",
        Fact::BlockHash => "of which block it is: say --block-hash HASH",
        other => return Failure::new(format!("{name}: its bytes do not say its {other}")),
    };
    Failure::new(format!("{name}: its bytes do not say {option}"))
}

/// Asks for a fact that a filter is written with.
pub fn missing_to_write(fact: Fact, name: &str) -> Failure {
    let asked = match fact {
        Fact::Items => "for how many items is it planned? say --to-items N",
        Fact::Rate => "for which rate is it planned? say --to-rate R",
        Fact::Version => "of which version is it to be? say --to-version V",
        fact => return missing(fact, name),
    };
    Failure::new(format!("{name}: {asked}"))
}
