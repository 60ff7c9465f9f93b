//! Reads the items of a command's inputs in the encoding of another system.

use std::path::{Path, PathBuf};

use tamis_formats::{Funnel, ItemError};

use crate::column_type::ColumnType;
use crate::exit::Failure;
use crate::input::{self, Input};
use crate::items::Tally;
use crate::key::KeyRule;
use crate::progress::Progress;
use crate::records::{Blocks, records};

/// The items of a block, as the bytes that another system hashes.
#[derive(Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The indices of records without a key.
    pub keyless: Vec<usize>,
}

impl Keys {
    /// Splits a block into keys. They replace the keys of the previous block.
    ///
    /// # Errors
    ///
    /// The index of the first record that is not an item of the filter, and the reason.
    pub fn read(
        &mut self,
        block: &[u8],
        delimiter: u8,
        rule: &KeyRule,
        funnel: Funnel,
    ) -> Result<(), (usize, String)> {
        self.bytes.clear();
        self.ends.clear();
        self.keyless.clear();
        let (mut of_record, mut of_item) = (Vec::new(), Vec::new());
        for (index, record) in records(block, delimiter).enumerate() {
            match rule.of(record, &mut of_record) {
                Some(item) => {
                    let key = funnel.key(item, &mut of_item);
                    let key = key.map_err(|error| (index, wrong_item(item, error)))?;
                    self.bytes.extend_from_slice(key);
                }
                None => self.keyless.push(index),
            }
            self.ends.push(self.bytes.len());
        }
        Ok(())
    }

    /// Returns a key for each record. The key is empty if the record has none.
    pub fn all(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end]).collect()
    }
}

/// Passes the items of `paths` to `each` in order, one block at a time.
///
/// # Errors
///
/// An error of reading or of `each`; for a record that is not an item of the filter, a message with
/// its file and line.
pub fn each_keys(
    paths: &[PathBuf],
    rule: &KeyRule,
    delimiter: u8,
    funnel: Funnel,
    mut each: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
) -> Result<Tally, Failure> {
    let mut progress = Progress::new(input::total_len_bytes(paths));
    let (mut keys, mut done_bytes, mut tally) = (Keys::default(), 0, Tally::default());
    for path in paths {
        let mut blocks = Blocks::new(Input::open(path)?, delimiter);
        let mut line = 0;
        while let Some(block) =
            blocks.next_block().map_err(|error| Failure::io(input::name(path), &error))?
        {
            keys.read(block, delimiter, rule, funnel)
                .map_err(|(index, error)| no_item(path, line + index as u64, &error, None))?;
            let all = keys.all();
            line += all.len() as u64;
            let mut keyless = keys.keyless.iter().copied().peekable();
            let with_key: Vec<&[u8]> = (0..all.len())
                .filter(|&index| keyless.next_if_eq(&index).is_none())
                .map(|index| all[index])
                .collect();
            tally.items += with_key.len() as u64;
            tally.skipped += (all.len() - with_key.len()) as u64;
            each(&with_key)?;
            progress.at(done_bytes + blocks.reader().consumed_bytes());
        }
        done_bytes += blocks.reader().consumed_bytes();
    }
    Ok(tally)
}

/// Returns the failure for a record that is not an item, with the item type of the queried column.
/// `line` is counted from zero, and the message counts from one.
pub fn no_item(path: &Path, line: u64, why: &str, column: Option<&ColumnType>) -> Failure {
    let state = format!("{}: line {}: {why}", input::name(path), line + 1);
    Failure::new(match column {
        Some(column) => format!("{state}; an item of the column is {}", column.item),
        None => state,
    })
}

/// Returns a message with the item that was read. It escapes control characters, such as the `\r`
/// that Windows writes before each line end.
fn wrong_item(item: &[u8], error: ItemError) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(item);
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{error}: {shown:?}{more}")
}
