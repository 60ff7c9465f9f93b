//! `ByteBufferBloomFilter` of a Java article: eight filters. Filter `i` consists of bit `i` of each byte. Layout:
//! `docs/formats/byte-buffer.md`.

use tamis::Modulus;

use crate::encoding::bare_bits;
use crate::errors::{CreateError, DecodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{Detection, Format, Items};
use crate::items::Funnel;
use crate::rules::hash::polynomial::{polynomials, units};
use crate::rules::{EstimatedRate, ProbeRule, Rule, chance, fill};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "byte-buffer",
    extensions: &["bytebuffer"],
    summary: "ByteBufferBloomFilter of a Java article: eight filters, each with one bit of each \
        byte",
    detection: Detection::ByOption,
    items: Items::Default(Funnel::Chars),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode: |contents, _, out| {
        bare_bits::encode::<EightColumns>(contents, "ByteBufferBloomFilter", out)
    },
    create: |options| options.create(|items, rate| create(plan_bytes(items, rate))),
    ..Format::BASE
};

/// The factors of the eight hashes.
const SEEDS: [u32; 8] = [33, 53, 79, 97, 113, 137, 163, 181];

/// The largest length of a Java array.
const MAX_BYTES: u64 = i32::MAX as u64;

/// The rule of the article. Hash `i`, modulo the number of bytes, selects a byte. The item sets bit `i` of the byte
/// that hash `i` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EightColumns {
    bytes: Modulus,
}

impl EightColumns {
    /// Creates the rule for a number of bytes. Returns `None` if `bytes` is 0.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        Some(Self { bytes: Modulus::new(bytes)? })
    }

    /// Returns the share of set bits of each of the eight filters.
    fn fills(self, words: &[u64]) -> [f64; SEEDS.len()] {
        std::array::from_fn(|i| {
            // Selects bit `i` of each byte of a word.
            let column = 0x0101_0101_0101_0101 << i;
            let ones: u64 = words.iter().map(|word| u64::from((word & column).count_ones())).sum();
            ones as f64 / self.bytes.bits() as f64
        })
    }
}

impl ProbeRule for EightColumns {
    type Hash<'k> = [u32; 8];

    fn sizes(&self) -> (u64, u32) {
        (self.bytes.bits() * 8, SEEDS.len() as u32)
    }

    fn name(&self) -> String {
        "Hash.hashes, a bit of each byte a hash".into()
    }

    fn hash(&self, key: &[u8]) -> [u32; 8] {
        hashes(units(key))
    }

    #[inline]
    fn each_probe(&self, hashes: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let bytes = self.bytes;
        hashes.into_iter().zip(0..).map(move |(hash, i)| bytes.reduce(hash.into()) * 8 + i)
    }

    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let (bits, probes) = self.sizes();
        EstimatedRate {
            rate: self.fills(words).iter().product(),
            std_error: chance(fill(words, bits), bits, probes),
        }
    }

    fn estimate_items(&self, words: &[u64]) -> f64 {
        let items = self.fills(words).map(|fill| -(-fill).ln_1p() * self.bytes.bits() as f64);
        items.iter().sum::<f64>() / items.len() as f64
    }
}

/// Returns the result of `Hash.hashes` for a text. `units` are the UTF-16 code units of the text.
///
/// # Examples
///
/// ```
/// use tamis_formats::byte_buffer::hashes;
///
/// assert_eq!(hashes("a".encode_utf16())[..2], [177_668, 285_294]);
/// ```
#[must_use]
pub fn hashes(units: impl Iterator<Item = u16>) -> [u32; 8] {
    polynomials(5381, SEEDS, units).map(|h| (h ^ h >> 16) & 0x7fff_ffff)
}

/// Returns the number of bytes that keeps the false positive rate at or below `rate` for up to `items` items.
///
/// The Java article uses 1.5 bytes per item, which gives rates of 0.32 to 0.36 %.
///
/// # Examples
///
/// ```
/// use tamis_formats::byte_buffer::plan_bytes;
///
/// assert_eq!(plan_bytes(1_000, 0.0033), 1_488);
/// ```
#[must_use]
pub fn plan_bytes(items: u64, rate: f64) -> u64 {
    // Solves rate = (1 − (1 − 1/m)ⁿ)⁸ for m.
    let q = rate.powf(1.0 / 8.0);
    (1.0 / -((-q).ln_1p() / items.max(1) as f64).exp_m1()).ceil() as u64
}

/// Creates an empty filter of `bytes` bytes, as the constructor of the Java class does.
///
/// # Errors
///
/// [`CreateError`] if no Java array has this length, or if the allocation fails.
///
/// # Examples
///
/// ```
/// let seen = tamis_formats::byte_buffer::create(1_500)?;
/// assert_eq!((seen.rule().bits(), seen.rule().probes()), (12_000, 8));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(bytes: u64) -> Result<ForeignBloom, CreateError> {
    let rule = Some(bytes).filter(|&bytes| bytes <= MAX_BYTES).and_then(EightColumns::new);
    let rule = rule.ok_or_else(|| {
        CreateError::refused(format!(
            "a Java array has 1 to {MAX_BYTES} bytes, not {bytes}: plan fewer items"
        ))
    })?;
    Ok(ForeignBloom::new(Rule::new(rule))?)
}

/// Decodes the bytes of the buffer.
///
/// # Errors
///
/// [`DecodeError`] if there are no bytes or too many bytes, or if the allocation fails.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    bare_bits::decode(bytes, MAX_BYTES, EightColumns::new)
}
