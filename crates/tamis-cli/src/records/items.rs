//! Reads the items of a command's inputs and encodes the items for a filter: as hashes, or as the
//! bytes that another system hashes.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Once;

use tamis::Hasher;
use tamis_formats::Funnel;

use crate::exit::Failure;
use crate::records::column_text::ColumnText;
use crate::records::key::{KeyArgs, KeyRule, RecordArgs, RecordForm, no_key};
use crate::records::record_reader::{RecordBlock, RecordReader};

/// The options that select the items. The commands `build` and `add` have the same options.
#[derive(clap::Args, Debug)]
pub struct ItemArgs {
    /// Files of items, one per line; plain or compressed (gzip, zstd, xz, bzip2); '-' or none is
    /// standard input
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub key: KeyArgs,

    #[command(flatten)]
    pub records: RecordArgs,
}

impl ItemArgs {
    /// Returns the reader of the items in `paths`.
    pub fn reader<'a>(&self, paths: &'a [PathBuf]) -> ItemReader<'a> {
        ItemReader { paths, rule: self.key.rule(), form: self.records.form(&self.key) }
    }
}

/// The numbers of records that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCount {
    /// The number of records that are items, including repeated items.
    pub items: u64,
    /// The number of records without the requested field, JSON value or URL.
    pub skipped: u64,
}

impl RecordCount {
    /// Writes a note to stderr if records were skipped.
    pub fn warn(&self) {
        match self.skipped {
            0 => {}
            1 => note!("skipped a record that has no such key"),
            n => note!("skipped {n} records that have no such key"),
        }
    }
}

/// The encoding of an item for a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ItemEncoding {
    /// The item is encoded as the hash of its bytes.
    Hash(Hasher),
    /// The item is encoded as the bytes that another system hashes.
    Key(Funnel),
    /// The printed text of the item is converted to the bytes of a value in a table column.
    Column(ColumnText, Funnel),
}

impl ItemEncoding {
    /// Returns the bytes of an item that another system hashes.
    fn key<'a>(self, item: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], String> {
        match self {
            ItemEncoding::Hash(_) => Ok(item),
            ItemEncoding::Key(funnel) => funnel.key(item, scratch).map_err(|it| it.to_string()),
            ItemEncoding::Column(text, funnel) => {
                if text == ColumnText::Bytes && item.ends_with(b"\r") {
                    note_return();
                }
                text.key(funnel, item, scratch)
            }
        }
    }
}

/// Writes a note about line ends of Windows, once per run.
#[cold]
fn note_return() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| {
        note!(
            "a line ends with a carriage return, which is part of the text: remove it if the column \
             has none, for example by tr -d '\\r'"
        );
    });
}

/// The inputs of a command, and the rule that extracts items from the inputs.
pub struct ItemReader<'a> {
    /// The inputs.
    pub paths: &'a [PathBuf],
    /// Extracts the item of a record.
    pub rule: KeyRule,
    /// How records are read.
    pub form: RecordForm,
}

impl ItemReader<'_> {
    /// Passes all items to `each` in order, one batch at a time.
    ///
    /// # Errors
    ///
    /// An error of reading or of `each`. A message if no record has the key. A message with file
    /// and line for a record that is not an item of the filter.
    pub fn each_batch(
        &self,
        encoding: ItemEncoding,
        mut each: impl FnMut(&ItemBatch) -> Result<(), Failure>,
    ) -> Result<RecordCount, Failure> {
        self.rule.check(self.form)?;
        let mut rule = self.rule.clone();
        let (mut batch, mut count) = (ItemBatch::default(), RecordCount::default());
        RecordReader::new(self.paths, self.form).for_each(|block| {
            if block.is_header {
                rule.set_header(block.header()).map_err(|why| block.failure(0, &why))?;
                return Ok(ControlFlow::Continue(1));
            }
            batch.read(block, &rule, encoding, "")?;
            count.items += batch.len() as u64;
            count.skipped += batch.skipped.len() as u64;
            each(&batch)?;
            Ok(ControlFlow::Continue(batch.len() + batch.skipped.len()))
        })?;
        if count.items == 0 && count.skipped > 0 {
            return Err(no_key(&self.rule.describe()));
        }
        Ok(count)
    }
}

/// The items of a block, encoded for a filter.
#[derive(Default)]
pub struct ItemBatch {
    hashes: Vec<u64>,
    key_bytes: Vec<u8>,
    key_ends: Vec<usize>,
    /// The indices of the records that are not items, in ascending order.
    pub skipped: Vec<usize>,
}

impl ItemBatch {
    /// Encodes the items of a block. The new items replace the items of the previous block. `hint`
    /// is the end of the message about a record that the filter cannot contain.
    ///
    /// # Errors
    ///
    /// A message with file and line for a record that is not an item of the filter.
    pub fn read(
        &mut self,
        block: &RecordBlock<'_>,
        rule: &KeyRule,
        encoding: ItemEncoding,
        hint: &str,
    ) -> Result<(), Failure> {
        self.hashes.clear();
        self.key_bytes.clear();
        self.key_ends.clear();
        self.skipped.clear();
        if let ItemEncoding::Hash(hasher) = encoding
            && rule.is_whole()
        {
            self.hashes.extend(block.records().map(|record| hasher.hash(record)));
            return Ok(());
        }
        let (mut of_record, mut of_item) = (Vec::new(), Vec::new());
        for (index, record) in block.records().enumerate() {
            let Some(item) = rule.of(record, &mut of_record) else {
                self.skipped.push(index);
                continue;
            };
            match encoding {
                ItemEncoding::Hash(hasher) => self.hashes.push(hasher.hash(item)),
                ItemEncoding::Key(_) | ItemEncoding::Column(..) => {
                    let key = encoding.key(item, &mut of_item);
                    let key = key.map_err(|error| {
                        block.failure(index, &format!("{}{hint}", wrong_item(item, &error)))
                    })?;
                    self.key_bytes.extend_from_slice(key);
                    self.key_ends.push(self.key_bytes.len());
                }
            }
        }
        Ok(())
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.hashes.len() + self.key_ends.len()
    }

    /// Returns the items as hashes. The slice is empty unless the encoding is
    /// [`ItemEncoding::Hash`].
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Returns the items as keys. The result is empty if the encoding is [`ItemEncoding::Hash`].
    pub fn keys(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.key_ends);
        starts.zip(&self.key_ends).map(|(&start, &end)| &self.key_bytes[start..end]).collect()
    }
}

/// Returns a message that contains the item, with its control characters escaped. For example,
/// Windows writes the control character `\r` before each line end.
fn wrong_item(item: &[u8], error: &str) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(item);
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{error}: {shown:?}{more}")
}
