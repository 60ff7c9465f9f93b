//! Python's `rbloom` in the format of `Bloom.save`. Layout: `docs/formats/rbloom.md`.

use std::io::Write;

use tamis::Modulus;

use crate::encoding::ByteReader;
use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, ItemDomain, Items};
use crate::items::Funnel;
use crate::rules::{ProbeRule, Rule};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "rbloom",
    extensions: &["rbloom"],
    summary: "Bloom of Python's rbloom, by save; items are 128-bit hashes",
    // The header is only a small number, and files of many other formats start with a small number.
    detection: Detection::ByName,
    items: Items::Default(Funnel::Hash128),
    item_domain: ItemDomain::Hashes,
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| options.create(create),
    ..Format::BASE
};

/// The rule of `rbloom`. The user's hash of an item is the initial state of a random number generator. The random
/// number generator returns the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    bits: Modulus,
    probes: u32,
}

impl Generator {
    fn new(bits: u64, probes: u32) -> Option<Self> {
        Some(Self { bits: Modulus::new(bits)?, probes })
    }
}

impl ProbeRule for Generator {
    type Hash<'k> = u128;

    const ITEM_BYTES: Option<usize> = Some(size_of::<u128>());

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        "the user's 128-bit hash, a linear congruential generator".into()
    }

    fn hash(&self, key: &[u8]) -> u128 {
        // All keys of `Funnel::Hash128` have 16 bytes.
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(key).for_each(|(to, &byte)| *to = byte);
        u128::from_le_bytes(bytes)
    }

    #[inline]
    fn each_probe(&self, mut state: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        const FACTOR: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;
        let bits = self.bits;
        (0..self.probes).map(move |_| {
            state = state.wrapping_mul(FACTOR).wrapping_add(1);
            bits.reduce((state >> 32) as u64)
        })
    }
}

/// Creates an empty filter of the textbook size, in whole bytes.
///
/// # Errors
///
/// [`CreateError`] if the rate is not above 0 and below 1, or if the allocation fails.
///
/// # Examples
///
/// ```
/// let seen = tamis_formats::rbloom::create(100, 0.001)?;
/// assert_eq!((seen.rule().bits(), seen.rule().probes()), (1_440, 9));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(items: u64, rate: f64) -> Result<ForeignBloom, CreateError> {
    CreateError::check_plan("rbloom", items, rate)?;
    let (n, p, ln_2) = (items as f64, rate, std::f64::consts::LN_2);
    let bits = -n * p.ln() / (ln_2 * ln_2);
    let probes = (bits / n * ln_2) as u32;
    let too_large =
        || CreateError::refused(format!("{bits:.0} bits do not fit in memory: plan fewer items"));
    let bits = (bits as u64).checked_next_multiple_of(8).unwrap_or(u64::MAX).max(8);
    let rule = Generator::new(bits, probes.max(1)).ok_or_else(too_large)?;
    ForeignBloom::new(Rule::new(rule)).map_err(|_| too_large())
}

/// Decodes the output of `save`.
///
/// # Errors
///
/// [`DecodeError`] if the number of probes or the bits are missing.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let found = reader.u64("number of probes")?;
    let Some(probes) = u32::try_from(found).ok().filter(|it| (1..=MAX_PROBES).contains(it)) else {
        return Err(DecodeError::unexpected("number of probes", 0, "1 to 1,100", found));
    };
    let at = reader.at();
    let (_, bits) = bytes.split_at(at);
    let Some(rule) = Generator::new(bits.len() as u64 * 8, probes) else {
        let (expected, found) = (at as u64 + 1, at as u64);
        return Err(reader.error("bits", DecodeErrorKind::Truncated { expected, found }));
    };
    ForeignBloom::from_bytes(Rule::new(rule), bits)
        .map_err(|memory| reader.error("bits", DecodeErrorKind::Memory(memory)))
}

/// The largest accepted number of probes. The smallest rate of an `f64`, 5e-324, needs 1,074 probes.
const MAX_PROBES: u32 = 1_100;

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let (filter, rule) = ForeignBloom::with_rule::<Generator>(contents, "rbloom")?;
    out.write_all(&u64::from(rule.probes).to_le_bytes())?;
    Ok(filter.write_bytes(out)?)
}
