//! Reads the items of a command's inputs and hashes them.

use std::path::{Path, PathBuf};

use tamis::Hasher;

use crate::exit::Failure;
use crate::input::{self, Input};
use crate::key::{KeyArgs, KeyRule, RecordArgs};
use crate::progress::Progress;
use crate::records::{Blocks, records};

/// Which items a command reads, alike in `build` and `add`.
#[derive(clap::Args, Debug)]
pub struct ItemArgs {
    /// Files of items, one per line; plain or compressed (gzip, zstd, xz, bzip2). None, or '-', is standard input
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub key: KeyArgs,

    #[command(flatten)]
    pub records: RecordArgs,
}

/// The number of records read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of records that are items, including repeats.
    pub items: u64,
    /// Number of records without the requested field, JSON value or URL.
    pub skipped: u64,
}

impl Tally {
    /// Writes a note to stderr if records were skipped.
    pub fn warn(&self) {
        match self.skipped {
            0 => {}
            1 => note!("skipped a record that has no such key"),
            n => note!("skipped {n} records that have no such key"),
        }
    }
}

/// Hashes the items of `paths` in order and passes them to `each`, one block at a time.
///
/// # Errors
///
/// An error of reading or of `each`.
pub fn hash_all(
    paths: &[PathBuf],
    rule: &KeyRule,
    delimiter: u8,
    hasher: Hasher,
    mut each: impl FnMut(&[u64]) -> Result<(), Failure>,
) -> Result<Tally, Failure> {
    let mut progress = Progress::new(input::total_len_bytes(paths));
    let mut tally = Tally::default();
    let (mut done_bytes, mut hashes, mut scratch) = (0, Vec::new(), Vec::new());
    for path in paths {
        let mut blocks = Blocks::new(Input::open(path)?, delimiter);
        while let Some(block) = blocks.next_block().map_err(|error| failed(path, &error))? {
            hashes.clear();
            let mut skipped = 0;
            if rule.is_whole() {
                hashes.extend(records(block, delimiter).map(|record| hasher.hash(record)));
            } else {
                for record in records(block, delimiter) {
                    match rule.of(record, &mut scratch) {
                        Some(item) => hashes.push(hasher.hash(item)),
                        None => skipped += 1,
                    }
                }
            }
            tally.items += hashes.len() as u64;
            tally.skipped += skipped;
            each(&hashes)?;
            progress.at(done_bytes + blocks.reader().consumed_bytes());
        }
        done_bytes += blocks.reader().consumed_bytes();
    }
    Ok(tally)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Message(format!("{}: {}", input::name(path), crate::exit::plain(error)))
}
