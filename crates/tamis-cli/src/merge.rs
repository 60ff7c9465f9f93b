//! `tamis merge`: merges several filters into one.

use std::path::{Path, PathBuf};

use tamis::Layout;
use tamis_formats::Format;

use crate::build::judge;
use crate::clock::now_millis;
use crate::exit::{Failure, Outcome};
use crate::filter_file::{Trust, check_clock, save};
use crate::foreign::{Foreign, judge_changed};
use crate::input;
use crate::metadata::{MetadataArgs, common};
use crate::opened::{Opened, Opener};
use crate::output::check_filter_output;
use crate::told::TellArgs;

/// Merges filters of the same layout into one filter
///
/// Build one filter per machine or per day with the same --items, --rate, --kind and --seed, or each with 'build --like' of
/// the first, then merge the files. The merged filter has the plan of the first one and keeps the metadata that all
/// share.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis build --items 10M monday.txt -o monday.tamis
  tamis build --items 10M tuesday.txt -o tuesday.tamis
  tamis merge monday.tamis tuesday.tamis -o week.tamis

Exit status: 0 merged, 2 failed, 3 merged with --force, but over its rate.")]
pub struct Args {
    /// Filters of one layout
    #[arg(required = true, value_name = "FILTERS")]
    filters: Vec<PathBuf>,

    /// Write the merged filter to FILE; it may be one of the inputs
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Finish with exit status 3 even if the merged filter is over its rate
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    metadata: MetadataArgs,

    // This is the last field: clap puts later options under its heading in the help.
    #[command(flatten)]
    tell: TellArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let (first, others) = args.filters.split_first().expect("clap requires one");
    check_filter_output(&args.output)?;
    let now = now_millis();
    let mut opener = Opener::new(&args.tell);
    let mut merged = match opener.one(first, Trust::Assume)? {
        Opened::Foreign(merged) => return args.merge_foreign(*merged, others, opener),
        Opened::Tamis(source) => source.into_file()?,
        Opened::Unfiltered(name) => return Err(Failure::new(format!("{name}: has no filter"))),
    };
    refuse_other_format(&args.output, Format::named("tamis").expect("the first row"))?;
    check_clock(&merged.filter, now, &input::name(first))?;
    merged.filter.advance(now);
    let mut metadata = merged.metadata.clone();
    for path in others {
        let source = match opener.one(path, Trust::Verify)? {
            Opened::Tamis(source) => source,
            Opened::Foreign(other) => {
                let (name, format) = (&other.name, other.format.name);
                return Err(Failure::new(format!(
                    "{name}: a filter of {format} does not merge with {}, which is a Tamis filter",
                    input::name(first)
                )));
            }
            Opened::Unfiltered(name) => return Err(Failure::new(format!("{name}: has no filter"))),
        };
        let mut other = source.file()?;
        other.filter.advance(now);
        let (one, two) = (merged.filter.layout(), other.filter.layout());
        if let Some(difference) = difference(&one, &two) {
            return Err(Failure::new(format!(
                "{}: does not merge with {}: {difference}; build both with the same --items, --rate, \
                 --kind and --seed, or one with 'tamis build --like' of the other",
                source.name(),
                input::name(first),
            )));
        }
        metadata = common(&metadata, &other.metadata, source.name())?;
        check_clock(&other.filter, now, source.name())?;
        merged.filter.merge(&other.filter).map_err(|error| {
            Failure::new(format!("{}: {error}; nothing was written", source.name()))
        })?;
        source.check_unchanged()?;
        merged.added = merged.added.saturating_add(other.added);
    }
    opener.finish()?;
    args.metadata.add_to(&mut metadata, &args.filters)?;
    merged.metadata = metadata;
    let exit = judge(&merged, &args.output, args.force)?;
    save(&args.output, &merged)?;
    Ok(exit)
}

impl Args {
    fn merge_foreign(
        &self,
        mut merged: Foreign,
        others: &[PathBuf],
        mut opener: Opener<'_>,
    ) -> Outcome {
        if !self.metadata.is_empty() {
            let (name, format) = (&merged.name, merged.format.name);
            return Err(Failure::new(format!(
                "{name}: {format} has no place for --meta and --stamp"
            )));
        }
        refuse_other_format(&self.output, merged.format)?;
        merged.check_output(&self.output)?;
        for path in others {
            let Opened::Foreign(other) = opener.one(path, Trust::Verify)? else {
                let (one, name) = (&merged.name, input::name(path));
                return Err(Failure::new(format!(
                    "{name}: a Tamis filter does not merge with {one}, which is {}",
                    merged.format.name
                )));
            };
            other.check_output(&self.output)?;
            merged.contents.merge(&other.contents).map_err(|error| {
                Failure::new(format!(
                    "{}: does not merge with {}: {error}",
                    other.name, merged.name
                ))
            })?;
        }
        opener.finish()?;
        merged.name = input::name(&self.output);
        let exit = judge_changed(&merged, self.force)?;
        merged.save(&self.output, merged.format, &merged.told)?;
        Ok(exit)
    }
}

/// Rejects a file name that belongs to another format than `format`.
fn refuse_other_format(output: &Path, format: &Format) -> Result<(), Failure> {
    let of_path = Format::of_path(output);
    let Some(other) = of_path.first().filter(|_| !of_path.iter().any(|of| of.name == format.name))
    else {
        return Ok(());
    };
    let (name, format, other) = (input::name(output), format.name, other.name);
    Err(Failure::new(format!(
        "{name}: the merged filter is of {format}, and the name is one of {other}: name it otherwise"
    )))
}

/// Returns the first difference between two layouts, as a clause.
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
        Some("its secret key is another".into())
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
            (Layout { hasher: Hasher::fold(5), ..one }, "fold seed 5"),
            (Layout { hasher: Hasher::sip13([1, 3]), ..one }, "secret key"),
        ] {
            let difference = difference(&one, &other).unwrap();
            assert!(difference.contains(word), "{difference}");
        }
    }
}
