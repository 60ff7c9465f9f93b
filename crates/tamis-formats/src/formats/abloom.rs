//! Python's `abloom` in the format of `BloomFilter.to_bytes`. Layout: `docs/formats/abloom.md`.

use std::io::Write;

use tamis::{Answers, Modulus};

use crate::encoding::{ByteReader, write_words};
use crate::errors::{ChangeError, CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, FilterInfo, ForeignBloom, StoredFilter};
use crate::format::{DecodeOptions, Detection, Format, ItemDomain, Sniff};
use crate::rules::{EstimatedRate, ProbeRule, Rule, chance, fill};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "abloom",
    extensions: &["abloom"],
    summary: "BloomFilter of Python's abloom, by to_bytes",
    detection: Detection::ByBytes(|bytes| Sniff::yes(bytes.starts_with(MAGIC))),
    // Text and numbers have different hashes.
    item_domain: ItemDomain::AbloomHashes,
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| options.create(create),
    ..Format::BASE
};

/// The number of bits of a block, and the number of lanes of a block. A lane is a word of 64 bits.
const BLOCK_BITS: u64 = 512;
const LANES: usize = 8;

/// The rule of abloom: split blocks. The high half of the hash, modulo the number of blocks, selects the block. The low
/// half of the hash selects a bit of each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainderBlocks {
    // Invariant: there are at most 2⁵³ blocks, so that the number of bits does not overflow.
    blocks: Modulus,
}

impl RemainderBlocks {
    fn new(blocks: u64) -> Option<Self> {
        Modulus::new(blocks).filter(|it| it.bits() <= 1 << 53).map(|blocks| Self { blocks })
    }
}

impl ProbeRule for RemainderBlocks {
    type Hash<'k> = u64;

    const ITEM_BYTES: Option<usize> = Some(size_of::<u64>());

    fn sizes(&self) -> (u64, u32) {
        (self.blocks.bits() * BLOCK_BITS, LANES as u32)
    }

    fn name(&self) -> String {
        "64-bit hash of abloom, split blocks of 512 bits".into()
    }

    fn hash(&self, key: &[u8]) -> u64 {
        // All keys of `Funnel::Abloom` have 8 bytes.
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(key).for_each(|(to, &byte)| *to = byte);
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        // abloom uses the salts of Parquet's Bloom filter.
        const SALTS: [u32; LANES] = [
            0x47b6_137b,
            0x4497_4d91,
            0x8824_ad5b,
            0xa2b7_289d,
            0x7054_95c7,
            0x2df1_424b,
            0x9efc_4947,
            0x5c6b_fb31,
        ];
        let block = self.blocks.reduce(hash >> 32) * BLOCK_BITS;
        let low = hash as u32;
        SALTS
            .into_iter()
            .zip(0..)
            .map(move |(salt, lane)| block + lane * 64 + u64::from(low.wrapping_mul(salt) >> 26))
    }

    /// Estimates the rate as the sum of two parts. The first part of the rate is the mean, over all blocks, of the
    /// product of the fills of the lanes. The second part of the rate is the probability that an absent item has the
    /// same low half of the hash as an item of its block.
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let (bits, probes) = self.sizes();
        let blocks = self.blocks.bits() as f64;
        let lane = |word: &u64| f64::from(word.count_ones()) / 64.0;
        let of_block = |block: &[u64]| block.iter().map(lane).product::<f64>();
        let of_blocks = words.chunks(LANES).map(of_block).sum::<f64>() / blocks;
        let same_half = self.estimate_items(words) / blocks / 2_f64.powi(32);
        EstimatedRate {
            rate: (of_blocks + same_half).min(1.0),
            std_error: chance(fill(words, bits), bits, probes),
        }
    }
}

/// A filter of abloom and its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Abloom {
    // Invariant: the rule is `RemainderBlocks`.
    filter: ForeignBloom,
    capacity: u64,
    rate: f64,
    is_free_threading: bool,
}

impl Abloom {
    /// Returns the bits.
    #[must_use]
    pub fn filter(&self) -> &ForeignBloom {
        &self.filter
    }
}

/// Returns the number of blocks of 512 bits that abloom plans.
///
/// abloom finds the number of bits per item by bisection: 29 steps between 0.5 and 300. A rate below about 10⁻¹⁰ gets
/// 300 bits per item. A rate above 0.9356 gets 0.5 bits per item, because abloom's sum omits the largest terms.
///
/// # Examples
///
/// ```
/// assert_eq!(tamis_formats::abloom::plan(1_000_000, 0.01), 19_726);
/// ```
#[must_use]
pub fn plan(items: u64, rate: f64) -> u64 {
    /// The number of terms of the sum. All numbers of terms from 400 to 505 give equal plans.
    const TERMS: u32 = 500;
    let set_lane = |count: u32| (1.0 - (63.0_f64 / 64.0).powi(count as i32)).powi(LANES as i32);
    let set_lanes: Vec<f64> = (0..TERMS).map(set_lane).collect();
    // The number of items in a block has a Poisson distribution.
    let rate_at = |bits_per_item: f64| {
        let mean = BLOCK_BITS as f64 / bits_per_item;
        let (mut probability, mut sum) = ((-mean).exp(), 0.0);
        for (count, set) in (1..).zip(&set_lanes) {
            sum += probability * set;
            probability *= mean / f64::from(count);
        }
        sum
    };
    let (mut low, mut high) = (0.5, 300.0);
    for _ in 0..29 {
        let middle = (low + high) / 2.0;
        if rate_at(middle) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    let bits_per_item = (low + high) / 2.0;
    ((items as f64 * bits_per_item / BLOCK_BITS as f64).ceil() as u64).max(1)
}

/// Creates an empty filter, as `BloomFilter(items, rate, serializable=True)` does.
///
/// # Errors
///
/// [`CreateError`] if `items` is 0, if the rate is not above 0 and below 1, or if the allocation fails.
///
/// # Examples
///
/// ```
/// let users = tamis_formats::abloom::create(100, 0.01)?;
/// assert_eq!(users.filter().rule().bits(), 1_024);
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(items: u64, rate: f64) -> Result<Abloom, CreateError> {
    CreateError::check_plan("abloom", items, rate)?;
    let blocks = plan(items, rate);
    let rule = RemainderBlocks::new(blocks).ok_or_else(|| {
        CreateError::refused(format!("{blocks} blocks do not fit in memory: plan fewer items"))
    })?;
    let filter = ForeignBloom::new(Rule::new(rule))?;
    Ok(Abloom { filter, capacity: items, rate, is_free_threading: false })
}

const MAGIC: &[u8] = b"ABLM";

/// The version of the format in the header.
const VERSION: u8 = 2;

// Each offset is computed from the previous offset.
const VERSION_AT: usize = MAGIC.len();
const CAPACITY_AT: usize = VERSION_AT + size_of::<u8>();
const RATE_AT: usize = CAPACITY_AT + size_of::<u64>();
const BLOCKS_AT: usize = RATE_AT + size_of::<f64>();
const THREADING_AT: usize = BLOCKS_AT + size_of::<u64>();

/// Reads the output of `to_bytes`.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter with the size of the plan in the header. The library abloom
/// itself rejects a filter with a size that differs from the plan.
pub fn decode(bytes: &[u8]) -> Result<Abloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    if reader.bytes("magic number", MAGIC.len())? != MAGIC {
        return Err(DecodeError::invalid("magic number", 0, "ABLM"));
    }
    let version = reader.u8("version")?;
    if version != VERSION {
        return Err(DecodeError::unexpected("version", VERSION_AT, "2", version));
    }
    let capacity = reader.array("capacity").map(u64::from_be_bytes)?;
    if capacity == 0 {
        return Err(DecodeError::unexpected("capacity", CAPACITY_AT, "1 or more", capacity));
    }
    let rate = f64::from_be_bytes(reader.array("rate")?);
    if !(rate > 0.0 && rate < 1.0) {
        return Err(DecodeError::invalid("rate", RATE_AT, "between 0 and 1"));
    }
    let blocks = reader.array("number of blocks").map(u64::from_be_bytes)?;
    let expected = "the number that the capacity and the rate plan";
    let rule = Some(blocks).filter(|&blocks| blocks == plan(capacity, rate));
    let rule = rule
        .and_then(RemainderBlocks::new)
        .ok_or_else(|| DecodeError::unexpected("number of blocks", BLOCKS_AT, expected, blocks))?;
    let threading = reader.u8("free threading")?;
    if threading > 1 {
        return Err(DecodeError::unexpected("free threading", THREADING_AT, "0 or 1", threading));
    }
    let filter = ForeignBloom::read_words(Rule::new(rule), &mut reader, u64::from_be_bytes)?;
    reader.end("words")?;
    Ok(Abloom { filter, capacity, rate, is_free_threading: threading == 1 })
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let why = "abloom selects the block of an item by a remainder of its own hash";
    let Abloom { filter, capacity, rate, is_free_threading } = contents.filter(why)?;
    let blocks = filter.rule().bits() / BLOCK_BITS;
    out.write_all(MAGIC)?;
    out.write_all(&[VERSION])?;
    out.write_all([*capacity, rate.to_bits(), blocks].map(u64::to_be_bytes).as_flattened())?;
    out.write_all(&[u8::from(*is_free_threading)])?;
    Ok(write_words(filter.words(), out, u64::to_be_bytes)?)
}

impl StoredFilter for Abloom {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        StoredFilter::contains_each(&self.filter, keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        StoredFilter::insert_each(&mut self.filter, keys, answers)
    }

    /// The merged filter keeps the plan of `self`.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        StoredFilter::merge(&mut self.filter, &other.filter)
    }

    fn info(&self) -> FilterInfo {
        let mut info = self.filter.info();
        info.rate_planned = Some(self.rate);
        info.details.push(("capacity", self.capacity.to_string()));
        if self.is_free_threading {
            info.details.push(("free threading", "yes".into()));
        }
        info
    }

    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        Some(planned.unwrap_or(self.rate)).filter(|&planned| info.is_over(planned))
    }
}
