//! The items of a command's inputs, as another system hashes them.

use std::path::{Path, PathBuf};

use tamis_formats::{Funnel, ItemError};

use crate::column_type::ColumnType;
use crate::exit::Failure;
use crate::input::{self, Input};
use crate::items::Tally;
use crate::key::KeyRule;
use crate::progress::Progress;
use crate::records::{Blocks, records};

/// The items of a block as another system hashes them.
#[derive(Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The indices of records that have no key.
    pub keyless: Vec<usize>,
}

impl Keys {
    /// Cuts a block into keys, in place of those of the last one.
    ///
    /// # Errors
    ///
    /// The index of the first record that is no item of such a filter, with what is wrong with it.
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

    /// Returns a key for each record, empty for those that have none.
    pub fn all(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end]).collect()
    }
}

/// Hands the items of `paths` to `each` in order, a block at a time.
///
/// # Errors
///
/// Those of reading, and of `each`; a record that is no item of such a filter, by its file and line.
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

/// Says which record is no item, and what one is in the column asked; lines are counted from one.
pub fn no_item(path: &Path, line: u64, why: &str, column: Option<&ColumnType>) -> Failure {
    let state = format!("{}: line {}: {why}", input::name(path), line + 1);
    Failure::new(match column {
        Some(column) => format!("{state}; an item of the column is {}", column.item),
        None => state,
    })
}

/// Says what was read, its control characters spelled out, such as the `\r` that Windows puts before each end of a line.
fn wrong_item(item: &[u8], error: ItemError) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(item);
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{error}: {shown:?}{more}")
}
