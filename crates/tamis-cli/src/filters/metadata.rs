//! The metadata that a user stores in a filter file.

use std::path::PathBuf;

use tamis_formats::Metadata;

use crate::clock::now_millis;
use crate::exit::Failure;
use crate::io::input;
use crate::io::messages::note_once;
use crate::records::items::ItemArgs;
use crate::records::key::KeyRule;

/// The options that describe a filter. Every command that writes a filter has these options.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Metadata")]
pub struct MetadataArgs {
    /// Store this text in the filter file (may be repeated)
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub meta: Vec<(String, String)>,

    /// Store the names of the inputs and the time too; with --stamp, the file differs on every run
    #[arg(long)]
    pub stamp: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err(format!("'{text}' is not KEY=VALUE")),
    }
}

/// The key that stores the item type of a filter, if items are not whole records.
const ITEM: &str = "item";

impl MetadataArgs {
    /// Tests whether no option requests metadata.
    pub fn is_empty(&self) -> bool {
        self.meta.is_empty() && !self.stamp
    }

    /// Returns the metadata for a filter of `items`.
    ///
    /// # Errors
    ///
    /// A message for an invalid key, or for text that exceeds the maximum size.
    pub fn collect(&self, items: &ItemArgs) -> Result<Metadata, Failure> {
        let mut metadata = Metadata::new();
        let normalizations = items.key.rule().normalizations().into_iter();
        let words: Vec<_> =
            normalizations.filter(|(.., is_set)| *is_set).map(|(word, ..)| word).collect();
        if !words.is_empty() {
            set(&mut metadata, ITEM, &words.join(" "))?;
        }
        self.add_to(&mut metadata, &items.files)?;
        Ok(metadata)
    }

    /// Adds the user's text. With `--stamp`, also adds the names of `inputs` and the build time.
    ///
    /// # Errors
    ///
    /// The errors of [`collect`](Self::collect).
    pub fn add_to(&self, metadata: &mut Metadata, inputs: &[PathBuf]) -> Result<(), Failure> {
        if self.stamp {
            let names: Vec<String> = inputs.iter().map(|path| input::name(path)).collect();
            let names = if names.is_empty() { "standard input".into() } else { names.join(", ") };
            set(metadata, "source", &names)?;
            set(metadata, "built", &utc(now_millis() / 1000))?;
        }
        self.meta.iter().try_for_each(|(key, value)| set(metadata, key, value))
    }
}

fn set(metadata: &mut Metadata, key: &str, value: &str) -> Result<(), Failure> {
    metadata.insert(key, value).map_err(|error| Failure::new(format!("--meta {key}: {error}")))
}

/// Rejects a query for raw text if the filter contains canonical URLs, trimmed items or items in
/// lower case. A query for raw text would miss items of such a filter. If the query normalizes
/// items but the filter was built from raw text, writes only a note, because the user may have
/// normalized the items before the build.
///
/// # Errors
///
/// A message with the options that `rule` lacks.
pub fn expect_same_items(metadata: &Metadata, rule: &KeyRule, name: &str) -> Result<(), Failure> {
    let words: Vec<&str> = metadata.get(ITEM).unwrap_or_default().split(' ').collect();
    let options = |is_wanted: &dyn Fn(&str, bool) -> bool| -> Vec<&'static str> {
        let all = rule.normalizations().into_iter();
        all.filter(|(word, _, is_set)| is_wanted(word, *is_set)).map(|(_, flag, _)| flag).collect()
    };
    let lacking = options(&|word, is_set| words.contains(&word) && !is_set);
    if !lacking.is_empty() {
        return Err(Failure::new(format!(
            "{name}: was built with {0}: add {0}",
            lacking.join(" and ")
        )));
    }
    let added = options(&|word, is_set| word != "url" && is_set && !words.contains(&word));
    if !added.is_empty() {
        let added = added.join(" and ");
        note_once(format!(
            "{name}: was not built with {added}: it finds only items that {added} does not change"
        ));
    }
    Ok(())
}

/// Returns the metadata of a merged filter: the pairs of key and value that both filters have.
///
/// # Errors
///
/// A message if the filters contain different types of items.
pub fn common(one: &Metadata, other: &Metadata, name: &str) -> Result<Metadata, Failure> {
    if one.get(ITEM) != other.get(ITEM) {
        let kind = |metadata: &Metadata| metadata.get(ITEM).unwrap_or("record").to_owned();
        return Err(Failure::new(format!(
            "{name}: its items are of another kind: {}, not {}",
            kind(other),
            kind(one)
        )));
    }
    let mut metadata = Metadata::new();
    for (key, value) in one.iter().filter(|(key, value)| other.get(key) == Some(value)) {
        set(&mut metadata, key, value)?;
    }
    Ok(metadata)
}

/// Formats seconds since 1970 as RFC 3339.
fn utc(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // The days are counted from 0000-03-01, so that a leap day is the last day of a year. Hinnant,
    // "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year_of_era + carry;
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_763_651_103), "2025-11-20T15:05:03Z");
        assert_eq!(utc(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn merged_metadata_are_what_both_say() {
        let metadata = |pairs: &[(&str, &str)]| {
            let mut metadata = Metadata::new();
            pairs.iter().for_each(|(key, value)| metadata.insert(key, value).unwrap());
            metadata
        };
        let one = metadata(&[("a", "1"), ("b", "2")]);
        let other = metadata(&[("a", "1"), ("b", "3"), ("c", "4")]);
        assert_eq!(common(&one, &other, "f").unwrap(), metadata(&[("a", "1")]));
        assert!(common(&one, &metadata(&[("item", "url")]), "f").is_err());
    }
}
