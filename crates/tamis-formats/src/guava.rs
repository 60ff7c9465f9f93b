//! Guava's `BloomFilter`, as its `writeTo` writes it. Drawn in `docs/formats/guava.md`.

use std::borrow::Cow;
use std::fmt;
use std::io;

use tamis::OutOfMemory;

use crate::contents::Contents;
use crate::decode_options::DecodeOptions;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::foreign_bloom::ForeignBloom;
use crate::format::{Format, ItemDomain, Items, Sniff, Versions};
use crate::guava_rules::{Mitz32, Mitz64};
use crate::reader::Reader;
use crate::rule::Rule;

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "guava",
    extensions: &["guava"],
    summary: "Guava's BloomFilter, by writeTo",
    sniff: Some(sniff),
    items: Items::Unspecified,
    item_domain: ItemDomain::Bytes,
    required: &[],
    read_uses: &[],
    write_uses: &[],
    versions: Some(Versions { expected: VERSIONS, are_plans: true }),
    decode: |bytes, _| decode(bytes).map(Contents::Flat),
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        let created = create(items, rate, Strategy::default(), probes_option(options)?);
        created.map(Contents::Flat).map_err(|error| EncodeError::NoPlace(error.to_string().into()))
    },
};

/// Which releases may be told for new filters: files are alike.
const VERSIONS: &str = "14, 31 (before 33.4) or 33";

// Each offset from the one before.
const STRATEGY_AT: usize = 0;
const PROBES_AT: usize = STRATEGY_AT + size_of::<u8>();
const WORDS_AT: usize = PROBES_AT + size_of::<u8>();
const DATA_AT: usize = WORDS_AT + size_of::<u32>();

/// Which of its two rules a filter of Guava has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, until Guava 16.
    Mitz32 = 0,
    /// `MURMUR128_MITZ_64`, since Guava 17.
    #[default]
    Mitz64 = 1,
}

/// How a release of Guava chooses the number of probes. A file says how many there are, so only new filters depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Probes {
    /// From whole bits an item: 14.
    Until14,
    /// From bits an item: 31.1 and others of its time.
    Until33,
    /// From the rate alone: 33.4.6 and later.
    #[default]
    Since33,
}

fn probes_option(options: &DecodeOptions) -> Result<Probes, EncodeError> {
    match options.version.as_deref() {
        None => Ok(Probes::default()),
        Some("14") => Ok(Probes::Until14),
        Some("31") => Ok(Probes::Until33),
        Some("33") => Ok(Probes::Since33),
        Some(version) => {
            let why = format!(
                "\"{version}\" is no release of Guava whose number of probes is known: expected {VERSIONS}"
            );
            Err(EncodeError::NoPlace(why.into()))
        }
    }
}

/// Why Guava does not make a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// The rate is not between 0 and 1.
    Rate {
        /// What was asked for.
        rate: f64,
    },
    /// So few items at so high a rate need no bits.
    NoBits,
    /// So low a rate needs more than 255 probes.
    Probes {
        /// How many it needs.
        probes: u64,
    },
    /// More than 2³¹ − 1 words.
    TooLarge {
        /// How many bits it needs.
        bits: u64,
    },
    /// The memory is not there.
    Memory(OutOfMemory),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::Rate { rate } => {
                write!(f, "Guava takes rates between 0 and 1, not {rate}")
            }
            CreateError::NoBits => {
                f.write_str("Guava makes no filter of 0 bits: plan more items or a lower rate")
            }
            CreateError::Probes { probes } => {
                write!(f, "Guava has at most 255 probes an item, not {probes}: plan a higher rate")
            }
            CreateError::TooLarge { bits } => write!(
                f,
                "Guava has at most 137,438,953,408 bits, not {bits}: plan fewer items or a higher rate"
            ),
            CreateError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CreateError {}

/// Returns how many bits Guava plans: `(bits, words)`, where the bits are those of the formula and the words those it has.
///
/// Zero `items` are one.
#[must_use]
pub fn plan_bits(items: u64, rate: f64) -> (u64, u64) {
    let (n, p, ln_2) = (items.max(1) as f64, rate, std::f64::consts::LN_2);
    // As in Java: in this order, and cut off at the largest `long`.
    let bits = ((-n * p.ln() / (ln_2 * ln_2)) as i64).cast_unsigned();
    (bits, bits.div_ceil(64))
}

/// Returns how many probes a release of Guava chooses for a filter of so many bits by the formula.
#[must_use]
pub fn plan_probes(items: u64, bits: u64, rate: f64, probes: Probes) -> u64 {
    let (n, ln_2) = (items.max(1), std::f64::consts::LN_2);
    let k = match probes {
        Probes::Until14 => (bits / n) as f64 * ln_2,
        Probes::Until33 => bits as f64 / n as f64 * ln_2,
        Probes::Since33 => -rate.ln() / ln_2,
    };
    // Half up, as Java rounds.
    ((k + 0.5).floor() as u64).max(1)
}

/// Makes an empty filter as `BloomFilter.create` does.
///
/// # Errors
///
/// [`CreateError`] where Guava refuses.
///
/// # Examples
///
/// ```
/// use tamis_formats::guava::{Probes, Strategy, create};
///
/// let users = create(1_500, 0.01, Strategy::Mitz64, Probes::Since33)?;
/// assert_eq!((users.rule().bits(), users.rule().probes()), (14_400, 7));
/// # Ok::<(), tamis_formats::guava::CreateError>(())
/// ```
pub fn create(
    items: u64,
    rate: f64,
    strategy: Strategy,
    probes: Probes,
) -> Result<ForeignBloom, CreateError> {
    ForeignBloom::new(plan(items, rate, strategy, probes)?).map_err(CreateError::Memory)
}

/// Plans a filter, without its memory.
pub(crate) fn plan(
    items: u64,
    rate: f64,
    strategy: Strategy,
    probes: Probes,
) -> Result<Rule, CreateError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(CreateError::Rate { rate });
    }
    let (bits, words) = plan_bits(items, rate);
    let probes = plan_probes(items, bits, rate, probes);
    if words > i32::MAX as u64 {
        return Err(CreateError::TooLarge { bits });
    }
    let probes = u8::try_from(probes).map_err(|_| CreateError::Probes { probes })?;
    rule(strategy, words * 64, probes).ok_or(CreateError::NoBits)
}

fn rule(strategy: Strategy, bits: u64, probes: u8) -> Option<Rule> {
    let probes = probes.into();
    Some(match strategy {
        Strategy::Mitz32 => Rule::Mitz32(Mitz32::new(bits, probes)?),
        Strategy::Mitz64 => Rule::Mitz64(Mitz64::new(bits, probes)?),
    })
}

/// Reads what `writeTo` wrote, and nothing behind it.
///
/// # Errors
///
/// [`DecodeError`] where `readFrom` fails, and if bytes are left.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = Reader::new(bytes);
    let filter = read(&mut reader)?;
    reader.end("words")?;
    Ok(filter)
}

/// Reads what `writeTo` wrote; returns it with the bytes that follow, which `readFrom` leaves unread.
///
/// # Errors
///
/// [`DecodeError`] where `readFrom` fails.
pub fn decode_start(bytes: &[u8]) -> Result<(ForeignBloom, &[u8]), DecodeError> {
    let mut reader = Reader::new(bytes);
    let filter = read(&mut reader)?;
    Ok((filter, reader.rest()))
}

fn read(reader: &mut Reader<'_>) -> Result<ForeignBloom, DecodeError> {
    if is_java_serialized(reader.rest()) {
        let kind = DecodeErrorKind::Damaged {
            reason: "this is Java's serialised form of an object, not what writeTo writes: read it in Java, and \
                     write it with BloomFilter.writeTo",
        };
        return Err(DecodeError { field: "strategy", at: 0, kind });
    }
    let strategy = match reader.u8("strategy")? {
        0 => Strategy::Mitz32,
        1 => Strategy::Mitz64,
        found => {
            let found = found.cast_signed().into();
            let kind =
                DecodeErrorKind::Unexpected { expected: "0 (MITZ_32) or 1 (MITZ_64)", found };
            return Err(DecodeError { field: "strategy", at: STRATEGY_AT as u64, kind });
        }
    };
    let probes = reader.u8("probes")?;
    let words = i32::from_be_bytes(reader.array("number of words")?);
    let unexpected = |field, at: usize, expected, found| {
        let kind = DecodeErrorKind::Unexpected { expected, found };
        DecodeError { field, at: at as u64, kind }
    };
    if probes == 0 {
        return Err(unexpected("number of probes", PROBES_AT, "1 to 255", 0));
    }
    let rule = u64::try_from(words)
        .ok()
        .and_then(|words| rule(strategy, words * 64, probes))
        .ok_or(unexpected("number of words", WORDS_AT, "1 or more", words.into()))?;
    // The length is tested before there is memory for the words.
    let data = reader.bytes("words", (words as usize).saturating_mul(8))?;
    let words = data.as_chunks().0.iter().map(|&word| u64::from_be_bytes(word));
    ForeignBloom::from_words(rule, words).map_err(|memory| DecodeError {
        field: "words",
        at: DATA_AT as u64,
        kind: DecodeErrorKind::Memory(memory),
    })
}

/// Tells whether bytes start as those of an `ObjectOutputStream` do.
fn is_java_serialized(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xac, 0xed, 0x00, 0x05])
}

fn sniff(bytes: &[u8]) -> Sniff {
    let name = b"com.google.common.hash.BloomFilter";
    if is_java_serialized(bytes) && bytes.windows(name.len()).take(64).any(|it| it == name) {
        return Sniff::Yes;
    }
    let Some((&[strategy, probes, a, b, c, d], data)) = bytes.split_first_chunk() else {
        return Sniff::No;
    };
    let words = u64::from(u32::from_be_bytes([a, b, c, d]));
    let is_whole = strategy <= 1 && probes > 0 && words > 0 && words * 8 == data.len() as u64;
    if is_whole { Sniff::Maybe } else { Sniff::No }
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let no_place = |why: String| Err(EncodeError::NoPlace(why.into()));
    probes_option(options)?;
    let filter = match contents {
        Contents::Flat(filter) => Cow::Borrowed(filter),
        Contents::RedisBitmaps(bitmaps) => bitmaps.to_one(options.union)?,
        _ => {
            return no_place(
                "Guava has no place for such a filter: build one from the items".into(),
            );
        }
    };
    let strategy = match filter.rule() {
        Rule::Mitz32(_) => Strategy::Mitz32,
        Rule::Mitz64(_) => Strategy::Mitz64,
        other => {
            return no_place(format!(
                "Guava places items otherwise: by murmur3 x64 128, not by {other}; build one from the items"
            ));
        }
    };
    let (bits, probes) = (filter.rule().bits(), filter.rule().probes());
    let Ok(words) = i32::try_from(bits / 64) else {
        return no_place(format!("Guava has no place for {bits} bits: 137,438,953,408 at most"));
    };
    if !bits.is_multiple_of(64) {
        return no_place(format!(
            "Guava rounds {bits} bits up to a multiple of 64, and then places items otherwise; build one from the items"
        ));
    }
    let (Ok(probes @ 1..), true) = (u8::try_from(probes), words > 0) else {
        return no_place(format!("Guava has 1 to 255 probes an item, not {probes}"));
    };
    out.write_all(&[strategy as u8, probes])?;
    out.write_all(&words.to_be_bytes())?;
    write_words(filter.words(), out, u64::to_be_bytes)
}

/// Writes words by `to_bytes`, some thousands at a time.
pub(crate) fn write_words(
    words: &[u64],
    out: &mut dyn io::Write,
    to_bytes: impl Fn(u64) -> [u8; 8],
) -> Result<(), EncodeError> {
    let mut bytes = Vec::new();
    for words in words.chunks(8192) {
        bytes.clear();
        bytes.extend(words.iter().map(|&word| to_bytes(word)));
        out.write_all(bytes.as_flattened())?;
    }
    Ok(())
}
