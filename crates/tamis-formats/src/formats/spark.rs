//! Spark's `BloomFilter` in both versions of the format of `writeTo`. Layout: `docs/formats/spark.md`.

use std::io;

use tamis::Modulus;

use crate::encoding::{ByteReader, write_words};
use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Sniff, Versions};
use crate::rules::guava_sizing::{GuavaRelease, plan_bits, plan_probes};
use crate::rules::hash::murmur3::spark_32;
use crate::rules::{ProbeRule, Progression, Rule, Sums};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "spark",
    extensions: &["spark"],
    summary: "Spark's BloomFilter, by writeTo: versions 1 and 2",
    detection: Detection::ByBytes(sniff),
    versions: Some(Versions { expected: VERSIONS, are_plans: false }),
    decode: |bytes, options| decode_version(bytes, options).map(Contents::new),
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        let version = version_option(options)?;
        let filter = create(items, rate, version)?;
        check_reach(&filter, items, rate, version).map(|()| Contents::new(filter))
    },
    ..Format::BASE
};

/// The values of [`DecodeOptions::version`].
const VERSIONS: &str =
    "1 (every Spark reads it, and up to 4.0 nothing else) or 2 (Spark 4.1 and later)";

/// Returns the version in the options.
fn version_option(options: &DecodeOptions) -> Result<Version, CreateError> {
    match options.version.as_deref() {
        Some("1") => Ok(Version::V1),
        Some("2") => Ok(Version::V2 { seed: 0 }),
        None => Ok(Version::default()),
        Some(version) => Err(CreateError::refused(format!(
            "\"{version}\" is not a version of Spark's filters: expected {VERSIONS}"
        ))),
    }
}

/// Spark's two probe rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// The probes are sums of 32 bits, without a seed. Every Spark release reads version 1. Spark releases up to 4.0
    /// read only version 1.
    #[default]
    V1,
    /// The probes are sums of 64 bits. Spark reads and creates version 2 since release 4.1.
    V2 {
        /// The seed of the first hash.
        seed: i32,
    },
}

/// The rules of Spark: double hashing with two 32-bit hashes. The first hash is the seed of the second hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spark {
    bits: Modulus,
    probes: u32,
    version: Version,
}

impl ProbeRule for Spark {
    type Hash<'k> = (i32, i32);

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        match self.version {
            Version::V1 => "murmur3 x86 32 of Spark, version 1".into(),
            Version::V2 { seed } => {
                format!("murmur3 x86 32 of Spark, version 2, seed {seed}")
            }
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> (i32, i32) {
        let seed = match self.version {
            Version::V1 => 0,
            Version::V2 { seed } => seed.cast_unsigned(),
        };
        let h1 = spark_32(key, seed);
        (h1.cast_signed(), spark_32(key, h1).cast_signed())
    }

    #[inline]
    fn each_probe(&self, (h1, h2): Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let (bits, is_wide) = (self.bits, matches!(self.version, Version::V2 { .. }));
        let mut c = if is_wide { i64::from(h1) * i64::from(i32::MAX) } else { h1.into() };
        (0..self.probes).map(move |_| {
            c = if is_wide {
                c.wrapping_add(h2.into())
            } else {
                (c as i32).wrapping_add(h2).into()
            };
            bits.reduce((if c < 0 { !c } else { c }).cast_unsigned())
        })
    }

    fn progression(&self) -> Option<Progression> {
        let sums = match self.version {
            Version::V1 => Sums::Flipped(32),
            // The sums have 63 bits, so overflows are rare. The sums of one item seldom change their sign, so the flip
            // of negative sums seldom separates the probes of an item.
            Version::V2 { .. } => Sums::Exact,
        };
        Some(Progression { bits: self.bits, probes: self.probes, sums })
    }
}

/// The number of bits that version 1 can address, because a sum is a positive number of 32 bits.
const REACHED_V1: u64 = 1 << 31;

/// Rejects a filter of version 1 with more bits than its probes can address.
fn check_reach(
    filter: &ForeignBloom,
    items: u64,
    rate: f64,
    version: Version,
) -> Result<(), CreateError> {
    let (bits, probes) = (filter.rule().bits(), f64::from(filter.rule().probes()));
    if version != Version::V1 || bits <= REACHED_V1 {
        return Ok(());
    }
    let fill = -(-probes * items as f64 / REACHED_V1 as f64).exp_m1();
    Err(CreateError::refused(format!(
        "version 1 of Spark's filters reaches only {REACHED_V1} of the {bits} bits for {items} items: \
        its rate would be {:.2e}, not {rate}; version 2, which Spark 4.1 and later read, keeps it",
        fill.powf(probes)
    )))
}

/// Creates an empty filter as `BloomFilter.create(items, rate)` does.
///
/// # Errors
///
/// [`CreateError`] if Spark refuses the plan.
///
/// # Examples
///
/// ```
/// use tamis_formats::spark::{Version, create};
///
/// let mut users = create(1_000_000, 0.01, Version::default())?;
/// assert_eq!((users.rule().bits(), users.rule().probes()), (9_585_088, 7));
/// assert!(users.insert(b"user:1") && users.contains(b"user:1"));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(items: u64, rate: f64, version: Version) -> Result<ForeignBloom, CreateError> {
    CreateError::check_plan("Spark", items, rate)?;
    create_with_bits(items, plan_bits(items, rate).0, version)
}

/// Creates an empty filter as `BloomFilter.create(items, bits)` does. Spark chooses the probes
/// first, and then rounds the bits up to whole words.
///
/// # Errors
///
/// [`CreateError`] if Spark refuses the plan.
pub fn create_with_bits(
    items: u64,
    bits: u64,
    version: Version,
) -> Result<ForeignBloom, CreateError> {
    if items == 0 || bits == 0 {
        return Err(CreateError::refused(
            "Spark makes no filter of 0 items or 0 bits: plan more items or a lower rate",
        ));
    }
    let too_large = || {
        CreateError::refused(format!(
            "Spark has at most 137,438,953,408 bits, not {bits}: plan fewer items or a higher rate"
        ))
    };
    // The number of probes does not depend on the rate here, so the call passes any valid rate.
    let probes = i32::try_from(plan_probes(items, bits, 0.5, GuavaRelease::Until33));
    let (words, Ok(probes)) = (bits.div_ceil(64), probes) else { return Err(too_large()) };
    if words > i32::MAX as u64 {
        return Err(too_large());
    }
    ForeignBloom::new(rule(words, probes.cast_unsigned(), version)).map_err(CreateError::Memory)
}

/// The largest accepted number of probes. Real plans have fewer probes than this limit. A hostile file with more probes
/// than this limit would only waste time.
const MAX_PROBES: u32 = 65_535;

fn rule(words: u64, probes: u32, version: Version) -> Rule {
    let bits = Modulus::new(words * 64).expect("at least one word");
    Rule::new(Spark { bits, probes, version })
}

/// Decodes the output of `writeTo`. Rejects trailing bytes.
///
/// # Errors
///
/// [`DecodeError`] if Spark's `readFrom` would fail, if the filter has no words, or if bytes follow the filter.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let version = reader.i32_be("version")?;
    if version != 1 && version != 2 {
        return Err(DecodeError::unexpected("version", 0, "1 or 2", version));
    }
    let probes = reader.count_be("number of probes", 0..=MAX_PROBES, "0 to 65,535")?;
    let version = match version {
        1 => Version::V1,
        _ => Version::V2 { seed: reader.i32_be("seed")? },
    };
    // Spark can read a filter without words, but a lookup in a filter without words divides by 0.
    let words = reader.count_be("number of words", 1.., "1 or more")?;
    let filter = ForeignBloom::read_words(
        rule(words.into(), probes, version),
        &mut reader,
        u64::from_be_bytes,
    )?;
    reader.end("words")?;
    Ok(filter)
}

fn sniff(bytes: &[u8]) -> Sniff {
    let number = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        u32::try_from(i32::from_be_bytes(*bytes)).ok()
    };
    let words = match number(0) {
        Some(1) => number(8).map(|words| (12, words)),
        Some(2) => number(12).map(|words| (16, words)),
        _ => None,
    };
    let is_whole = words.is_some_and(|(at, words)| {
        words > 0 && number(4).is_some() && at + u64::from(words) * 8 == bytes.len() as u64
    });
    Sniff::maybe(is_whole)
}

/// Decodes a filter and checks that the filter has the version in the options.
fn decode_version(bytes: &[u8], options: &DecodeOptions) -> Result<ForeignBloom, DecodeError> {
    let filter = decode(bytes)?;
    let is_first = bytes.starts_with(&1_u32.to_be_bytes());
    let expected = match (options.version.as_deref(), is_first) {
        (None, _) | (Some("1"), true) | (Some("2"), false) => return Ok(filter),
        (Some("2"), true) => "1, as in the file",
        (Some("1"), false) => "2, as in the file",
        _ => VERSIONS,
    };
    Err(DecodeError { field: "version", at: 0, kind: DecodeErrorKind::WrongOption { expected } })
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let (filter, rule) = ForeignBloom::with_rule::<Spark>(contents, "Spark")?;
    let wanted = version_option(options)?;
    let is_first = |version| version == Version::V1;
    if options.version.is_some() && is_first(rule.version) != is_first(wanted) {
        return Err(EncodeError::needs_items("its bits are those of Spark's other version"));
    }
    let mut header = Vec::new();
    let words = u32::try_from(filter.words().len()).expect("the rule has at most 2³¹ − 1 words");
    match rule.version {
        Version::V1 => header.extend([1, rule.probes]),
        Version::V2 { seed } => header.extend([2, rule.probes, seed.cast_unsigned()]),
    }
    header.push(words);
    let header: Vec<u8> = header.into_iter().flat_map(u32::to_be_bytes).collect();
    out.write_all(&header)?;
    Ok(write_words(filter.words(), out, u64::to_be_bytes)?)
}
