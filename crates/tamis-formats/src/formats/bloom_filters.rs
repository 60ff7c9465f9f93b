//! The class `BloomFilter` of npm's `bloom-filters` in the format of `saveAsJSON`. Layout:
//! `docs/formats/bloom-filters.md`.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use tamis::Modulus;
use xxhash_rust::xxh64::xxh64;

use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::items::Funnel;
use crate::rules::rates::enhanced::Enhanced;
use crate::rules::{EstimatedRate, ProbeRule, Rule};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bloom-filters",
    summary: "BloomFilter of npm's bloom-filters, as JSON by saveAsJSON",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Bytes),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| {
        options.create(|items, rate| {
            CreateError::check_plan("bloom-filters", items, rate)?;
            let (bits, probes) = plan(items, rate);
            create(bits, probes, DEFAULT_SEED)
        })
    },
    ..Format::BASE
};

/// The default seed of the library.
pub const DEFAULT_SEED: i64 = 0x12_3456_7890;

/// The largest number of bits, because the hashes have 32 bits.
const MAX_BITS: u64 = 1 << 32;

/// The largest accepted number of probes. The smallest rate of an `f64` needs 1,074 probes.
const MAX_PROBES: u64 = 1_100;

/// The largest absolute value of a seed. Up to an absolute value of 2⁵², JavaScript adds to a seed without rounding.
const MAX_SEED: i64 = 1 << 52;

/// The rule of bloom-filters: two hashes of 32 bits, and enhanced double hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeededSums {
    sums: Enhanced,
    // Invariant: the absolute value of the seed is at most `MAX_SEED`.
    seed: i64,
}

impl SeededSums {
    fn new(bits: u64, probes: u64, seed: i64) -> Option<Self> {
        let probes =
            u32::try_from(probes).ok().filter(|&it| (1..=MAX_PROBES).contains(&it.into()))?;
        let bits = Modulus::new(bits).filter(|bits| bits.bits() <= MAX_BITS)?;
        let is_seed = seed.unsigned_abs() <= MAX_SEED.unsigned_abs();
        is_seed.then_some(Self { sums: Enhanced { bits, probes }, seed })
    }
}

impl ProbeRule for SeededSums {
    type Hash<'k> = [u32; 2];

    fn sizes(&self) -> (u64, u32) {
        (self.sums.bits.bits(), self.sums.probes)
    }

    fn name(&self) -> String {
        format!("32 bits of two xxh64 hashes, seed {}, cubic sums (bloom-filters)", self.seed)
    }

    fn hash(&self, key: &[u8]) -> [u32; 2] {
        // JavaScript truncates the seeds and the hashes to 32 bits.
        [1, 2].map(|i| xxh64(key, u64::from((self.seed + i) as u32)) as u32)
    }

    #[inline]
    fn each_probe(&self, [a, b]: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        self.sums.each_probe(a, b)
    }

    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        self.sums.estimate_rate(words)
    }
}

/// Returns the bits and probes that `BloomFilter.create(items, rate)` chooses.
///
/// # Examples
///
/// ```
/// assert_eq!(tamis_formats::bloom_filters::plan(100, 0.01), (959, 7));
/// ```
#[must_use]
pub fn plan(items: u64, rate: f64) -> (u64, u64) {
    let (n, p, ln_2) = (items as f64, rate, std::f64::consts::LN_2);
    let m = (-n * p.ln() / (ln_2 * ln_2)).ceil();
    (m as u64, (ln_2 * m / n).ceil() as u64)
}

/// Creates an empty filter, as `new BloomFilter(bits, probes)` does. If the JavaScript program sets no seed, pass
/// [`DEFAULT_SEED`].
///
/// # Errors
///
/// [`CreateError`] if there are no bits, more than 2³² bits, no probes, or more than 1,100 probes. [`CreateError`] if
/// the seed is beyond ±2⁵², or if the allocation fails.
///
/// # Examples
///
/// ```
/// use tamis_formats::bloom_filters;
///
/// let mut users = bloom_filters::create(96, 7, bloom_filters::DEFAULT_SEED)?;
/// assert!(users.insert(b"hello") && users.contains(b"hello"));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(bits: u64, probes: u64, seed: i64) -> Result<ForeignBloom, CreateError> {
    let rule = SeededSums::new(bits, probes, seed).ok_or_else(|| {
        CreateError::refused(format!(
            "bloom-filters has no filter of {bits} bits and {probes} probes with the seed {seed}: \
             at most {MAX_BITS} bits, {MAX_PROBES} probes and a seed of {MAX_SEED}"
        ))
    })?;
    Ok(ForeignBloom::new(Rule::new(rule))?)
}

/// The JSON object. Unknown members of the object are ignored.
#[derive(Deserialize)]
struct Object<'a> {
    #[serde(rename = "type", borrow)]
    class: Cow<'a, str>,
    #[serde(rename = "_size")]
    bits: f64,
    #[serde(rename = "_nbHashes")]
    probes: f64,
    #[serde(rename = "_filter", borrow)]
    stored: Stored<'a>,
    #[serde(rename = "_seed")]
    seed: f64,
}

/// The members from which the format is detected.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(rename = "type", borrow)]
    class: Cow<'a, str>,
    #[serde(rename = "_seed")]
    _seed: IgnoredAny,
}

/// The member `_filter`.
enum Stored<'a> {
    /// Since release 2.0.0: the number of stored bits, and the bits in base64.
    Base64 { bits: f64, content: Cow<'a, str> },
    /// Before release 2.0.0: an array of bits.
    Array,
}

impl<'de: 'a, 'a> Deserialize<'de> for Stored<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StoredVisitor)
    }
}

/// Reads [`Stored`] without allocating memory for the elements of an array.
struct StoredVisitor;

impl<'de> Visitor<'de> for StoredVisitor {
    type Value = Stored<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with size and content")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Stored<'de>, A::Error> {
        #[derive(Deserialize)]
        struct Bits<'a> {
            size: f64,
            #[serde(borrow)]
            content: Cow<'a, str>,
        }
        let deserializer = serde::de::value::MapAccessDeserializer::new(map);
        let Bits { size, content } = Bits::deserialize(deserializer)?;
        Ok(Stored::Base64 { bits: size, content })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Stored<'de>, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Stored::Array)
    }
}

/// The name of the supported class. The other classes of the package `bloom-filters` have different layouts.
const CLASS: &str = "BloomFilter";

/// Decodes the JSON of a filter.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one JSON object of a filter. White space around the object is allowed.
///
/// # Examples
///
/// ```
/// use tamis_formats::bloom_filters;
///
/// let json = br#"{"type":"BloomFilter","_size":96,"_nbHashes":7,"_filter":{"size":96,"content":"QgAAgAAgAAACASAA"},"_seed":78187493520}"#;
/// let users = bloom_filters::decode(json)?;
/// assert!(users.contains(b"hello") && !users.contains(b"world"));
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let object: Object<'_> = serde_json::from_slice(bytes).map_err(|error| {
        DecodeError::refused("object", 0, format!("is not the JSON of a filter: {error}"))
    })?;
    let invalid = |field, reason| DecodeError::invalid(field, 0, reason);
    if object.class != CLASS {
        return Err(invalid("type", "BloomFilter"));
    }
    let Stored::Base64 { bits: stored_bits, content } = object.stored else {
        let why = "its bits are an array, as bloom-filters before 2.0.0 writes them, and that release \
                   sets other bits for an item: build a filter from the items";
        return Err(DecodeError::refused("_filter", 0, why));
    };
    let whole = |number: f64, max: u64| {
        (number.fract() == 0.0 && number >= 1.0 && number <= max as f64).then_some(number as u64)
    };
    let bits = whole(object.bits, MAX_BITS)
        .ok_or(invalid("_size", "a whole number from 1 to 4,294,967,296"))?;
    let probes = whole(object.probes, MAX_PROBES)
        .ok_or(invalid("_nbHashes", "a whole number from 1 to 1,100"))?;
    let bytes_of_bits = bits.div_ceil(8);
    if stored_bits != (bytes_of_bits * 8) as f64 {
        return Err(invalid("size of _filter", "_size, rounded up to a multiple of 8"));
    }
    let is_seed = object.seed.fract() == 0.0 && object.seed.abs() <= MAX_SEED as f64;
    let rule = is_seed.then(|| SeededSums::new(bits, probes, object.seed as i64)).flatten();
    let rule = rule.ok_or(invalid("_seed", "a whole number of at most 2^52"))?;
    let data = STANDARD
        .decode(&*content)
        .map_err(|_| invalid("content of _filter", "base64, with padding"))?;
    if data.len() as u64 != bytes_of_bits {
        return Err(invalid("content of _filter", "as long as its size"));
    }
    let used_in_last = bits % 8;
    if used_in_last != 0 && data.last().is_some_and(|last| last >> used_in_last != 0) {
        return Err(DecodeError::new("content of _filter", 0, DecodeErrorKind::NotZero));
    }
    ForeignBloom::from_bytes(Rule::new(rule), &data)
        .map_err(DecodeError::memory("content of _filter", 0))
}

fn sniff(bytes: &[u8]) -> Sniff {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Sniff::No;
    }
    // Bytes after the object do not change the detected format. `decode` reports bytes after the object as an error.
    let object = Named::deserialize(&mut serde_json::Deserializer::from_slice(bytes));
    Sniff::yes(object.is_ok_and(|object| object.class == CLASS))
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let (filter, rule) = ForeignBloom::with_rule::<SeededSums>(contents, "bloom-filters")?;
    let (bits, probes) = rule.sizes();
    let stored_bits = bits.div_ceil(8) * 8;
    write!(
        out,
        r#"{{"type":"{CLASS}","_size":{bits},"_nbHashes":{probes},"_filter":{{"size":{stored_bits},"content":""#
    )?;
    let mut base64 = base64::write::EncoderWriter::new(&mut *out, &STANDARD);
    filter.write_bytes(&mut base64)?;
    base64.finish()?;
    drop(base64);
    Ok(write!(out, r#""}},"_seed":{}}}"#, rule.seed)?)
}
