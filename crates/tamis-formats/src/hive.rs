//! Hive's `BloomKFilter`, as its `serialize` writes it. Drawn in `docs/formats/hive.md`.

use std::fmt;
use std::io;

use crate::contents::Contents;
use crate::decode_options::DecodeOptions;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::foreign_bloom::ForeignBloom;
use crate::format::{Format, ItemDomain, Items, Sniff};
use crate::guava::{Probes, plan_bits, plan_probes, write_words};
use crate::hash::orc::murmur3_64;
use crate::modulus::Modulus;
use crate::reader::Reader;
use crate::rule::{ProbeRule, Rule, fill};

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "hive",
    extensions: &["hive"],
    summary: "Hive's BloomKFilter, by serialize",
    sniff: Some(sniff),
    items: Items::Unspecified,
    item_domain: ItemDomain::BigEndian,
    required: &[],
    read_uses: &[],
    write_uses: &[],
    versions: None,
    decode: |bytes, _| decode(bytes).map(Contents::Flat),
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        create(items, rate).map(Contents::Flat)
    },
};

/// Words of a block: all probes of an item lie in one.
const BLOCK_WORDS: u32 = 8;

/// The rule of Hive: a block by the sum of both halves of a hash, then words and bits in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hive {
    blocks: Modulus,
    probes: u32,
}

impl ProbeRule for Hive {
    type Hash<'k> = u64;

    fn bits(&self) -> u64 {
        self.blocks.bits() * u64::from(BLOCK_WORDS) * 64
    }

    fn probes(&self) -> u32 {
        self.probes
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

    /// Takes the mean over all blocks, which fill unevenly.
    fn estimate_rate(&self, words: &[u64]) -> f64 {
        let block_bits = u64::from(BLOCK_WORDS) * 64;
        let blocks = words.chunks(BLOCK_WORDS as usize);
        let rates = blocks.map(|block| fill(block, block_bits).powf(f64::from(self.probes)));
        rates.sum::<f64>() / self.blocks.bits() as f64
    }
}

impl fmt::Display for Hive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("murmur3 64 of Hive, blocks of 512 bits")
    }
}

/// Returns the rule of `words` words, which are a block at least.
fn rule(words: u32, probes: u32) -> Rule {
    let blocks = Modulus::new(u64::from(words / BLOCK_WORDS)).expect("a block at least");
    Rule::Hive(Hive { blocks, probes })
}

/// Makes an empty filter by the formulas of `new BloomKFilter(items)`, which takes a rate of 0.05 and no other.
///
/// # Errors
///
/// [`EncodeError`] if the rate is not between 0 and 1, there are no items, the filter is larger than Hive's, or the memory is not
/// there.
///
/// # Examples
///
/// ```
/// let filter = tamis_formats::hive::create(200, 0.05)?;
/// assert_eq!((filter.rule().bits(), filter.rule().probes()), (1536, 4));
/// # Ok::<(), tamis_formats::EncodeError>(())
/// ```
pub fn create(items: u64, rate: f64) -> Result<ForeignBloom, EncodeError> {
    let no_place = |why: String| EncodeError::NoPlace(why.into());
    if !(rate > 0.0 && rate < 1.0) || items == 0 {
        return Err(no_place(format!(
            "Hive makes no filter of {items} items at a rate of {rate}: plan one item at least, and a rate between 0 and 1"
        )));
    }
    let bits = plan_bits(items, rate).0;
    let probes = plan_probes(items, bits, rate, Probes::Until33);
    if bits > i32::MAX as u64 || probes > u64::from(MAX_PROBES) {
        return Err(no_place(format!(
            "Hive has at most 2,147,483,647 bits and {MAX_PROBES} probes, not {bits} and {probes}: plan fewer items or a higher rate"
        )));
    }
    let words = bits.div_ceil(64) as u32;
    // A whole number of blocks gains another block, as in Hive.
    let words = words + BLOCK_WORDS - words % BLOCK_WORDS;
    ForeignBloom::new(rule(words, probes as u32))
        .map_err(|error| no_place(format!("{error}: plan fewer items")))
}

/// The number of probes is a `byte` of Java.
const MAX_PROBES: u32 = i8::MAX as u32;

/// Reads what `serialize` wrote, and nothing behind it.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are one filter of whole blocks.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = Reader::new(bytes);
    let probes = u32::from(reader.u8("number of probes")?);
    if !(1..=MAX_PROBES).contains(&probes) {
        let kind = DecodeErrorKind::Unexpected { expected: "1 to 127", found: probes.into() };
        return Err(DecodeError { field: "number of probes", at: 0, kind });
    }
    let at = reader.at() as u64;
    let words = reader.count_be("number of words", BLOCK_WORDS, "8 or more")?;
    if !words.is_multiple_of(BLOCK_WORDS) {
        let kind = DecodeErrorKind::Unexpected { expected: "a multiple of 8", found: words.into() };
        return Err(DecodeError { field: "number of words", at, kind });
    }
    let at = reader.at() as u64;
    // The length is tested before there is memory for the words.
    let data = reader.bytes("words", words as usize * 8)?;
    reader.end("words")?;
    let rule = rule(words, probes);
    let words = data.as_chunks().0.iter().map(|&word| u64::from_be_bytes(word));
    ForeignBloom::from_words(rule, words).map_err(|memory| DecodeError {
        field: "words",
        at,
        kind: DecodeErrorKind::Memory(memory),
    })
}

fn sniff(bytes: &[u8]) -> Sniff {
    let Some((&[probes, a, b, c, d], data)) = bytes.split_first_chunk() else { return Sniff::No };
    let words = u32::from_be_bytes([a, b, c, d]);
    let is_whole = (1..=MAX_PROBES).contains(&probes.into())
        && words > 0
        && words.is_multiple_of(BLOCK_WORDS)
        && u64::from(words) * 8 == data.len() as u64;
    if is_whole { Sniff::Maybe } else { Sniff::No }
}

fn encode(
    contents: &Contents,
    _: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let why = match contents {
        Contents::Flat(filter) => match filter.rule() {
            Rule::Hive(rule) => {
                out.write_all(&[rule.probes as u8])?;
                out.write_all(&(filter.words().len() as u32).to_be_bytes())?;
                return write_words(filter.words(), out, u64::to_be_bytes);
            }
            other => format!(
                "Hive places items in blocks by its own murmur3, not by {other}; build one from the items"
            ),
        },
        _ => "Hive has no place for such a filter: build one from the items".into(),
    };
    Err(EncodeError::NoPlace(why.into()))
}
