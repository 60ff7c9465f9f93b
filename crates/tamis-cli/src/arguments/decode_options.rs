//! Decode options: parameters that the file of a filter does not store.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis_formats::bitcoin::{Hash256, HashError};
use tamis_formats::{
    Charset, DecodeOptions, FORMATS, Format, Funnel, ItemDomain, Items, Parameter,
};

use crate::arguments::numbers::HumanCount;
use crate::exit::Failure;
use crate::records::key::rate;

/// Decode options: parameters that the file of another system does not store. Every command that
/// reads files of other systems accepts these options.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "For filters of other systems")]
pub struct DecodeArgs {
    /// Format of the filter, if it is not recognised: see 'tamis formats'
    #[arg(long, value_name = "FORMAT", ignore_case = true, hide_possible_values = true, value_parser = format_parser())]
    pub format: Option<String>,

    /// How the other system converts an item to the bytes that it hashes, as Guava's funnels do.
    /// Strings: text or twice (with --charset), chars, bytes, hex. Numbers: int, long, unsigned,
    /// unsigned-int, float, double. Java's hashCode: hash-string, hash-integer, ... Hashes:
    /// hash128. Hive: long-be, double-be. ORC: orc-bytes, orc-long, orc-double, orc-float. abloom:
    /// abloom-bytes, abloom-int, abloom-float
    #[arg(long, value_name = "FUNNEL", ignore_case = true, hide_possible_values = true, value_parser = funnel_parser())]
    pub funnel: Option<String>,

    /// How the other system encodes text: UTF-8, GBK, ISO-8859-1, ...
    #[arg(long, value_name = "CHARSET", ignore_case = true, value_parser = charset_parser())]
    pub charset: Option<Charset>,

    /// Number of items that the filter was planned for
    #[arg(long, value_name = "N")]
    pub items_planned: Option<HumanCount>,

    /// Rate that the filter was planned for: a probability, or 1%
    #[arg(long, value_name = "R", value_parser = rate)]
    pub rate_planned: Option<f64>,

    /// Key of the filter, in a Redis snapshot with several filters
    #[arg(long, value_name = "KEY")]
    pub key: Option<OsString>,

    /// Column of the filter, in a Parquet table or an ORC file with several filters
    #[arg(long, value_name = "NAME")]
    pub column: Option<String>,

    /// Version of the format, such as 'nb' in the name of an SSTable
    #[arg(long, value_name = "V")]
    pub format_version: Option<Box<str>>,

    /// Hash of the filter's block, as block explorers show it (BIP-158)
    #[arg(long, value_name = "HASH", value_parser = block_hash)]
    pub block_hash: Option<Hash256>,

    /// Hash with MD5 (pybloom_live before 4)
    #[arg(long)]
    pub md5: bool,

    /// True if `charset` is the charset of the filter to be written.
    #[arg(skip)]
    pub is_charset_of_output: bool,

    /// True if the command needs the funnel of the items.
    #[arg(skip)]
    pub requires_funnel: bool,
}

/// Returns the clap parser for the name of a format.
pub fn format_parser() -> impl TypedValueParser<Value = String> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.summary));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).map(|name| name.to_lowercase())
}

/// Returns the clap parser for the name of a funnel.
pub fn funnel_parser() -> impl TypedValueParser<Value = String> {
    let values = Funnel::NAMES.iter().map(|&(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).map(|name| name.to_lowercase())
}

/// Returns the clap parser for the name of a charset.
pub fn charset_parser() -> impl TypedValueParser<Value = Charset> {
    let values = Charset::ALL.map(|it| PossibleValue::new(it.name()).aliases(it.aliases()));
    PossibleValuesParser::new(values)
        .map(|name| Charset::named(&name).expect("clap checked the name"))
}

/// Parses the hash of a block for clap.
fn block_hash(text: &str) -> Result<Hash256, String> {
    let hash: Hash256 = text.parse().map_err(|error: HashError| error.to_string())?;
    if hash.is_reversed_block() {
        return Err(format!(
            "the zeros of a block's hash are at its start: this is the byte order of the network; \
             give {}",
            hash.reversed()
        ));
    }
    Ok(hash)
}

impl DecodeArgs {
    /// Returns the options that the decoder of the filter needs.
    pub fn options(&self) -> DecodeOptions {
        DecodeOptions {
            items: self.items_planned.map(|HumanCount(items)| items),
            rate: self.rate_planned,
            version: self.format_version.clone(),
            block_hash: self.block_hash,
            key: self.key.as_ref().map(|key| key.as_encoded_bytes().to_vec()),
            union: false,
            md5: self.md5,
        }
    }

    /// Returns the funnel that the user gave.
    ///
    /// # Errors
    ///
    /// A message for a text funnel without a charset, or for a charset without a text funnel.
    pub fn funnel(&self) -> Result<Option<Funnel>, Failure> {
        let parse = |name: &String| parse_funnel(name, self.charset, "--charset");
        let funnel = self.funnel.as_ref().map(parse).transpose()?;
        let is_text = funnel.is_some_and(has_charset);
        if self.charset.is_some() && !is_text && !self.is_charset_of_output {
            return Err(Failure::new(
                "--charset is for text: add --funnel text or --funnel twice; formats whose items \
                 are always text need no --charset",
            ));
        }
        Ok(funnel)
    }
}

/// Returns the funnel with the name `name`, which clap has checked. `option` is the option that
/// sets the charset.
///
/// # Errors
///
/// A message for a text funnel without a charset.
pub fn parse_funnel(name: &str, charset: Option<Charset>, option: &str) -> Result<Funnel, Failure> {
    Funnel::named(name, charset).ok_or_else(|| {
        let charsets = Charset::ALL.map(Charset::name).join(", ");
        Failure::new(format!("funnel {name} needs a charset: add {option} ({charsets})"))
    })
}

/// Tests whether the items of a funnel are text in a charset.
pub fn has_charset(funnel: Funnel) -> bool {
    matches!(funnel, Funnel::Text(_) | Funnel::Twice(_))
}

/// Returns the funnel for the items of a filter. `option` is the option that sets the funnel.
///
/// # Errors
///
/// A message if neither the file nor the user states the funnel. A message if the format does not
/// accept the funnel.
pub fn funnel(
    format: &Format,
    given: Option<Funnel>,
    option: &str,
    name: &str,
) -> Result<Funnel, Failure> {
    match (given, format.items) {
        (Some(funnel), _) if !format.item_domain.accepts(funnel) => Err(Failure::new(format!(
            "{name}: {} cannot hold items of this funnel: give another one ({})",
            format.name,
            funnel_names(format.item_domain)
        ))),
        (Some(funnel), _) | (None, Items::Default(funnel)) => Ok(funnel),
        (None, Items::Unspecified) => Err(Failure::new(format!(
            "{name}: the type of its items is unknown: give {option} ({})",
            funnel_names(format.item_domain)
        ))),
    }
}

/// Returns the names of the funnels that a format with items of `item_domain` accepts.
pub fn funnel_names(item_domain: ItemDomain) -> String {
    let names = Funnel::NAMES.iter().map(|&(name, _)| name).filter(|name| {
        // The charset does not matter: a format accepts text in all charsets or in none.
        Funnel::named(name, Some(Charset::Utf8)).is_some_and(|funnel| item_domain.accepts(funnel))
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the failure for a filter that cannot be decoded without `parameter`. The message names
/// the options for `parameter` and for all other parameters that the command needs. `keys` lists
/// the candidates for [`Parameter::Key`], if known.
pub fn missing(
    parameter: Parameter,
    keys: &str,
    decode: &DecodeArgs,
    format: &Format,
    name: &str,
) -> Failure {
    let given = decode.options();
    let missing = all_missing(parameter, &given, format).map(phrase);
    let (mut phrases, mut options): (Vec<String>, Vec<String>) =
        missing.map(|(phrase, option)| (phrase.to_owned(), option.to_owned())).unzip();
    if !keys.is_empty() {
        options[0].push_str(&format!(" ({keys})"));
    }
    if decode.requires_funnel && decode.funnel.is_none() && format.items == Items::Unspecified {
        phrases.push("the type of its items".to_owned());
        options.push(format!("--funnel ({})", funnel_names(format.item_domain)));
    }
    let last = phrases.pop().expect("one at least");
    let phrases = match phrases.is_empty() {
        true => last,
        false => format!("{} and {last}", phrases.join(", ")),
    };
    let mut all =
        vec![format!("{name}: reading it requires {phrases}: give {}", options.join(" "))];
    if !keys.is_empty() {
        all.push("'tamis info --keys' lists all keys".to_owned());
    }
    if let Err(Failure::Message(message)) = decode.funnel() {
        all.push(message);
    }
    Failure::new(all.join("; "))
}

/// Returns `parameter` and all other parameters that the format needs but the user did not give.
fn all_missing(
    parameter: Parameter,
    options: &DecodeOptions,
    format: &Format,
) -> impl Iterator<Item = Parameter> {
    let required = format.parameters.required.iter().copied();
    let others = required.filter(move |&other| other != parameter && !options.has(other));
    std::iter::once(parameter).chain(others)
}

/// Returns a phrase for a parameter, and the option that sets the parameter.
fn phrase(parameter: Parameter) -> (&'static str, &'static str) {
    match parameter {
        Parameter::Items => ("the planned number of items", "--items-planned N"),
        Parameter::Rate => ("the planned rate", "--rate-planned R"),
        Parameter::Key => ("the key to read", "--key KEY"),
        Parameter::Version => ("its version", "--format-version V"),
        Parameter::BlockHash => ("the hash of its block", "--block-hash HASH"),
        other => (other.name(), "its option"),
    }
}

/// Returns the failure for a filter that cannot be written without `parameter`. The message also
/// names the other parameters that the format needs and the user did not give.
pub fn missing_to_write(
    parameter: Parameter,
    options: &DecodeOptions,
    format: &Format,
    name: &str,
) -> Failure {
    let messages: Vec<_> =
        all_missing(parameter, options, format).map(missing_for_output).collect();
    Failure::new(format!("{name}: {}", messages.join("; ")))
}

/// Returns the message for a missing parameter of a filter to be written.
pub fn missing_for_output(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::Items => "the planned number of items is missing: give --to-items N",
        Parameter::Rate => "the planned rate is missing: give --to-rate R",
        Parameter::Version => "the version is missing: give --to-version V",
        Parameter::BlockHash => "the hash of its block is missing: give --block-hash HASH",
        Parameter::Key => "the key is missing: give --key KEY",
        _ => "a parameter is missing that the page of its format names",
    }
}
