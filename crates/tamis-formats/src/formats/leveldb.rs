//! LevelDB's filter block, which contains a Bloom filter for each 2 KiB of a table's data. Layout:
//! `docs/formats/leveldb.md`.

use std::io;

use crate::encoding::sorted_table::TableKind;
use crate::errors::{ChangeError, CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, FilterInfo, StoredFilter, answer_each};
use crate::format::{DecodeOptions, Detection, Format, Items, Parameter, Parameters, Sniff};
use crate::items::Funnel;
use crate::items::item_collector::ItemCollector;
use crate::rules::hash::leveldb::{hash, step};
use crate::rules::hash::murmur3::Tail;
use crate::rules::rates::progression::{Filled, rates_of};
use crate::rules::{EstimatedRate, Progression, Sums, chance, measure};
use tamis::{Answers, Modulus};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "leveldb",
    extensions: &["ldb"],
    summary: "LevelDB's filter block, alone or in its table: a Bloom filter for each 2 KiB of data",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Bytes),
    parameters: Parameters { planning: &[Parameter::Rate], ..Parameters::NONE },
    decode: |bytes, _| {
        let block = match TableKind::of(bytes) {
            Some(TableKind::LevelDb) => TableKind::LevelDb.filter_block(bytes)?,
            _ => bytes,
        };
        FilterBlock::decode(block).map(Contents::new)
    },
    encode,
    create: |options| {
        bits_per_key(options)?;
        Ok(Contents::new(ItemCollector::new("leveldb")))
    },
    ..Format::BASE
};

/// log₂ of the number of data bytes that share a filter. All LevelDB tables have the value 11.
const BASE_LG: u8 = 11;

/// The size of the trailer after the table of offsets. The trailer contains the position of the table of offsets, and
/// log₂ of the data bytes per filter.
const TRAILER_BYTES: usize = size_of::<u32>() + size_of::<u8>();

/// The largest number of probes. A number of probes above 30 is reserved for filters of later LevelDB releases. A
/// lookup in a filter with a reserved number always returns true.
const MAX_PROBES: u8 = 30;

/// Returns the smallest whole number of bits per key for which LevelDB's filter keeps the planned rate.
fn bits_per_key(options: &DecodeOptions) -> Result<u32, CreateError> {
    let (_, rate) = options.plan()?;
    let rate_of = |bits: u32| {
        let probes = f64::from(probes_for(bits));
        (1.0 - (-probes / f64::from(bits)).exp()).powf(probes)
    };
    let bits = (rate < 1.0).then(|| (1..=100).find(|&bits| rate_of(bits) <= rate)).flatten();
    bits.ok_or_else(|| {
        CreateError::refused(format!(
            "LevelDB reaches rates from about 1e-14 to below 1 with up to 100 bits per key, not \
            {rate}, for any number of items"
        ))
    })
}

fn probes_for(bits_per_key: u32) -> u8 {
    ((f64::from(bits_per_key) * 0.69) as u8).clamp(1, MAX_PROBES)
}

/// The filter block of a table. For each 2 KiB of the table, the filter block shows which keys may be in the data
/// blocks that start in these 2 KiB.
///
/// Items are user keys, without the sequence number that LevelDB appends.
///
/// # Examples
///
/// ```
/// use tamis_formats::leveldb::FilterBlock;
///
/// let table = FilterBlock::build(10, &[(0, "a"), (0, "b"), (5_000, "z")]);
/// assert!(table.contains_at(0, b"a") && !table.contains_at(0, b"z"));
/// assert!(table.contains_at(5_000, b"z") && table.contains_any(b"z"));
/// assert!(!table.contains_at(2_048, b"z"), "no data block starts there");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FilterBlock {
    base_lg: u8,
    /// The filters, concatenated. A filter consists of its bits and its number of probes, or is empty.
    data: Vec<u8>,
    /// The end of each filter. Invariant: the ends ascend, the last end is the length of `data`, and no filter has a
    /// length of one byte.
    ends: Vec<u32>,
}

impl FilterBlock {
    /// Creates the filter block of a table as `NewBloomFilterPolicy(bits_per_key)` does. Each element of `keys` is a
    /// key and the offset of the data block of the key.
    #[must_use]
    pub fn build<K: AsRef<[u8]>>(bits_per_key: u32, keys: &[(u32, K)]) -> Self {
        let mut keys: Vec<(usize, &[u8])> =
            keys.iter().map(|(offset, key)| ((offset >> BASE_LG) as usize, key.as_ref())).collect();
        keys.sort_by_key(|&(filter, _)| filter);
        let mut block = Self { base_lg: BASE_LG, data: Vec::new(), ends: Vec::new() };
        for keys in keys.chunk_by(|one, other| one.0 == other.0) {
            // If no data block starts in a range, the filter of the range is empty.
            block.ends.resize(keys[0].0, block.data.len() as u32);
            let bits = (keys.len() as u64 * u64::from(bits_per_key)).max(64);
            block.data.resize(block.data.len() + bits.div_ceil(8) as usize, 0);
            block.data.push(probes_for(bits_per_key));
            block.ends.push(block.data.len() as u32);
            for (filter, key) in keys {
                block.insert(*filter, key);
            }
        }
        block
    }

    /// Decodes a whole filter block. `bytes` do not include the block trailer, which contains the compression type and
    /// the checksum.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless the offsets ascend and the last filter ends at the end of the data.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let parts = Parts::split(bytes)?;
        let starts = parts.offsets.iter().map(|&offset| u32::from_le_bytes(offset));
        let ends = starts.skip(1).chain([parts.data.len() as u32]).take(parts.offsets.len());
        Ok(Self { base_lg: parts.base_lg, data: parts.data.to_vec(), ends: ends.collect() })
    }

    /// Returns the number of filters, including empty filters.
    #[must_use]
    pub fn filters(&self) -> usize {
        self.ends.len()
    }

    /// Tests whether a key may be in the data block that starts at `offset` of the file. Returns true for a block after
    /// the last filter, as LevelDB does.
    #[must_use]
    pub fn contains_at(&self, offset: u64, key: &[u8]) -> bool {
        let filter = usize::try_from(offset >> self.base_lg).unwrap_or(usize::MAX);
        self.get(filter).is_none_or(|bytes| contains(bytes, hash(key, Tail::Unsigned)))
    }

    /// Tests whether a key may be in any data block that has a filter.
    #[must_use]
    pub fn contains_any(&self, key: &[u8]) -> bool {
        let h = hash(key, Tail::Unsigned);
        self.iter().any(|bytes| contains(bytes, h))
    }

    /// Sets the bits of a key in one filter.
    fn insert(&mut self, filter: usize, key: &[u8]) {
        let range = self.range(filter).expect("the block has this filter");
        let bytes = &mut self.data[range];
        let (bits, probes) = split(bytes).expect("the filter is not empty");
        let bits = bits.len() as u64 * 8;
        for bit in probe(bits, probes, hash(key, Tail::Unsigned)) {
            bytes[(bit / 8) as usize] |= 1 << (bit % 8);
        }
    }

    /// Returns the rate of all filters together. `computed` contains the rate of each filter.
    ///
    /// The rate is measured because many hashes share several probes: the step is the rotated hash.
    fn estimate_rate(&self, computed: &[EstimatedRate], is_reserved: bool) -> EstimatedRate {
        let computed = EstimatedRate::of_any(computed);
        if is_reserved || computed.rate == 0.0 {
            let rate = if is_reserved { 1.0 } else { 0.0 };
            return EstimatedRate { rate, std_error: 0.0 };
        }
        measure(
            computed.std_error,
            || computed.rate,
            |random| {
                let h = random.next() as u32;
                let mut read = 0;
                let is_found = self.iter().any(|filter| {
                    // The lookup of an absent item reads few probes, even in a filter with many probes.
                    read += 2;
                    contains(filter, h)
                });
                (is_found, read)
            },
        )
    }

    fn range(&self, filter: usize) -> Option<std::ops::Range<usize>> {
        let end = *self.ends.get(filter)?;
        let start = filter.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(start as usize..end as usize)
    }

    fn get(&self, filter: usize) -> Option<&[u8]> {
        self.range(filter).map(|range| &self.data[range])
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.filters()).filter_map(|filter| self.get(filter))
    }

    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(&self.data)?;
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        for start in starts.take(self.ends.len()) {
            out.write_all(&start.to_le_bytes())?;
        }
        out.write_all(&(self.data.len() as u32).to_le_bytes())?;
        out.write_all(&[self.base_lg])
    }
}

impl StoredFilter for FilterBlock {
    const MERGE_REFUSAL: Option<&'static str> =
        Some("LevelDB's filters belong to the data of one table: build one from the items of both");

    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        answer_each(keys, answers, |key| self.contains_any(key));
    }

    fn insert_each(&mut self, _: &[&[u8]], _: &mut Answers) -> Result<(), ChangeError> {
        Err(ChangeError::refused(
            "LevelDB has a filter for each part of a table's data, planned for its keys: build the \
            filter again",
        ))
    }

    fn info(&self) -> FilterInfo {
        let (mut bits, mut ones, mut items, mut filled) = (0, 0, 0.0, Vec::new());
        let (mut empty, mut reserved) = (0, 0);
        let mut probes = Vec::new();
        for bytes in self.iter() {
            let Some((data, k)) = split(bytes) else {
                empty += 1;
                continue;
            };
            let set: u64 = data.iter().map(|byte| u64::from(byte.count_ones())).sum();
            bits += data.len() as u64 * 8;
            ones += set;
            if k > MAX_PROBES {
                reserved += 1;
                continue;
            }
            let (m, k_real) = (data.len() as f64 * 8.0, f64::from(k));
            let fill = set as f64 / m;
            let of_filter = -(-fill).ln_1p() * m / k_real;
            items += of_filter;
            filled.extend(filled_of(data.len() as u64 * 8, k, fill, of_filter));
            probes.push(k);
        }
        probes.dedup();
        let (computed, sampling_error) = computed_rates(&filled);
        let EstimatedRate { rate, std_error } = self.estimate_rate(&computed, reserved > 0);
        let std_error = std_error.hypot(sampling_error);
        let mut warnings = Vec::new();
        if reserved > 0 {
            warnings.push(format!(
                "{reserved} filters have more than 30 probes, which marks a kind of filter from a \
                later LevelDB: as in LevelDB, every item may be present"
            ));
        }
        FilterInfo {
            layout:
                "LevelDB's filters, each for a part of the data; the rate is that of all filters"
                    .into(),
            bits,
            probes: if let [k] = probes[..] { Some(k.into()) } else { None },
            fill: if bits > 0 { ones as f64 / bits as f64 } else { 0.0 },
            items: if reserved > 0 { f64::INFINITY } else { items },
            rate_now: rate,
            rate_std_error: std_error,
            details: vec![
                ("filters", self.filters().to_string()),
                ("empty filters", empty.to_string()),
                ("bytes of data per filter", (1_u64 << self.base_lg).to_string()),
            ],
            warnings,
            ..FilterInfo::default()
        }
    }
}

/// Computes the rate of each filter, and the standard deviation of the sum of the rates divided by the sum.
fn computed_rates(filters: &[Filled]) -> (Vec<EstimatedRate>, f64) {
    let (rates, error) = rates_of(filters, |_, filter| filter.rate());
    let of_filter = |(Filled { rule, fill, items }, rate): (&Filled, f64)| EstimatedRate {
        // All probes of an item come from one hash of 32 bits, so an absent item may have the hash of a present item.
        rate: (rate + items / 2_f64.powi(32)).min(1.0),
        std_error: chance(*fill, rule.bits.bits(), rule.probes),
    };
    (filters.iter().zip(rates).map(of_filter).collect(), error)
}

/// Returns a filter of `bits` bits and `items` items.
fn filled_of(bits: u64, probes: u8, fill: f64, items: f64) -> Option<Filled> {
    let bits = Modulus::new(bits)?;
    let rule = Progression { bits, probes: probes.into(), sums: Sums::Wrapped(32) };
    Some(Filled { rule, fill, items })
}

/// Splits a filter into its bits and its number of probes. Returns `None` if the filter is empty.
fn split(filter: &[u8]) -> Option<(&[u8], u8)> {
    filter.split_last().map(|(&probes, bits)| (bits, probes))
}

/// Tests whether a hash may be in a filter.
fn contains(filter: &[u8], h: u32) -> bool {
    let Some((data, probes)) = split(filter) else { return false };
    if probes > MAX_PROBES {
        return true;
    }
    let is_set = |bit: u64| data[(bit / 8) as usize] >> (bit % 8) & 1 == 1;
    probe(data.len() as u64 * 8, probes, h).all(is_set)
}

fn probe(bits: u64, probes: u8, mut h: u32) -> impl Iterator<Item = u64> {
    let step = step(h);
    (0..probes).map(move |_| {
        let bit = u64::from(h) % bits;
        h = h.wrapping_add(step);
        bit
    })
}

/// The parts of a filter block that passed all checks.
struct Parts<'a> {
    base_lg: u8,
    data: &'a [u8],
    offsets: &'a [[u8; 4]],
}

impl<'a> Parts<'a> {
    fn split(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let found = bytes.len() as u64;
        let Some((rest, &[a, b, c, d, base_lg])) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
            let kind = DecodeErrorKind::Truncated { expected: TRAILER_BYTES as u64, found };
            return Err(DecodeError::new("trailer", 0, kind));
        };
        if base_lg > 31 {
            let expected = "0 to 31, and 11 in every table";
            return Err(DecodeError::unexpected("base lg", bytes.len() - 1, expected, base_lg));
        }
        let array_at = u32::from_le_bytes([a, b, c, d]);
        let parts = rest.split_at_checked(array_at as usize);
        let whole = parts.map(|(data, offsets)| (data, offsets.as_chunks::<4>()));
        let wrong_start = |expected| {
            DecodeError::unexpected("offset of the offsets", rest.len(), expected, array_at)
        };
        let Some((data, (offsets, []))) = whole else {
            let expected = "the start of an array of 32-bit offsets that ends with the block";
            return Err(wrong_start(expected));
        };
        let mut start = 0;
        for (i, &offset) in offsets.iter().enumerate() {
            let offset = u32::from_le_bytes(offset);
            // A filter of one byte would have a number of probes but no bits.
            let is_next = if i == 0 { offset == 0 } else { offset == start || offset > start + 1 };
            if !is_next || offset > array_at {
                let (at, expected) = (data.len() + 4 * i, "0 for the first filter, and ascending");
                return Err(DecodeError::unexpected("offset of a filter", at, expected, offset));
            }
            start = offset;
        }
        if array_at == start + 1 || offsets.is_empty() && !data.is_empty() {
            return Err(wrong_start("the end of the last filter"));
        }
        Ok(Self { base_lg, data, offsets })
    }
}

fn sniff(bytes: &[u8]) -> Sniff {
    if TableKind::of(bytes) == Some(TableKind::LevelDb) {
        return Sniff::Yes;
    }
    match Parts::split(bytes) {
        Ok(parts) if parts.base_lg == BASE_LG && !parts.offsets.is_empty() => Sniff::Maybe,
        _ => Sniff::No,
    }
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    if let Some(block) = contents.downcast_ref::<FilterBlock>() {
        return Ok(block.write(out)?);
    }
    let collector = contents.downcast_ref::<ItemCollector>();
    let Some(collector) = collector.filter(|it| it.format() == FORMAT.name) else {
        return Err(EncodeError::needs_items(
            "LevelDB has a filter for each 2 KiB of a table's data",
        ));
    };
    let keys: Vec<(u32, &[u8])> = collector.sorted().into_iter().map(|key| (0, key)).collect();
    Ok(FilterBlock::build(bits_per_key(options)?, &keys).write(out)?)
}
