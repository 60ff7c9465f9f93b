//! Fuzz targets. Each target takes any bytes, and panics if the tested code breaks a documented promise.
//!
//! The test `mutations` runs every target with a fixed list of inputs. The program `tamis-fuzz` runs one target with
//! libFuzzer, which searches for new inputs.

mod commands;
mod format;
mod guard_delta;
mod guard_path;
mod guard_snapshot;
mod integers;
mod key;
mod orc_file;
mod plan;
mod records;
mod resp;
mod tamis_file;

use std::path::PathBuf;

use arbitrary::{Arbitrary, Unstructured};
use tamis_formats::{FORMATS, Format};
use xxhash_rust::xxh3::xxh3_64;

/// The function of a target that tests no format.
type RunBytes = fn(&[u8]);

/// All targets that test no format.
const PROGRAM_TARGETS: [(&str, RunBytes); 11] = [
    ("commands", commands::run),
    ("guard_delta", guard_delta::run),
    ("guard_path", guard_path::run),
    ("guard_snapshot", guard_snapshot::run),
    ("integers", integers::run),
    ("key", |bytes| run_typed(bytes, key::run)),
    ("orc_file", orc_file::run),
    ("plan", |bytes| run_typed(bytes, plan::run)),
    ("records", |bytes| run_typed(bytes, records::run)),
    ("resp", |bytes| run_typed(bytes, resp::run)),
    ("tamis_file", tamis_file::run),
];

/// A fuzz target: a function that tests promises with any input.
#[derive(Clone)]
pub struct Target {
    name: String,
    run: Run,
}

#[derive(Clone)]
enum Run {
    Bytes(RunBytes),
    Format(&'static Format),
}

impl Target {
    /// Returns all targets. The targets of the formats come first.
    pub fn all() -> Vec<Self> {
        let formats = FORMATS.iter().map(|format| Self {
            name: format!("format/{}", format.name),
            run: Run::Format(format),
        });
        let others =
            PROGRAM_TARGETS.map(|(name, run)| Self { name: name.to_owned(), run: Run::Bytes(run) });
        formats.chain(others).collect()
    }

    /// Returns the target with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|target| target.name == name)
    }

    /// Returns the name of the target, such as `records` or `format/guava`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the folder with the committed inputs of the target.
    pub fn seeds(&self) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "seeds", &self.name].iter().collect()
    }

    /// Runs the target with one input.
    ///
    /// # Panics
    ///
    /// Panics if the code under test breaks a promise.
    pub fn run(&self, bytes: &[u8]) {
        match self.run {
            Run::Bytes(run) => run(bytes),
            Run::Format(format) => format::run(format, bytes),
        }
    }
}

/// Replaces the last 8 bytes of an input by the correct checksum, because a fuzzer cannot guess a checksum. An attacker
/// can also compute the checksum. Returns `None` if the input has fewer than 8 bytes.
fn with_checksum(bytes: &[u8]) -> Option<Vec<u8>> {
    let (body, _) = bytes.split_last_chunk::<8>()?;
    Some([body, &xxh3_64(body).to_le_bytes()].concat())
}

/// Runs a target that takes a typed value. Does nothing if the input is too short for the value.
fn run_typed<'a, T: Arbitrary<'a>>(bytes: &'a [u8], run: fn(T)) {
    if let Ok(value) = T::arbitrary_take_rest(Unstructured::new(bytes)) {
        run(value);
    }
}
