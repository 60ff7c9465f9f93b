//! Hive's `BloomKFilter` in the format of `serialize`. Layout: `docs/formats/hive.md`.

use std::io::Write;

use tamis::Modulus;

use crate::encoding::{ByteReader, write_words};
use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, ItemDomain, Sniff};
use crate::rules::guava_sizing::{GuavaRelease, plan_bits, plan_probes};
use crate::rules::hash::orc::murmur3_64;
use crate::rules::rates::blocks::blocks_rate;
use crate::rules::{
    EstimatedRate, ProbeRule, Progression, Rule, SplitMix, Sums, fill, measure, test_bits,
};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "hive",
    extensions: &["hive"],
    summary: "Hive's BloomKFilter, by serialize",
    detection: Detection::ByBytes(sniff),
    item_domain: ItemDomain::BigEndian,
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| options.create(create),
    ..Format::BASE
};

/// The number of words of a block. All probes of an item are in one block.
const BLOCK_WORDS: u32 = 8;

/// The number of bits of a block.
const BLOCK_BITS: u64 = BLOCK_WORDS as u64 * 64;

/// The rule of Hive. The sum of both halves of a hash selects a block. The sums of the first half and a multiple of the
/// second half select words and bits in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hive {
    blocks: Modulus,
    probes: u32,
}

impl ProbeRule for Hive {
    type Hash<'k> = u64;

    fn sizes(&self) -> (u64, u32) {
        (self.blocks.bits() * BLOCK_BITS, self.probes)
    }

    fn name(&self) -> String {
        "murmur3 64 of Hive, blocks of 512 bits".into()
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        murmur3_64(key)
    }

    #[inline]
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let (h1, h2) = (hash as i32, (hash >> 32) as i32);
        let flipped = |c: i32| (if c < 0 { !c } else { c }).cast_unsigned();
        let first_word =
            self.blocks.reduce(flipped(h1.wrapping_add(h2)).into()) * u64::from(BLOCK_WORDS);
        let mut c = h1.wrapping_add(h2);
        (0..self.probes).map(move |_| {
            c = c.wrapping_add(h2);
            let place = u64::from(flipped(c));
            (first_word + place % u64::from(BLOCK_WORDS)) * 64 + place / u64::from(BLOCK_WORDS) % 64
        })
    }

    /// Measures the rate. In a block, the step has only 512 values, so the items of a block often share several bits.
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let independent = blocks_rate(words, BLOCK_WORDS as usize, self.probes);
        let computed = || {
            let bits = Modulus::new(BLOCK_BITS).expect("512 bits");
            let rule = Progression { bits, probes: self.probes, sums: Sums::Flipped(32) };
            let items_of_block = self.estimate_items(words) / self.blocks.bits() as f64;
            let fill = fill(words, self.sizes().0);
            independent.rate + rule.excess(fill, items_of_block)
        };
        let test = |random: &mut SplitMix| test_bits(words, self.each_probe(random.next()));
        measure(independent.std_error, computed, test)
    }
}

/// Returns the rule of a filter of `words` words. The filter has at least one block.
fn rule(words: u32, probes: u32) -> Rule {
    let blocks = Modulus::new(u64::from(words / BLOCK_WORDS)).expect("there is at least one block");
    Rule::new(Hive { blocks, probes })
}

/// Creates an empty filter with the formulas of `new BloomKFilter(items)`. Hive itself always plans
/// a rate of 0.05.
///
/// # Errors
///
/// [`CreateError`] if the rate is not above 0 and below 1, or if `items` is 0. [`CreateError`] if the filter exceeds
/// Hive's maximum size, or if the allocation fails.
///
/// # Examples
///
/// ```
/// let filter = tamis_formats::hive::create(200, 0.05)?;
/// assert_eq!((filter.rule().bits(), filter.rule().probes()), (1536, 4));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(items: u64, rate: f64) -> Result<ForeignBloom, CreateError> {
    CreateError::check_plan("Hive", items, rate)?;
    let bits = plan_bits(items, rate).0;
    let probes = plan_probes(items, bits, rate, GuavaRelease::Until33);
    if bits > i32::MAX as u64 || probes > u64::from(MAX_PROBES) {
        return Err(CreateError::refused(format!(
            "Hive has at most 2,147,483,647 bits and {MAX_PROBES} probes, not {bits} and {probes}: \
            plan fewer items or a higher rate"
        )));
    }
    let words = bits.div_ceil(64) as u32;
    // As in Hive, one block is added if the number of words is already a whole number of blocks.
    let words = words + BLOCK_WORDS - words % BLOCK_WORDS;
    Ok(ForeignBloom::new(rule(words, probes as u32))?)
}

/// The largest number of probes, because Hive stores the number as a Java `byte`.
const MAX_PROBES: u32 = i8::MAX as u32;

/// Decodes the output of `serialize`. Rejects trailing bytes.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter that consists of whole blocks.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let probes = u32::from(reader.u8("number of probes")?);
    if !(1..=MAX_PROBES).contains(&probes) {
        return Err(DecodeError::unexpected("number of probes", 0, "1 to 127", probes));
    }
    let at = reader.at();
    let words = reader.count_be("number of words", BLOCK_WORDS.., "8 or more")?;
    if !words.is_multiple_of(BLOCK_WORDS) {
        return Err(DecodeError::unexpected("number of words", at, "a multiple of 8", words));
    }
    let filter = ForeignBloom::read_words(rule(words, probes), &mut reader, u64::from_be_bytes)?;
    reader.end("words")?;
    Ok(filter)
}

fn sniff(bytes: &[u8]) -> Sniff {
    let Some((&[probes, a, b, c, d], data)) = bytes.split_first_chunk() else { return Sniff::No };
    let words = u32::from_be_bytes([a, b, c, d]);
    let is_whole = (1..=MAX_PROBES).contains(&probes.into())
        && words > 0
        && words.is_multiple_of(BLOCK_WORDS)
        && u64::from(words) * 8 == data.len() as u64;
    Sniff::maybe(is_whole)
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let (filter, rule) = ForeignBloom::with_rule::<Hive>(contents, "Hive")?;
    out.write_all(&[rule.probes as u8])?;
    out.write_all(&(filter.words().len() as u32).to_be_bytes())?;
    Ok(write_words(filter.words(), out, u64::to_be_bytes)?)
}
