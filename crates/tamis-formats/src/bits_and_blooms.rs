//! Go's `bits-and-blooms/bloom` (formerly `willf/bloom`), as `WriteTo` writes it. Drawn in `docs/formats/bits-and-blooms.md`.

use std::fmt;
use std::io;

use crate::contents::Contents;
use crate::decode_options::DecodeOptions;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::foreign_bloom::ForeignBloom;
use crate::format::{Format, ItemDomain, Items, Sniff};
use crate::funnel::Funnel;
use crate::guava::write_words;
use crate::hash::murmur3::{Tail, x64_128};
use crate::modulus::Modulus;
use crate::reader::Reader;
use crate::rule::{ProbeRule, Rule};

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bits-and-blooms",
    extensions: &["gobloom"],
    summary: "BloomFilter of Go's bits-and-blooms (willf/bloom), by WriteTo",
    sniff: Some(sniff),
    items: Items::Default(Funnel::Bytes),
    item_domain: ItemDomain::Bytes,
    required: &[],
    read_uses: &[],
    write_uses: &[],
    versions: None,
    decode: |bytes, _| decode(bytes).map(Contents::Flat),
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        if !(rate > 0.0 && rate < 1.0) || items == 0 {
            let why = format!(
                "bits-and-blooms plans no filter of {items} items at a rate of {rate}: plan one item at least, and a rate between 0 and 1"
            );
            return Err(EncodeError::NoPlace(why.into()));
        }
        let (bits, probes) = plan(items, rate);
        create(bits, probes).map(Contents::Flat)
    },
};

/// The rule of bits-and-blooms: the hash of an item and that of the item with a byte behind it make four numbers, which are added up
/// in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsAndBlooms {
    bits: Modulus,
    probes: u32,
}

impl ProbeRule for BitsAndBlooms {
    type Hash<'k> = [u64; 4];

    fn bits(&self) -> u64 {
        self.bits.bits()
    }

    fn probes(&self) -> u32 {
        self.probes
    }

    fn hash(&self, key: &[u8]) -> [u64; 4] {
        let (a, b) = x64_128(key, 0, Tail::Unsigned);
        let (c, d) = x64_128(&[key, &[1]].concat(), 0, Tail::Unsigned);
        [a, b, c, d]
    }

    #[inline]
    fn each_probe(&self, [a, b, c, d]: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let bits = self.bits;
        (0..u64::from(self.probes)).map(move |i| {
            let start = if i % 2 == 0 { a } else { b };
            let step = if matches!(i % 4, 0 | 3) { c } else { d };
            bits.reduce(start.wrapping_add(i.wrapping_mul(step)))
        })
    }
}

impl fmt::Display for BitsAndBlooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("murmur3 x64 128 twice, added up (bits-and-blooms)")
    }
}

/// Returns the bits and probes that `EstimateParameters(items, rate)` gives.
///
/// # Examples
///
/// ```
/// assert_eq!(tamis_formats::bits_and_blooms::plan(1_000_000, 0.01), (9_585_059, 7));
/// ```
#[must_use]
pub fn plan(items: u64, rate: f64) -> (u64, u64) {
    let (n, p, ln_2) = (items as f64, rate, std::f64::consts::LN_2);
    let m = (-n * p.ln() / ln_2.powi(2)).ceil();
    (m as u64, (ln_2 * m / n).ceil() as u64)
}

/// Makes an empty filter as `bloom.New(bits, probes)` does, which takes 0 for 1.
///
/// # Errors
///
/// [`EncodeError`] for more than 65,535 probes, or if the memory is not there.
pub fn create(bits: u64, probes: u64) -> Result<ForeignBloom, EncodeError> {
    let no_place = |why: String| EncodeError::NoPlace(why.into());
    let rule = rule(bits.max(1), probes.max(1)).ok_or_else(|| {
        no_place(format!("{bits} bits and {probes} probes: up to {MAX_PROBES} probes, and as many bits as memory holds at most"))
    })?;
    ForeignBloom::new(rule).map_err(|error| no_place(format!("{error}: plan fewer items")))
}

/// The most probes that are read: no plan has as many, and a file that says so would only take time.
const MAX_PROBES: u64 = 65_535;

fn rule(bits: u64, probes: u64) -> Option<Rule> {
    let probes = u32::try_from(probes).ok().filter(|&it| (1..=MAX_PROBES).contains(&it.into()))?;
    // The bytes of more bits could not be counted.
    let bits = Modulus::new(bits).filter(|bits| bits.bits() <= 1 << 62)?;
    Some(Rule::BitsAndBlooms(BitsAndBlooms { bits, probes }))
}

/// Reads what `WriteTo` wrote, and nothing behind it.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are one filter.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = Reader::new(bytes);
    let mut number = |field| reader.array(field).map(u64::from_be_bytes);
    let (bits, probes, len) = (number("m")?, number("k")?, number("length of the bit set")?);
    let unexpected = |field, at, expected, found: u64| DecodeError {
        field,
        at,
        kind: DecodeErrorKind::Unexpected { expected, found: found.into() },
    };
    if bits == 0 || bits > 1 << 62 {
        return Err(unexpected("m", 0, "1 or more, as many as memory holds", bits));
    }
    if len != bits {
        return Err(unexpected("length of the bit set", 16, "m", len));
    }
    let rule = rule(bits, probes).ok_or(unexpected("k", 8, "1 to 65,535", probes))?;
    let at = reader.at() as u64;
    // The length is tested before there is memory for the words.
    let len = usize::try_from(bits.div_ceil(64) * 8).unwrap_or(usize::MAX);
    let data = reader.bytes("words", len)?;
    reader.end("words")?;
    let words = data.as_chunks().0.iter().map(|&word| u64::from_be_bytes(word));
    ForeignBloom::from_words(rule, words).map_err(|memory| DecodeError {
        field: "words",
        at,
        kind: DecodeErrorKind::Memory(memory),
    })
}

fn sniff(bytes: &[u8]) -> Sniff {
    let number = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_be_bytes);
    let is_whole = match (number(0), number(8), number(16)) {
        (Some(bits @ 1..), Some(1..=MAX_PROBES), Some(len)) => {
            len == bits && bits.div_ceil(64).checked_mul(8) == Some(bytes.len() as u64 - 24)
        }
        _ => false,
    };
    if is_whole { Sniff::Maybe } else { Sniff::No }
}

fn encode(
    contents: &Contents,
    _: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let why = match contents {
        Contents::Flat(filter) => match filter.rule() {
            Rule::BitsAndBlooms(rule) => {
                let (bits, probes) = (rule.bits(), u64::from(rule.probes));
                out.write_all([bits, probes, bits].map(u64::to_be_bytes).as_flattened())?;
                return write_words(filter.words(), out, u64::to_be_bytes);
            }
            other => format!(
                "bits-and-blooms places items by four numbers of two hashes, not by {other}; build one from the items"
            ),
        },
        _ => "bits-and-blooms has no place for such a filter: build one from the items".into(),
    };
    Err(EncodeError::NoPlace(why.into()))
}
