//! Checks the options of IN and OUT for a conversion. One error names every option that is missing
//! or has no effect.

use std::collections::HashSet;
use std::path::Path;

use tamis_formats::roaring::Roaring;
use tamis_formats::{
    Charset, DecodeOptions, EncodeError, Format, Funnel, ItemDomain, Items, Parameter, RedisBitmaps,
};

use crate::arguments::decode_options::{DecodeArgs, has_charset, missing_for_output};
use crate::arguments::numbers::HumanCount;
use crate::arguments::unused_options::{FileKind, FilterLocation, UnusedOptions};
use crate::commands::convert::Args;
use crate::exit::Failure;
use crate::filters::open_filter::{NoFilter, OpenFilter, Trust};
use crate::filters::opener::{Recognised, only};
use crate::filters::table_filters::check_one_column;
use crate::io::input;
use crate::io::output;

/// Collects all problems of a command, so that one error can name all problems.
#[derive(Default)]
struct Problems {
    messages: Vec<String>,
}

impl Problems {
    /// Returns the value of `result`, or stores its message and returns `None`.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::BrokenPipe`] instead of storing the failure.
    fn take<T>(&mut self, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Message(message)) => {
                self.messages.push(message);
                Ok(None)
            }
            Err(Failure::BrokenPipe) => Err(Failure::BrokenPipe),
        }
    }

    /// Returns one error that contains each distinct message once. Returns `Ok` if there are no
    /// messages.
    fn finish(mut self) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        self.messages.retain(|message| seen.insert(message.clone()));
        if self.messages.is_empty() { Ok(()) } else { Err(Failure::new(self.messages.join("; "))) }
    }
}

/// Returns an error if the items of IN and OUT have different types, because a lookup in OUT would
/// find no item of IN.
fn check_same_items(from: &OpenFilter, to: &Format) -> Result<(), Failure> {
    let (Items::Unspecified, Items::Default(of_out)) = (from.format.items, to.items) else {
        return Ok(());
    };
    // For an item in UTF-8, the funnel of UTF-8 text and the funnel of bytes return the same bytes.
    let plain = |funnel| match funnel {
        Funnel::Text(Charset::Utf8) => Funnel::Bytes,
        other => other,
    };
    if plain(from.funnel()?) == plain(of_out) {
        return Ok(());
    }
    let (name, format) = (&from.name, to.name);
    Err(Failure::new(format!(
        "{name}: its items are of another type than those of {format}, which has only one: build \
         OUT from the items with --items FILE"
    )))
}

/// Merges the filters of a column's row groups.
fn row_groups_as_one(
    path: &Path,
    all: Vec<Result<OpenFilter, NoFilter>>,
) -> Result<OpenFilter, Failure> {
    check_one_column(&all)?;
    let mut one: Option<OpenFilter> = None;
    for filter in all {
        let filter = filter
            .map_err(|none| none.failure(", so a filter of the table would miss its items"))?;
        match &mut one {
            None => one = Some(OpenFilter { name: input::name(path), ..filter }),
            Some(one) => one
                .contents_mut()
                .merge(filter.contents())
                .map_err(|error| Failure::new(format!("{}: {error}", filter.name)))?,
        }
    }
    Ok(one.expect("there are several"))
}

impl Args {
    /// Opens IN. Returns the filter of IN, and the format and decode options of OUT.
    ///
    /// # Errors
    ///
    /// Returns one error that names all options that are missing or have no effect, as far as the
    /// formats of IN and OUT are known.
    pub(super) fn both_sides(
        &self,
    ) -> Result<(OpenFilter, &'static Format, DecodeOptions), Failure> {
        let mut problems = Problems::default();
        let mut of_output = Problems::default();
        let to = of_output.take(self.to_format())?;
        let mut decode = self.decode.clone();
        let takes_given_items = to.is_some_and(|to| matches!(to.items, Items::Default(_)));
        decode.requires_funnel = self.is_from_items() || takes_given_items;
        decode.is_charset_of_output = self.to_charset.is_none()
            && self.to_funnel.as_deref().is_some_and(|name| {
                Funnel::named(name, Some(Charset::Utf8)).is_some_and(has_charset)
            });
        let mut unused = UnusedOptions::of(&self.decode);
        let recognised =
            problems.take(Recognised::open(&self.input, &self.decode, Trust::Assume))?;
        let kind = recognised.as_ref().map(Recognised::kind);
        let from = match recognised {
            Some(recognised) => problems.take(self.decode(recognised, &decode))?,
            None => None,
        };
        problems.messages.extend(of_output.messages);
        if let Some(to) = to {
            self.check_output_options(to, kind, from.as_ref(), &mut problems)?;
        }
        if let (Some(to), Some(kind)) = (to, kind) {
            unused.read(kind, &self.decode);
            unused.write(to, self.is_from_items());
            problems.messages.extend(unused.phrases());
            if unused.names().any(|name| name == "--items-planned") {
                problems.messages.push("set the capacity of OUT with --to-items".to_owned());
            }
        }
        if self.is_from_items() {
            problems.take(self.checked_items())?;
        }
        let (Some(from), Some(to)) = (from, to) else {
            problems.finish()?;
            unreachable!("what is not there is a problem");
        };
        let options = self.output_options(&from, to);
        if !self.is_from_items() {
            self.check_bits_move(&from, to, &options, &mut problems)?;
        }
        problems.finish()?;
        Ok((from, to, options))
    }

    /// Decodes the filter of IN into memory.
    fn decode(&self, recognised: Recognised, decode: &DecodeArgs) -> Result<OpenFilter, Failure> {
        let path = &self.input;
        let all = recognised.decode(decode)?;
        let is_several = all.len() > 1;
        if self.union && is_several {
            return row_groups_as_one(path, all);
        }
        only(path, all)?.into_decoded()
    }

    /// Collects the options of OUT that are missing or have no effect.
    fn check_output_options(
        &self,
        to: &Format,
        kind: Option<FileKind>,
        from: Option<&OpenFilter>,
        problems: &mut Problems,
    ) -> Result<(), Failure> {
        problems.take(self.check_version(to))?;
        if self.is_from_items() {
            for (is_given, option, parameter) in [
                (self.to_items.is_some(), "--to-items", Parameter::Items),
                (self.to_rate.is_some(), "--to-rate", Parameter::Rate),
            ] {
                if is_given && !to.plans_by(parameter) {
                    problems.messages.push(format!(
                        "{option} has no effect on {}, whose size does not depend on it; leave it \
                         out",
                        to.name
                    ));
                }
            }
            if let Some(from) = from {
                problems.take(from.funnel())?;
            }
            let of_input = match from {
                Some(from) => from.funnel,
                None => self.decode.funnel().ok().flatten(),
            };
            // If the funnel of IN lacks its charset, the check of IN reports the problem.
            let is_incomplete =
                self.to_funnel.is_none() && self.decode.funnel.is_some() && of_input.is_none();
            if !is_incomplete {
                problems.take(self.funnel_of(to, of_input))?;
            }
            problems.messages.extend(self.missing_of_output(to, kind));
        } else if !to.writes(Parameter::Items) {
            // A Roaring bitmap stores no length, so `--to-items` sets the length of the bitmap in
            // OUT.
            let gets_length = to.item_domain == ItemDomain::Integers
                && from.is_some_and(|from| from.contents().downcast_ref::<Roaring>().is_some());
            let options = [
                (self.to_items.is_some() && !gets_length, "--to-items"),
                (self.to_rate.is_some(), "--to-rate"),
            ];
            for (_, option) in options.into_iter().filter(|&(is_in_vain, _)| is_in_vain) {
                problems.messages.push(format!(
                    "{option} has no effect on {} without --items FILE: leave it out, or build \
                     OUT from the items",
                    to.name
                ));
            }
        }
        if let Some(from) = from
            && self.union
            && !self.joins_several(from, to, kind)
        {
            problems.messages.push(format!(
                "--union has no effect here: {} holds one filter, so there is nothing to join; \
                 leave it out",
                input::name(&self.input)
            ));
        }
        Ok(())
    }

    /// Tests whether `--union` merges several filters: the filters of row groups, or bitmaps that
    /// OUT stores as one bitmap.
    fn joins_several(&self, from: &OpenFilter, to: &Format, kind: Option<FileKind>) -> bool {
        // A table with one row group also accepts `--union`, because the user need not know the
        // number of row groups.
        let is_of_groups = kind.is_some_and(|kind| kind.place == FilterLocation::Columns);
        let bitmaps = from.contents().downcast_ref::<RedisBitmaps>();
        let has_several = bitmaps.is_some_and(|bitmaps| bitmaps.cursor() > 0);
        is_of_groups || has_several && !self.is_from_items() && from.format.name != to.name
    }

    /// Rejects a version that does not exist for OUT.
    fn check_version(&self, to: &Format) -> Result<(), Failure> {
        let Some(version) = &self.to_version else { return Ok(()) };
        match to.versions {
            None => Err(Failure::new(format!(
                "--to-version {version}: {} has only one version; leave the option out",
                to.name
            ))),
            Some(versions) if versions.are_plans && !self.is_from_items() => {
                Err(Failure::new(format!(
                    "--to-version {version}: versions of {} differ only in how filters are \
                     planned; leave the option out, or build OUT from the items with --items FILE",
                    to.name
                )))
            }
            Some(_) => match to.version_of_path(&self.output) {
                Some(of_path) if of_path != &**version => Err(Failure::new(format!(
                    "--to-version {version}: {} is a name for version {of_path}; leave the option \
                     out, or name OUT otherwise",
                    output::name(&self.output)
                ))),
                _ => Ok(()),
            },
        }
    }

    /// Collects the reasons why the bits of IN cannot be copied to OUT.
    fn check_bits_move(
        &self,
        from: &OpenFilter,
        to: &Format,
        options: &DecodeOptions,
        problems: &mut Problems,
    ) -> Result<(), Failure> {
        if from.funnel().is_err()
            || to.parameters.required.iter().any(|&parameter| !options.has(parameter))
        {
            // If the format of OUT cannot store the filter, the command reports only this reason,
            // because no funnel would remove this reason.
            let encoded = to.check_encode(from.contents(), options);
            let is_missing = matches!(encoded, Err(EncodeError::Missing(_)));
            let not_written = |error| from.not_written(error, &self.output, to, options);
            let is_encoded = problems.take(encoded.map_err(not_written))?.is_some();
            if !is_encoded && !is_missing {
                return Ok(());
            }
        }
        problems.take(check_same_items(from, to))?;
        Ok(())
    }

    /// Returns the format of OUT.
    fn to_format(&self) -> Result<&'static Format, Failure> {
        if let Some(name) = &self.to {
            return Ok(Format::named(name).expect("clap checked the name"));
        }
        let name = output::name(&self.output);
        match Format::of_path(&self.output)[..] {
            [format] => Ok(format),
            [] => Err(Failure::new(format!(
                "{name}: the file name does not determine the format: give --to; 'tamis formats' \
                 lists the formats"
            ))),
            ref several => {
                let names: Vec<_> = several.iter().map(|format| format.name).collect();
                Err(Failure::new(format!(
                    "{name}: the file name does not determine the format: give --to ({})",
                    names.join(", ")
                )))
            }
        }
    }

    /// Returns the decode options of OUT.
    fn output_options(&self, from: &OpenFilter, to: &Format) -> DecodeOptions {
        // A program that reads OUT supplies the parameters that OUT does not store, and computes
        // positions with these parameters. Therefore, OUT must keep every parameter of IN that OUT
        // does not store.
        let kept = |parameter| to.parameters.required.contains(&parameter);
        let items = self.to_items.map(|HumanCount(items)| items);
        let version = from.options.version.clone().filter(|_| from.format.name == to.name);
        let of_path = to.version_of_path(&self.output).map(Into::into);
        DecodeOptions {
            items: items.or(from.options.items.filter(|_| kept(Parameter::Items))),
            rate: self.to_rate.or(from.options.rate.filter(|_| kept(Parameter::Rate))),
            version: self.to_version.clone().or(of_path).or(version),
            union: self.union,
            ..from.options.clone()
        }
    }

    /// Returns one message for each parameter that OUT needs and the user did not give.
    fn missing_of_output(&self, to: &Format, from: Option<FileKind>) -> Vec<String> {
        let name = output::name(&self.output);
        // If IN and OUT have the same format, OUT keeps the version of IN.
        let is_version_of_input = self.decode.format_version.is_some()
            && from.is_some_and(|from| from.format.name == to.name);
        let has_version = self.to_version.is_some()
            || to.version_of_path(&self.output).is_some()
            || is_version_of_input;
        let is_missing = |&&parameter: &&Parameter| match parameter {
            Parameter::Version => !has_version,
            Parameter::BlockHash => self.decode.block_hash.is_none(),
            // The command counts the items, or takes the number of items of IN.
            _ => false,
        };
        let missing = to.parameters.required.iter().filter(is_missing);
        missing.map(|&parameter| format!("{name}: {}", missing_for_output(parameter))).collect()
    }
}
