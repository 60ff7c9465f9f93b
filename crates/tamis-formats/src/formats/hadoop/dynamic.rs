//! Hadoop's `DynamicBloomFilter`, which is a list of filters of the same size. Each filter is a row. Layout:
//! `docs/formats/hadoop-dynamic.md`.

use std::io::{self, Write};

use tamis::Answers;

use crate::encoding::ByteReader;
use crate::errors::{ChangeError, CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, FilterInfo, ForeignBloom, StoredFilter, try_answer_each};
use crate::format::{DecodeOptions, Detection, Format, Sniff};
use crate::formats::hadoop::header::read_header;
use crate::formats::hadoop::rule::{Hadoop, HashType, plan, rule};
use crate::rules::{ProbeRule as _, Rule};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "hadoop-dynamic",
    summary: "Hadoop's util.bloom.DynamicBloomFilter, by write",
    detection: Detection::ByBytes(|bytes| Sniff::maybe(DynamicFilter::decode(bytes).is_ok())),
    decode: |bytes, _| DynamicFilter::decode(bytes).map(Contents::new),
    encode,
    create: |options| {
        let (bits, probes) = plan(options)?;
        let (items, _) = options.plan()?;
        let records = u32::try_from(items).ok().filter(|&it| it <= i32::MAX.cast_unsigned());
        let records = records.ok_or_else(|| {
            CreateError::refused("a row has at most 2,147,483,647 records: plan fewer items")
        })?;
        DynamicFilter::new(bits, probes, HashType::Murmur, records).map(Contents::new)
    },
    ..Format::BASE
};

/// Hadoop's `DynamicBloomFilter`. The filter adds a row of bits when the last row contains its planned number of items.
///
/// As in Hadoop, each insert counts, even if the item is already present.
///
/// # Examples
///
/// ```
/// use tamis_formats::hadoop::{DynamicFilter, HashType};
///
/// let mut rows = DynamicFilter::new(1024, 7, HashType::Murmur, 100)?;
/// for number in 0..250_u32 {
///     rows.insert(&number.to_le_bytes()).unwrap();
/// }
/// assert_eq!(rows.rows().len(), 3);
/// assert!(rows.contains(&7_u32.to_le_bytes()));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicFilter {
    rule: Hadoop,
    /// The planned number of records of a row. Invariant: the number is at least 1.
    records_per_row: u32,
    /// The number of records in the last row.
    last_records: u32,
    // Invariant: there is at least one row, and all rows have the rule `rule`.
    rows: Vec<ForeignBloom>,
}

/// The largest number of bits of a row per record. A small hostile file could state that each record needs a row of
/// several megabytes. No real plan has more than 16,384 bits per record.
const MAX_BITS_PER_RECORD: u64 = 16_384;

impl DynamicFilter {
    /// Creates an empty filter, as `new DynamicBloomFilter(vectorSize, nbHash, hashType, nr)` does.
    ///
    /// # Errors
    ///
    /// [`CreateError`] if Hadoop does not support the given sizes. Zero records are treated as one record.
    pub fn new(
        vector_size: u32,
        probes: u32,
        hash_type: HashType,
        records_per_row: u32,
    ) -> Result<Self, CreateError> {
        let rule = rule(vector_size, probes, hash_type)?;
        let row = ForeignBloom::new(Rule::new(rule))?;
        Ok(Self { rule, records_per_row: records_per_row.max(1), last_records: 0, rows: vec![row] })
    }

    /// Decodes the output of Hadoop's `write`. Rejects trailing bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless `bytes` are exactly one filter with at least one row. Each row must have the size and the
    /// hash of the filter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        let rule = read_header(&mut reader)?;
        let records_per_row = reader.count_be("records of a row", 1.., "1 or more")?;
        let last_records = reader.count_be("records of the last row", 0.., "0 or more")?;
        let count = reader.count_be("number of rows", 1.., "1 or more")?;
        let mut rows = Vec::new();
        for _ in 0..count {
            let at = reader.at();
            if read_header(&mut reader)? != rule {
                return Err(DecodeError::invalid(
                    "header of a row",
                    at,
                    "that of the whole filter",
                ));
            }
            rows.push(ForeignBloom::read_bytes(Rule::new(rule), &mut reader)?);
        }
        reader.end("rows")?;
        Ok(Self { rule, records_per_row, last_records, rows })
    }

    /// Returns the rows, oldest first.
    #[must_use]
    pub fn rows(&self) -> &[ForeignBloom] {
        &self.rows
    }

    /// Tests whether an item may be in any row.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.rows.iter().any(|row| row.contains(key))
    }

    /// Inserts an item into the last row, or into a new row if the last row is full. Returns true if a bit changed.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if a row would be far larger than its records need, or if the allocation of a row fails.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, ChangeError> {
        if self.last_records >= self.records_per_row {
            let bits = u64::from(self.rule.vector_size);
            if bits > MAX_BITS_PER_RECORD * u64::from(self.records_per_row) {
                return Err(ChangeError::refused(format!(
                    "its next row would have {bits} bits for {} records, more than any program \
                    plans: the file is damaged, or the plan is a mistake",
                    self.records_per_row
                )));
            }
            self.rows.push(ForeignBloom::new(Rule::new(self.rule)).map_err(ChangeError::Memory)?);
            self.last_records = 0;
        }
        self.last_records += 1;
        Ok(self.rows.last_mut().is_some_and(|row| row.insert(key)))
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = self.rule.header();
        out.write_all(&header)?;
        for number in [self.records_per_row, self.last_records, self.rows.len() as u32] {
            out.write_all(&number.to_be_bytes())?;
        }
        for row in &self.rows {
            out.write_all(&header)?;
            row.write_bytes(out)?;
        }
        Ok(())
    }
}

impl StoredFilter for DynamicFilter {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        ForeignBloom::any_contains_each(self.rows.iter(), keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        try_answer_each(keys, answers, |key| self.insert(key))
    }

    /// Merges each row with the row at the same index, as `or` does. Both filters must have the same number of rows.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        let is_merged = self.records_per_row == other.records_per_row
            && ForeignBloom::merge_all(&mut self.rows, &other.rows);
        if is_merged {
            let sum = self.last_records.saturating_add(other.last_records);
            self.last_records = sum.min(i32::MAX.cast_unsigned());
        }
        Ok(is_merged)
    }

    fn info(&self) -> FilterInfo {
        FilterInfo {
            layout: self.rule.name(),
            details: vec![
                ("rows", self.rows.len().to_string()),
                ("records of a row", self.records_per_row.to_string()),
                ("records of the last row", self.last_records.to_string()),
            ],
            ..ForeignBloom::info_of_all(self.rows.iter())
        }
    }
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let filter = contents.filter::<DynamicFilter>(
        "Hadoop's DynamicBloomFilter stores the number of records of its rows",
    )?;
    Ok(filter.write(out)?)
}
