//! Cassandra's `Filter.db`, which is a part of each SSTable. Layout: `docs/formats/cassandra.md`.

use std::io;

use tamis::Modulus;

use crate::encoding::{ByteReader, write_words};
use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Parameter, Parameters, Sniff, Versions};
use crate::rules::hash::murmur3::{Tail, x64_128};
use crate::rules::{ProbeRule, Progression, Rule, Sums};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "cassandra",
    extensions: &["db"],
    summary: "Cassandra's Filter.db; the version in the SSTable's name selects the layout",
    detection: Detection::ByBytes(sniff),
    parameters: Parameters { required: &[Parameter::Version], ..Parameters::NONE },
    versions: Some(Versions { expected: VERSIONS, are_plans: false }),
    decode: |bytes, options| {
        let error = |kind| DecodeError::new(Parameter::Version.name(), 0, kind);
        let version = options.version.as_deref();
        let version = version.ok_or(error(DecodeErrorKind::Missing(Parameter::Version)))?;
        let wrong = error(DecodeErrorKind::WrongOption { expected: VERSIONS });
        decode(bytes, Release::of_version(version).ok_or(wrong)?).map(Contents::new)
    },
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        create(items, rate, release_option(options)?).map(Contents::new)
    },
    ..Format::BASE
};

/// The values of [`DecodeOptions::version`].
const VERSIONS: &str = "the version in the SSTable's name: ia to lb (1.2 to 2.2), ma to me (3.x), \
    na on or da (4.0 and later)";

/// The releases of Cassandra that write the same layout. The file does not store the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// Cassandra 1.2 to 2.2, with the SSTable versions `ia` to `lb`.
    Until22,
    /// Cassandra 3.0 to 3.11, with the SSTable versions `ma` to `me`. Compared with 2.2, the two halves of the hash
    /// have swapped roles in the probes.
    Since30,
    /// Cassandra 4.0 and later, with the SSTable versions `na`, `nb`, `oa` and `da`. The bits are the same as in 3.x,
    /// but each word is stored with its bytes in little-endian order.
    Since40,
}

impl Release {
    /// Returns the releases that write SSTables of a version, such as `nb` in `nb-1-big-Filter.db`. Returns `None` for
    /// an unknown version. A version before 1.2 is unknown, because releases before 1.2 used a different hash.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::cassandra::Release;
    ///
    /// assert_eq!(Release::of_version("me"), Some(Release::Since30));
    /// assert_eq!(Release::of_version("hf"), None);
    /// ```
    #[must_use]
    pub fn of_version(version: &str) -> Option<Release> {
        match version.as_bytes() {
            b"da" => Some(Release::Since40),
            [b'i'..=b'l', b'a'..=b'z'] => Some(Release::Until22),
            [b'm', b'a'..=b'z'] => Some(Release::Since30),
            [b'n' | b'o', b'a'..=b'z'] => Some(Release::Since40),
            _ => None,
        }
    }

    fn order(self) -> HalfOrder {
        match self {
            Release::Until22 => HalfOrder::H1First,
            Release::Since30 | Release::Since40 => HalfOrder::H2First,
        }
    }
}

/// Which half of the hash is the start of the probes, and which half is the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HalfOrder {
    H1First,
    H2First,
}

/// The rules of Cassandra: double hashing with the two halves of a Murmur3 hash. Cassandra's Murmur3 reads the last
/// bytes of an item as signed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cassandra {
    bits: Modulus,
    probes: u32,
    order: HalfOrder,
}

impl ProbeRule for Cassandra {
    type Hash<'k> = (u64, u64);

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        match self.order {
            HalfOrder::H1First => {
                "murmur3 x64 128 with a signed tail, h1 + i·h2 (Cassandra up to 2.2)"
            }
            HalfOrder::H2First => {
                "murmur3 x64 128 with a signed tail, h2 + i·h1 (Cassandra since 3.0)"
            }
        }
        .into()
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> (u64, u64) {
        let (h1, h2) = x64_128(key, 0, Tail::Signed);
        match self.order {
            HalfOrder::H1First => (h1, h2),
            HalfOrder::H2First => (h2, h1),
        }
    }

    #[inline]
    fn each_probe(&self, (mut base, step): Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let bits = self.bits;
        (0..self.probes).map(move |_| {
            // Java's remainder keeps the sign of `base`. The absolute value of the remainder equals the remainder of
            // the absolute value.
            let bit = bits.reduce(base.cast_signed().unsigned_abs());
            base = base.wrapping_add(step);
            bit
        })
    }

    fn progression(&self) -> Option<Progression> {
        Some(Progression { bits: self.bits, probes: self.probes, sums: Sums::Absolute(64) })
    }
}

/// The rates in Cassandra's table. Each row of the table stands for a number of bits per item, starting with 2. Each
/// column of the table stands for a number of probes, starting with 1.
///
/// Source: Fan, Cao, Almeida and Broder, "Summary Cache" (2000), tables of the technical report.
const RATES: [&[f64]; 19] = [
    &[0.393, 0.400],
    &[0.283, 0.237, 0.253],
    &[0.221, 0.155, 0.147, 0.160],
    &[0.181, 0.109, 0.092, 0.092, 0.101],
    &[0.154, 0.0804, 0.0609, 0.0561, 0.0578, 0.0638],
    &[0.133, 0.0618, 0.0423, 0.0359, 0.0347, 0.0364],
    &[0.118, 0.0489, 0.0306, 0.024, 0.0217, 0.0216, 0.0229],
    &[0.105, 0.0397, 0.0228, 0.0166, 0.0141, 0.0133, 0.0135, 0.0145],
    &[0.0952, 0.0329, 0.0174, 0.0118, 0.00943, 0.00844, 0.00819, 0.00846],
    &[0.0869, 0.0276, 0.0136, 0.00864, 0.0065, 0.00552, 0.00513, 0.00509],
    &[0.08, 0.0236, 0.0108, 0.00646, 0.00459, 0.00371, 0.00329, 0.00314],
    &[0.074, 0.0203, 0.00875, 0.00492, 0.00332, 0.00255, 0.00217, 0.00199, 0.00194],
    &[0.0689, 0.0177, 0.00718, 0.00381, 0.00244, 0.00179, 0.00146, 0.00129, 0.00121, 0.0012],
    &[0.0645, 0.0156, 0.00596, 0.003, 0.00183, 0.00128, 0.001, 0.000852, 0.000775, 0.000744],
    &[
        0.0606, 0.0138, 0.005, 0.00239, 0.00139, 0.000935, 0.000702, 0.000574, 0.000505, 0.00047,
        0.000459,
    ],
    &[
        0.0571, 0.0123, 0.00423, 0.00193, 0.00107, 0.000692, 0.000499, 0.000394, 0.000335,
        0.000302, 0.000287, 0.000284,
    ],
    &[
        0.054, 0.0111, 0.00362, 0.00158, 0.000839, 0.000519, 0.00036, 0.000275, 0.000226, 0.000198,
        0.000183, 0.000176,
    ],
    &[
        0.0513, 0.00998, 0.00312, 0.0013, 0.000663, 0.000394, 0.000264, 0.000194, 0.000155,
        0.000132, 0.000118, 0.000111, 0.000109,
    ],
    &[
        0.0488, 0.00906, 0.0027, 0.00108, 0.00053, 0.000303, 0.000196, 0.00014, 0.000112, 8.89e-5,
        7.77e-5, 7.12e-5, 6.79e-5, 6.71e-5,
    ],
];

/// The number of bits per item in the first row of [`RATES`].
const LEAST_BITS: u64 = 2;

/// The number of bits that Cassandra adds to the planned bits of every filter.
const EXCESS_BITS: u64 = 20;

/// Returns the bits per item and the probes that Cassandra plans for a rate (`bloom_filter_fp_chance`). Cassandra
/// chooses the smallest sufficient number of bits in its table, and then the smallest sufficient number of probes.
/// Returns `None` if no entry of the table reaches the rate.
///
/// # Examples
///
/// ```
/// use tamis_formats::cassandra::plan;
///
/// assert_eq!(plan(0.01), Some((10, 5)));
/// assert_eq!(plan(1e-5), None);
/// ```
#[must_use]
pub fn plan(rate: f64) -> Option<(u64, u32)> {
    if !(rate > 0.0 && rate < 1.0) {
        return None;
    }
    RATES.iter().zip(LEAST_BITS..).find_map(|(row, bits)| {
        let (_, probes) = row.iter().zip(1..).find(|(it, _)| **it <= rate)?;
        Some((bits, probes))
    })
}

/// Creates an empty filter as Cassandra does for `items` partitions.
///
/// # Errors
///
/// [`CreateError`] if Cassandra refuses the plan.
///
/// # Examples
///
/// ```
/// use tamis_formats::cassandra::{Release, create};
///
/// let mut partitions = create(1_000, 0.01, Release::Since40)?;
/// assert_eq!((partitions.rule().bits(), partitions.rule().probes()), (10_048, 5));
/// assert!(partitions.insert(b"user:1"));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(items: u64, rate: f64, release: Release) -> Result<ForeignBloom, CreateError> {
    let (bits, probes) = plan(rate).ok_or_else(|| {
        CreateError::refused(format!(
            "Cassandra's table has rates from 6.71e-5 to below 1, not {rate}, for any number of \
            items"
        ))
    })?;
    let bits = items.checked_mul(bits).and_then(|bits| bits.checked_add(EXCESS_BITS));
    let words = bits.map(|bits| bits.div_ceil(64)).filter(|&words| words <= i32::MAX as u64);
    let words = words.ok_or_else(|| {
        CreateError::refused(format!(
            "{items} items need more than the 16 GiB that Cassandra has at most: plan fewer, or a \
            higher rate"
        ))
    })?;
    ForeignBloom::new(rule(words, probes, release)).map_err(CreateError::Memory)
}

/// The largest accepted number of probes. Real plans have fewer probes than this limit. A hostile file with more probes
/// than this limit would only waste time.
const MAX_PROBES: u32 = 65_535;

fn rule(words: u64, probes: u32, release: Release) -> Rule {
    let bits = Modulus::new(words * 64).expect("at least one word");
    Rule::new(Cassandra { bits, probes, order: release.order() })
}

/// Decodes a whole `Filter.db`.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter.
pub fn decode(bytes: &[u8], release: Release) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let probes = reader.count_be("number of probes", 1..=MAX_PROBES, "1 to 65,535")?;
    let words = reader.count_be("number of words", 1.., "1 or more")?;
    let from_bytes = match release {
        Release::Until22 | Release::Since30 => u64::from_be_bytes,
        Release::Since40 => u64::from_le_bytes,
    };
    let rule = rule(words.into(), probes, release);
    let filter = ForeignBloom::read_words(rule, &mut reader, from_bytes)?;
    reader.end("words")?;
    Ok(filter)
}

fn sniff(bytes: &[u8]) -> Sniff {
    let Some((&[a, b, c, d, e, f, g, h], data)) = bytes.split_first_chunk() else {
        return Sniff::No;
    };
    let (probes, words) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
    // No row of Cassandra's table has more than 20 probes.
    let is_whole =
        (1..=20).contains(&probes) && words > 0 && u64::from(words) * 8 == data.len() as u64;
    Sniff::maybe(is_whole)
}

/// Returns the range of Cassandra releases that write the version in the options.
fn release_option(options: &DecodeOptions) -> Result<Release, CreateError> {
    let version = options.version.as_deref();
    let version = version.ok_or(CreateError::Missing(Parameter::Version))?;
    Release::of_version(version).ok_or_else(|| {
        CreateError::refused(format!(
            "\"{version}\" is not a version of an SSTable with a known filter: expected {VERSIONS}"
        ))
    })
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let release = release_option(options)?;
    let (filter, rule) = ForeignBloom::with_rule::<Cassandra>(contents, "Cassandra")?;
    if rule.order != release.order() {
        return Err(EncodeError::needs_items(
            "Cassandra up to 2.2 adds the halves of the hash in the other order than since 3.0, so \
            other bits are set",
        ));
    }
    out.write_all(&rule.probes.to_be_bytes())?;
    let words = u32::try_from(filter.words().len()).expect("the rule has at most 2³¹ − 1 words");
    out.write_all(&words.to_be_bytes())?;
    let to_bytes = match release {
        Release::Until22 | Release::Since30 => u64::to_be_bytes,
        Release::Since40 => u64::to_le_bytes,
    };
    Ok(write_words(filter.words(), out, to_bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_formula() {
        for (row, bits) in RATES.iter().zip(LEAST_BITS..) {
            for (rate, probes) in row.iter().zip(1..) {
                let k = f64::from(probes);
                let formula = (1.0 - (-k / bits as f64).exp()).powf(k);
                assert!((rate / formula - 1.0).abs() < 0.05, "{bits} {probes}: {rate} {formula}");
            }
        }
    }

    #[test]
    fn the_plan_takes_the_fewest_bits_then_the_fewest_probes() {
        for (rate, expected) in [
            (0.5, Some((2, 1))),
            (0.393, Some((2, 1))),
            (0.1, Some((5, 3))),
            (0.092, Some((5, 3))),
            (0.01, Some((10, 5))),
            (0.001, Some((15, 7))),
            (6.71e-5, Some((20, 14))),
            (6.7e-5, None),
            (1.0, None),
            (0.0, None),
            (f64::NAN, None),
        ] {
            assert_eq!(plan(rate), expected, "{rate}");
        }
    }
}
