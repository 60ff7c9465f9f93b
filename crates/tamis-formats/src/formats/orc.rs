//! The Bloom filters of a column of an ORC file: the decompressed stream `BLOOM_FILTER_UTF8`, or the older stream
//! `BLOOM_FILTER`. Layout: `docs/formats/orc.md`.
//!
//! A stream contains a filter for each row group of a stripe. A lookup tests all filters of the stream.

use std::borrow::Cow;
use std::io::{self, Write};

use tamis::{Answers, Modulus};

use crate::encoding::ByteReader;
use crate::errors::{ChangeError, CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, FilterInfo, ForeignBloom, StoredFilter};
use crate::format::{DecodeOptions, Detection, Format, ItemDomain, Sniff};
use crate::rules::guava_rules::flipped_sums;
use crate::rules::guava_sizing::{GuavaRelease, plan_bits, plan_probes};
use crate::rules::{ProbeRule, Progression, Rule, Sums};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "orc",
    extensions: &["orcbloom"],
    summary: "the Bloom filters of an ORC column, in its file or as a decompressed stream",
    detection: Detection::ByBytes(|bytes| Sniff::maybe(RowGroups::decode(bytes).is_ok())),
    item_domain: ItemDomain::OrcHashes,
    decode: |bytes, _| RowGroups::decode(bytes).map(Contents::new),
    encode,
    create: |options| {
        options.create(|items, rate| Ok(RowGroups { filters: vec![create(items, rate)?] }))
    },
    ..Format::BASE
};

/// The rule of ORC: double hashing with the two halves of a 64-bit hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orc {
    bits: Modulus,
    probes: u32,
}

impl ProbeRule for Orc {
    type Hash<'k> = u64;

    const ITEM_BYTES: Option<usize> = Some(size_of::<u64>());

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        "64-bit hash of ORC, both halves added up".into()
    }

    fn hash(&self, key: &[u8]) -> u64 {
        // All keys of `Funnel::Orc` have 8 bytes.
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(key).for_each(|(to, &byte)| *to = byte);
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        flipped_sums(hash, self.probes, self.bits)
    }

    fn progression(&self) -> Option<Progression> {
        Some(Progression { bits: self.bits, probes: self.probes, sums: Sums::Flipped(32) })
    }
}

/// Creates an empty filter as ORC does for a row group of `items` rows.
///
/// # Errors
///
/// [`CreateError`] if the rate is not above 0 and below 1, or if `items` is 0. [`CreateError`] if the filter exceeds
/// ORC's maximum size, or if the allocation fails.
///
/// # Examples
///
/// ```
/// let filter = tamis_formats::orc::create(1000, 0.01)?;
/// assert_eq!((filter.rule().bits(), filter.rule().probes()), (9600, 7));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(items: u64, rate: f64) -> Result<ForeignBloom, CreateError> {
    CreateError::check_plan("ORC", items, rate)?;
    let bits = plan_bits(items, rate).0;
    if bits > i32::MAX as u64 - 64 {
        return Err(CreateError::refused(format!(
            "ORC has at most 2,147,483,584 bits, not {bits}: plan fewer items or a higher rate"
        )));
    }
    // As in ORC, one word is added if the number of bits is already a whole number of words.
    let bits = bits + 64 - bits % 64;
    let probes = plan_probes(items, bits, rate, GuavaRelease::Until33);
    let rule = u32::try_from(probes).ok().and_then(|probes| rule(bits, probes));
    let rule =
        rule.ok_or_else(|| CreateError::refused(format!("{probes} probes are too many for ORC")))?;
    Ok(ForeignBloom::new(rule)?)
}

/// The largest accepted number of probes. Real plans have fewer probes than this limit. A hostile file with more probes
/// than this limit would only waste time.
const MAX_PROBES: u32 = 65_535;

fn rule(bits: u64, probes: u32) -> Option<Rule> {
    let bits = Modulus::new(bits)?;
    (1..=MAX_PROBES).contains(&probes).then_some(Rule::new(Orc { bits, probes }))
}

/// The filters of a column in a stripe: one for each row group, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGroups {
    // Invariant: there is at least one filter, and all filters have the rule [`Orc`].
    filters: Vec<ForeignBloom>,
}

/// The tag of field 1 of `BloomFilterIndex`, which is a message.
const FILTER: u8 = 1 << 3 | LENGTH;
/// The tag of field 1 of `BloomFilter`, which is a number.
const PROBES: u8 = 1 << 3;
/// The tag of field 2 of `BloomFilter`, which is a word of the older stream `BLOOM_FILTER`.
const OLD_WORD: u8 = 2 << 3 | FIXED_64;
/// The tag of field 3 of `BloomFilter`, which is bytes.
const WORDS: u8 = 3 << 3 | LENGTH;
/// The wire type of bytes with a length prefix.
const LENGTH: u8 = 2;
/// The wire type of eight bytes.
const FIXED_64: u8 = 1;

/// The streams that contain filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    /// `BLOOM_FILTER_UTF8`
    Utf8,
    /// `BLOOM_FILTER`
    Original,
}

impl RowGroups {
    /// Returns the filters, one for each row group.
    #[must_use]
    pub fn filters(&self) -> &[ForeignBloom] {
        &self.filters
    }

    /// Splits the filters: returns one value for each row group, in order.
    pub fn into_each(self) -> impl Iterator<Item = Self> {
        self.filters.into_iter().map(|filter| Self { filters: vec![filter] })
    }

    /// Decodes a stream: a `BloomFilterIndex` message of Protocol Buffers. The fields must have the order of ORC's
    /// writers.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless `bytes` are exactly one stream with at least one filter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_stream(bytes, Stream::Utf8, u64::MAX)
    }

    /// Decodes a stream of at most `most_filters` filters. The stream is `BLOOM_FILTER_UTF8` if `is_utf8` is true, and
    /// the older `BLOOM_FILTER` if `is_utf8` is false. A stream with more than `most_filters` filters is rejected
    /// before its memory is allocated.
    ///
    /// # Errors
    ///
    /// The errors of [`decode`](Self::decode), and an error if the stream has more than `most_filters` filters.
    pub fn decode_at_most(
        bytes: &[u8],
        is_utf8: bool,
        most_filters: u64,
    ) -> Result<Self, DecodeError> {
        let stream = if is_utf8 { Stream::Utf8 } else { Stream::Original };
        Self::decode_stream(bytes, stream, most_filters)
    }

    /// Decodes the older stream `BLOOM_FILTER`. Numbers have the same hashes as in the stream `BLOOM_FILTER_UTF8`. Text
    /// has the charset of the machine that wrote the file.
    ///
    /// # Errors
    ///
    /// The errors of [`decode`](Self::decode).
    pub fn decode_original(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_stream(bytes, Stream::Original, u64::MAX)
    }

    fn decode_stream(bytes: &[u8], stream: Stream, most: u64) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        let mut filters = Vec::new();
        while filters.is_empty() || !reader.is_empty() {
            if filters.len() as u64 >= most {
                let why = format!("more than {most} filters");
                return Err(DecodeError::refused("bloomFilter", reader.at(), why));
            }
            tag(&mut reader, "bloomFilter", FILTER)?;
            let len = number(&mut reader, "length of a filter")?;
            let end = reader.at() as u64 + len;
            tag(&mut reader, "numHashFunctions", PROBES)?;
            let at = reader.at();
            let probes = number(&mut reader, "numHashFunctions")?;
            let (field, at_words) = (stream.field(), reader.at());
            let data = match stream {
                Stream::Utf8 => Cow::Borrowed(utf8_words(&mut reader, end)?),
                Stream::Original => original_words(&mut reader, end)?,
            };
            let bits = data.len() as u64 * 8;
            let rule = u32::try_from(probes).ok().and_then(|probes| rule(bits, probes));
            let rule =
                rule.ok_or(DecodeError::unexpected("numHashFunctions", at, "1 to 65,535", probes))?;
            let filter = ForeignBloom::from_bytes(rule, &data)
                .map_err(DecodeError::memory(field, at_words))?;
            filters.push(filter);
        }
        Ok(Self { filters })
    }
}

impl Stream {
    /// Returns the name of the field that contains the words.
    fn field(self) -> &'static str {
        match self {
            Stream::Utf8 => "utf8bitset",
            Stream::Original => "bitset",
        }
    }
}

/// Reads the words of a filter in the stream `BLOOM_FILTER_UTF8`. The filter ends at the offset `end`.
fn utf8_words<'a>(reader: &mut ByteReader<'a>, end: u64) -> Result<&'a [u8], DecodeError> {
    let at = reader.at();
    if reader.rest().first() == Some(&OLD_WORD) {
        let why = "a stream BLOOM_FILTER, whose text is in the charset of the machine that wrote it: \
            use BLOOM_FILTER_UTF8";
        return Err(DecodeError::refused("bitset", at, why));
    }
    tag(reader, "utf8bitset", WORDS)?;
    let len = number(reader, "length of utf8bitset")?;
    if len == 0 || !len.is_multiple_of(8) || reader.at() as u64 + len != end {
        let reason = "whole words up to the end of the filter";
        return Err(DecodeError::invalid("utf8bitset", at, reason));
    }
    reader.bytes("utf8bitset", usize::try_from(len).unwrap_or(usize::MAX))
}

/// Reads the words of a filter in the stream `BLOOM_FILTER`, which stores each word as a field. The filter ends at the
/// offset `end`.
fn original_words(
    reader: &mut ByteReader<'_>,
    end: u64,
) -> Result<Cow<'static, [u8]>, DecodeError> {
    let mut words = Vec::new();
    while words.is_empty() || (reader.at() as u64) < end {
        tag(reader, "bitset", OLD_WORD)?;
        words.extend_from_slice(reader.bytes("bitset", size_of::<u64>())?);
    }
    if reader.at() as u64 != end {
        return Err(reader.invalid("bitset", "whole words up to the end of the filter"));
    }
    Ok(words.into())
}

impl StoredFilter for RowGroups {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        ForeignBloom::any_contains_each(self.filters.iter(), keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        let [filter] = &mut self.filters[..] else {
            return Err(ChangeError::refused(
                "ORC has a filter for each row group, and an item does not name its row group: \
                build one from the items",
            ));
        };
        if keys.iter().any(|key| key.len() != size_of::<u64>()) {
            return Err(ChangeError::refused(
                "its items are hashes of 8 bytes: name another funnel",
            ));
        }
        filter.insert_each(keys, answers);
        Ok(())
    }

    /// Merges each row group with the row group at the same index of `other`.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        Ok(ForeignBloom::merge_all(&mut self.filters, &other.filters))
    }

    fn info(&self) -> FilterInfo {
        if let [filter] = &self.filters[..] {
            return filter.info();
        }
        FilterInfo {
            layout: format!("{}; the rate is that of all row groups", self.filters[0].rule()),
            details: vec![("row groups", self.filters.len().to_string())],
            ..ForeignBloom::info_of_all(self.filters.iter())
        }
    }
}

impl RowGroups {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for filter in &self.filters {
            let mut header = vec![PROBES];
            write_number(filter.rule().probes().into(), &mut header);
            header.push(WORDS);
            let len = filter.words().len() as u64 * 8;
            write_number(len, &mut header);
            let mut before = vec![FILTER];
            write_number(header.len() as u64 + len, &mut before);
            out.write_all(&before)?;
            out.write_all(&header)?;
            filter.write_bytes(out)?;
        }
        Ok(())
    }
}

/// Reads the tag of a field, which must be `expected`.
fn tag(reader: &mut ByteReader<'_>, field: &'static str, expected: u8) -> Result<(), DecodeError> {
    let start = reader.clone();
    if reader.u8(field)? == expected {
        return Ok(());
    }
    Err(start.invalid(field, "the next field of a stream with filters"))
}

/// Reads a number of Protocol Buffers of up to 35 bits. Each byte contains seven bits of the number, the lowest bits
/// first.
fn number(reader: &mut ByteReader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let start = reader.clone();
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let byte = reader.u8(field)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(start.invalid(field, "a number of up to 5 bytes"))
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let row_groups =
        contents.filter::<RowGroups>("ORC's filters store hashes that no other system computes")?;
    Ok(row_groups.write(out)?)
}
