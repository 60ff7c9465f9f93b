//! `tamis merge`: merges several filters into one.

#[cfg(feature = "network")]
mod on_server;

use std::path::PathBuf;

use tamis::Layout;
use tamis_formats::TamisFile;

use crate::arguments::decode_options::DecodeArgs;
use crate::clock::{check_clock, now_millis};
use crate::exit::{CommandResult, Failure};
use crate::filters::metadata::{MetadataArgs, common};
use crate::filters::open_filter::{OpenFilter, Trust};
use crate::filters::opener::Opener;
use crate::filters::rate_notes::Notes;
use crate::io::input;
use crate::io::output::{self, check_filter_output, refuse_name_of_other_format};

/// Merge filters of the same layout into one filter
///
/// Build one filter per machine or per day with the same --items, --rate, --kind and --seed. As an
/// alternative, build each later filter with 'build --like' of the first filter. After the builds,
/// merge the files with 'tamis merge'. The merged filter has the plan of the first filter and keeps
/// the metadata that all filters share.
///
/// Filters may be keys of Redis or Valkey servers: redis://HOST/KEY. Filters of tamis-redis are
/// merged on the server, and need the same --items and --rate.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis build --items 10M monday.txt -o monday.tamis
  tamis build --items 10M tuesday.txt -o tuesday.tamis
  tamis merge monday.tamis tuesday.tamis -o week.tamis
  tamis merge redis://a/seen redis://b/seen -o redis://a/seen       on Redis servers

Exit status: 0 merged, 2 failed, 3 merged with --force, but over its rate.")]
pub struct Args {
    /// Filters to merge; they must have the same layout
    #[arg(required = true, value_name = "FILTERS")]
    filters: Vec<PathBuf>,

    /// Write the merged filter to FILE; FILE may be one of the inputs. Or write to a key of a Redis
    /// server: redis://HOST/KEY
    #[arg(short, long, value_name = "FILE|URL")]
    output: PathBuf,

    /// Write the merged filter even if its false positive rate exceeds the planned rate; the exit
    /// status is 3
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    metadata: MetadataArgs,

    // The decode options are the last field, because clap puts all options after this field under
    // the heading of the decode options.
    #[command(flatten)]
    decode: DecodeArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    #[cfg(feature = "network")]
    if let Some(exit) = args.merge_on_server()? {
        return Ok(exit);
    }
    let (first, others) = args.filters.split_first().expect("clap requires one");
    check_filter_output(&args.output)?;
    let mut opener = Opener::new(&args.decode);
    let mut merged = opener.one(first, Trust::Assume)?.into_decoded()?;
    args.check_metadata(&mut merged)?;
    refuse_name_of_other_format(&args.output, merged.format)?;
    merged.check_output(&args.output)?;
    if let Some(file) = merged.tamis_mut() {
        check_clock(&file.filter, &input::name(first))?;
        file.filter.advance(now_millis());
    }
    for path in others {
        let other = opener.one(path, Trust::Verify)?;
        other.check_output(&args.output)?;
        merge(&mut merged, &other)?;
    }
    opener.finish()?;
    if let Some(file) = merged.tamis_mut() {
        args.metadata.add_to(&mut file.metadata, &args.filters)?;
    }
    merged.name = output::name(&args.output);
    merged.save(&args.output, args.force, Notes::Rate)
}

impl Args {
    /// Rejects metadata for a filter of another system.
    fn check_metadata(&self, merged: &mut OpenFilter) -> Result<(), Failure> {
        if merged.tamis_mut().is_some() || self.metadata.is_empty() {
            return Ok(());
        }
        let (name, format) = (&merged.name, merged.format.name);
        Err(Failure::new(format!("{name}: {format} has no place for --meta and --stamp")))
    }
}

/// Adds the items of `other` to `merged`.
fn merge(merged: &mut OpenFilter, other: &OpenFilter) -> Result<(), Failure> {
    let first = merged.name.clone();
    let failure =
        |why: String| Failure::new(format!("{}: does not merge with {first}: {why}", other.name));
    let format = merged.format.name;
    match (merged.tamis_mut(), other.view()?) {
        (Some(file), Some(view)) => {
            if let Some(difference) = difference(&file.filter.layout(), &view.filter.layout()) {
                return Err(failure(format!(
                    "{difference}; build both with the same --items, --rate, --kind and --seed, \
                     or one with 'tamis build --like' of the other"
                )));
            }
            let TamisFile { filter, added, metadata } = file;
            *metadata = common(metadata, &view.metadata, &other.name)?;
            check_clock(&view.filter, &other.name)?;
            filter.merge(&view.filter).map_err(|error| {
                Failure::new(format!("{}: {error}; nothing was written", other.name))
            })?;
            other.check_unchanged()?;
            *added = added.saturating_add(view.added);
            Ok(())
        }
        (None, None) => {
            let done = merged.contents_mut().merge(other.contents());
            done.map_err(|error| failure(error.to_string()))
        }
        _ => Err(failure(format!(
            "it is a filter of {}, and {first} is one of {format}",
            other.format.name
        ))),
    }
}

/// Returns the first difference between two layouts, as a part of a sentence.
fn difference(one: &Layout, other: &Layout) -> Option<String> {
    let Layout { kind, bits, geometry, hasher } = other;
    if *kind != one.kind {
        Some(format!("its kind is {kind}, not {}", one.kind))
    } else if *bits != one.bits {
        Some(format!("it has {bits} bits, not {}", one.bits))
    } else if *geometry != one.geometry {
        Some(format!("it has {geometry}, not {}", one.geometry))
    } else if *hasher == one.hasher {
        None
    } else if hasher.to_string() == one.hasher.to_string() {
        Some("its secret key is different".into())
    } else {
        Some(format!("its hash is {hasher}, not {}", one.hasher))
    }
}

#[cfg(test)]
mod tests {
    use tamis::{Geometry, Hasher, Kind};

    use super::*;

    #[test]
    fn the_field_that_differs_is_named() {
        let one = Layout {
            kind: Kind::SplitBlock,
            bits: 512,
            geometry: Geometry::Probes(8),
            hasher: Hasher::sip13([1, 2]),
        };
        assert_eq!(difference(&one, &one), None);
        for (other, word) in [
            (Layout { kind: Kind::Parquet, ..one }, "kind"),
            (Layout { bits: 1024, ..one }, "1024 bits"),
            (Layout { geometry: Geometry::Probes(7), ..one }, "7 probes"),
            (Layout { hasher: Hasher::mix(5), ..one }, "mix seed 5"),
            (Layout { hasher: Hasher::sip13([1, 3]), ..one }, "secret key"),
        ] {
            let difference = difference(&one, &other).unwrap();
            assert!(difference.contains(word), "{difference}");
        }
    }
}
