//! Filters of other systems: read, judged and replaced atomically.

use std::io;
use std::path::{Path, PathBuf};

use tamis_formats::{Contents, DecodeOptions, EncodeError, FilterInfo, Format, Funnel};

use crate::column_type::ColumnType;
use crate::count::{Rate, holds};
use crate::exit::{Exit, Failure, Outcome};
use crate::filter_file::Sink;
use crate::input;
use crate::output::{Output, is_same_file};
use crate::told::{funnel, missing_to_write};

/// A filter of another system, read from a file.
pub struct Foreign {
    /// The path of the file.
    pub path: PathBuf,
    /// The path as typed.
    pub name: String,
    /// The format of the bytes.
    pub format: &'static Format,
    /// The decoded filter.
    pub contents: Contents,
    /// The decode options that the user gave.
    pub told: DecodeOptions,
    /// The funnel of the items, if the user or the file states it.
    pub funnel: Option<Funnel>,
    /// The Parquet column of the filter. It determines the item type unless the user states it.
    pub column: Option<ColumnType>,
    /// The uncompressed size of the file.
    pub len_bytes: u64,
    /// True if the file holds only this filter. The command may then replace the file.
    pub is_whole_file: bool,
}

/// A filter with a higher rate than this is reported as over-full.
const MANY: f64 = 0.3;

impl Foreign {
    /// Returns the funnel of the items.
    ///
    /// # Errors
    ///
    /// A message if neither the file nor the user states it.
    pub fn funnel(&self) -> Result<Funnel, Failure> {
        funnel(self.format, self.funnel, &self.name)
    }

    /// Tests whether the encoded filter equals `bytes`.
    pub fn is_written_as(&self, bytes: &[u8]) -> bool {
        let mut written = Vec::new();
        let encoded = (self.format.encode)(&self.contents, &self.told, &mut written);
        encoded.is_ok() && written == bytes
    }

    /// Rejects `output` if it is the source file and that file holds more than this filter.
    ///
    /// # Errors
    ///
    /// A message if `output` is that file.
    pub fn check_output(&self, output: &Path) -> Result<(), Failure> {
        if self.is_whole_file || !is_same_file(&self.path, output) {
            return Ok(());
        }
        let format = self.format.name;
        Err(Failure::new(format!(
            "{}: the file holds more than this filter: copy the filter to a file of its own with \
             'tamis convert --to {format}', and change the copy",
            self.name
        )))
    }

    /// Writes the warnings about this filter to stderr.
    pub fn warn(&self, facts: &FilterInfo) {
        for warning in &facts.warnings {
            note!("{}: {warning}", self.name);
        }
    }

    /// Returns a line if the filter is over its planned rate.
    pub fn over_rate(&self, facts: &FilterInfo) -> Option<String> {
        let planned = self.contents.exceeded_rate(facts, self.told.rate)?;
        Some(format!(
            "{}: over its rate: {}, its rate is {}, not {}",
            self.name,
            holds(facts.items),
            Rate(facts.rate),
            Rate(planned)
        ))
    }

    /// Writes a note to stderr if the filter is over-full or over its rate.
    pub fn judge(&self, facts: &FilterInfo) -> Exit {
        if facts.rate > MANY {
            note!("{}: over-full: finds {:.0} % of absent items", self.name, facts.rate * 100.0);
        }
        self.over_rate(facts).map_or(Exit::Yes, |state| {
            note!("{state}");
            Exit::OverRate
        })
    }

    /// Replaces `path` by the filter in `format`, after the new file is complete and on disk.
    ///
    /// # Errors
    ///
    /// A message if the format cannot hold the filter, or if the disk is full. The old file is then
    /// unchanged.
    pub fn save(&self, path: &Path, format: &Format, told: &DecodeOptions) -> Result<(), Failure> {
        let mut sink = Sink { output: Output::open(Some(path))?, failure: None };
        let written = self.write(&mut sink, path, format, told);
        if let Some(failure) = sink.failure.take() {
            return Err(failure);
        }
        written?;
        sink.output.finish()
    }

    /// Writes the filter to `out`. Messages use `path`, the final name.
    ///
    /// # Errors
    ///
    /// A message if the format cannot hold the filter, or the error of `out`.
    pub fn write(
        &self,
        out: &mut dyn io::Write,
        path: &Path,
        format: &Format,
        told: &DecodeOptions,
    ) -> Result<(), Failure> {
        (format.encode)(&self.contents, told, out)
            .map_err(|error| self.not_written(error, path, format, told))
    }

    /// Returns the failure to write the filter to `path` in `format`.
    pub fn not_written(
        &self,
        error: EncodeError,
        path: &Path,
        format: &Format,
        told: &DecodeOptions,
    ) -> Failure {
        let (name, to) = (&self.name, format.name);
        match error {
            EncodeError::Missing(parameter) => {
                missing_to_write(parameter, told, format, &input::name(path))
            }
            EncodeError::Several { filters, rate } => Failure::new(format!(
                "{name}: {to} holds one filter, and this file has {filters}: joined, their rate is {}; accept it with \
                 --union, or build one filter from the items with --items FILE",
                Rate(rate)
            )),
            EncodeError::NeedsItems(why) => {
                Failure::new(format!("{name}: {why}: build one from the items, with --items FILE"))
            }
            EncodeError::Io(error) => Failure::io(input::name(path), &error),
            error => Failure::new(format!("{name}: {error}")),
        }
    }
}

/// Ends a command that changed a filter of another system.
///
/// # Errors
///
/// A message if the filter is over its planned rate and `force` is false.
pub fn judge_changed(file: &Foreign, force: bool) -> Outcome {
    let facts = file.contents.info();
    if let Some(state) = file.over_rate(&facts).filter(|_| !force) {
        return Err(Failure::new(format!(
            "{state}; nothing was written: build one for more items, or accept it with --force"
        )));
    }
    Ok(file.judge(&facts))
}
