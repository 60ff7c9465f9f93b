//! Go's `bits-and-blooms/bloom` (formerly `willf/bloom`) in the format of `WriteTo`. Layout:
//! `docs/formats/bits-and-blooms.md`.

pub mod json;

use std::io::Write;

use tamis::Modulus;

use crate::encoding::{ByteReader, write_words};
use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::items::Funnel;
use crate::rules::hash::murmur3::{Tail, x64_128};
use crate::rules::{EstimatedRate, ProbeRule, Rule, fill, measure, test_bits};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bits-and-blooms",
    extensions: &["gobloom"],
    summary: "BloomFilter of Go's bits-and-blooms (willf/bloom), by WriteTo",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Bytes),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: planned,
    ..Format::BASE
};

/// Creates an empty filter as `NewWithEstimates` does.
fn planned(options: &DecodeOptions) -> Result<Contents, CreateError> {
    let (items, rate) = options.plan()?;
    CreateError::check_plan("bits-and-blooms", items, rate)?;
    let (bits, probes) = plan(items, rate);
    create(bits, probes).map(Contents::new)
}

/// The rule of bits-and-blooms. Two hashes give four numbers, and the probes are sums of these numbers. The first hash
/// is the hash of the item. The second hash is the hash of the item with one byte appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsAndBlooms {
    bits: Modulus,
    probes: u32,
}

impl ProbeRule for BitsAndBlooms {
    type Hash<'k> = [u64; 4];

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        "sums of two murmur3 x64 128 hashes (bits-and-blooms)".into()
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

    /// The probes form four arithmetic progressions. In a filter with more than [`MEASURED_BITS`] bits, the probes
    /// behave like independent probes.
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let bits = self.bits.bits();
        let independent = EstimatedRate::independent(fill(words, bits), bits, self.probes);
        if bits > MEASURED_BITS {
            return independent;
        }
        measure(
            independent.std_error,
            || independent.rate,
            |random| test_bits(words, self.each_probe([(); 4].map(|()| random.next()))),
        )
    }
}

/// The largest number of bits for which the rate is measured.
const MEASURED_BITS: u64 = 4096;

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

/// Creates an empty filter as `bloom.New(bits, probes)` does. Replaces 0 bits by 1 bit, and 0 probes by 1 probe.
///
/// # Errors
///
/// [`CreateError`] for more than 65,535 probes, or if the allocation fails.
pub fn create(bits: u64, probes: u64) -> Result<ForeignBloom, CreateError> {
    let rule = rule(bits.max(1), probes.max(1)).ok_or_else(|| {
        CreateError::refused(format!(
            "{bits} bits and {probes} probes: at most {MAX_PROBES} probes, and as many bits as fit \
            into memory"
        ))
    })?;
    Ok(ForeignBloom::new(rule)?)
}

/// The largest accepted number of probes. Real plans have fewer probes than this limit. A hostile file with more probes
/// than this limit would only waste time.
const MAX_PROBES: u64 = 65_535;

fn rule(bits: u64, probes: u64) -> Option<Rule> {
    let probes = u32::try_from(probes).ok().filter(|&it| (1..=MAX_PROBES).contains(&it.into()))?;
    // With more than 2⁶² bits, the number of bytes would overflow.
    let bits = Modulus::new(bits).filter(|bits| bits.bits() <= 1 << 62)?;
    Some(Rule::new(BitsAndBlooms { bits, probes }))
}

/// Reads the output of `WriteTo`. Rejects trailing bytes.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let mut number = |field| reader.array(field).map(u64::from_be_bytes);
    let (bits, probes, len) = (number("m")?, number("k")?, number("length of the bit set")?);
    if bits == 0 || bits > 1 << 62 {
        return Err(DecodeError::unexpected("m", 0, "1 or more, as many as fit into memory", bits));
    }
    if len != bits {
        return Err(DecodeError::unexpected("length of the bit set", 16, "m", len));
    }
    let rule = rule(bits, probes).ok_or(DecodeError::unexpected("k", 8, "1 to 65,535", probes))?;
    let filter = ForeignBloom::read_words(rule, &mut reader, u64::from_be_bytes)?;
    reader.end("words")?;
    Ok(filter)
}

fn sniff(bytes: &[u8]) -> Sniff {
    let number = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_be_bytes);
    let is_whole = match (number(0), number(8), number(16)) {
        (Some(bits @ 1..), Some(1..=MAX_PROBES), Some(len)) => {
            len == bits && bits.div_ceil(64).checked_mul(8) == Some(bytes.len() as u64 - 24)
        }
        _ => false,
    };
    Sniff::maybe(is_whole)
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let (filter, rule) = ForeignBloom::with_rule::<BitsAndBlooms>(contents, "bits-and-blooms")?;
    let (bits, probes) = (rule.bits.bits(), u64::from(rule.probes));
    out.write_all([bits, probes, bits].map(u64::to_be_bytes).as_flattened())?;
    Ok(write_words(filter.words(), out, u64::to_be_bytes)?)
}
