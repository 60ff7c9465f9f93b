//! The Bloom filter of an article about C. One hash function with seven factors gives seven hashes. A mask reduces each
//! hash to a bit number. The mask has gaps if the number of bits is not a power of two. Layout:
//! `docs/formats/c-hashcode.md`.

use crate::encoding::bare_bits;
use crate::errors::DecodeError;
use crate::filters::{Contents, FilterInfo, ForeignBloom};
use crate::format::{Detection, Format, Items, Parameters};
use crate::items::Funnel;
use crate::rules::hash::polynomial::{polynomials, units};
use crate::rules::{EstimatedRate, ProbeRule, Rule};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "c-hashcode",
    extensions: &["hashcode"],
    summary: "the Bloom filter in C of an article: hashcode(cap, seed), seven seeds",
    detection: Detection::ByOption,
    items: Items::Default(Funnel::Chars),
    parameters: Parameters { planning: &[], ..Parameters::NONE },
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode: |contents, _, out| {
        bare_bits::encode::<MaskedSeven>(contents, "hashcode(cap, seed)", out)
    },
    create: |_| Ok(Contents::new(ForeignBloom::new(Rule::new(ARTICLE))?)),
    ..Format::BASE
};

/// The factors of the seven hashes.
const SEEDS: [u32; 7] = [5, 7, 11, 13, 31, 37, 61];

/// The filter size in the article: 15 MiB.
const ARTICLE: MaskedSeven = MaskedSeven { bits: 15 * 1024 * 1024 * 8 };

/// The largest number of bytes that a 32-bit hash can address.
const MAX_BYTES: u64 = 1 << 29;

/// The rule of the article: a bit number is `hash & (bits - 1)`, even if `bits` is not a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskedSeven {
    // Invariant: the number of bits is from 8 to 2³².
    bits: u64,
}

impl MaskedSeven {
    /// Returns the number of different bit numbers that the mask can produce.
    fn positions(self) -> f64 {
        2_f64.powi((self.bits - 1).count_ones().cast_signed())
    }

    fn fill(self, words: &[u64]) -> f64 {
        crate::rules::fill(words, self.bits) * self.bits as f64 / self.positions()
    }
}

impl ProbeRule for MaskedSeven {
    type Hash<'k> = [u32; 7];

    fn sizes(&self) -> (u64, u32) {
        (self.bits, SEEDS.len() as u32)
    }

    fn name(&self) -> String {
        "hashcode(cap, seed)".into()
    }

    fn hash(&self, key: &[u8]) -> [u32; 7] {
        polynomials(0, SEEDS, units(key))
    }

    #[inline]
    fn each_probe(&self, hashes: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let mask = self.bits - 1;
        hashes.into_iter().map(move |hash| u64::from(hash) & mask)
    }

    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let fill = self.fill(words).min(1.0);
        EstimatedRate::independent(fill, self.positions() as u64, SEEDS.len() as u32)
    }

    fn estimate_items(&self, words: &[u64]) -> f64 {
        -(-self.fill(words).min(1.0)).ln_1p() * self.positions() / SEEDS.len() as f64
    }

    fn describe(&self, info: &mut FilterInfo) {
        info.warnings.extend([
            "short items set few different bits: their hashes are small numbers, and all seven \
            hashes of the empty text are 0"
                .into(),
            "text beyond ASCII is hashed by UTF-16 code units here; a program in C hashes its \
            bytes, signed or unsigned"
                .into(),
        ]);
        let used = self.positions() / self.bits as f64;
        if used < 1.0 {
            info.warnings.push(format!(
                "only {:.0} % of its {} bits can ever be set: the number is not a power of two, \
                and hashes are masked",
                used * 100.0,
                self.bits
            ));
        }
    }
}

/// Decodes the bytes of the bits, the least significant bit first.
///
/// # Errors
///
/// [`DecodeError`] if there are no bytes or more bytes than a hash can address, or if the allocation fails.
///
/// # Examples
///
/// ```
/// let filter = tamis_formats::c_hashcode::decode(&[0; 15])?;
/// assert_eq!(filter.rule().bits(), 120);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    bare_bits::decode(bytes, MAX_BYTES, |len| (len > 0).then_some(MaskedSeven { bits: len * 8 }))
}
