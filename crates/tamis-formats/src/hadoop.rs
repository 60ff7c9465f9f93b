//! Hadoop's `util.bloom.BloomFilter` and `CountingBloomFilter`, as their `write` writes them. Drawn in
//! `docs/formats/hadoop.md` and `docs/formats/hadoop-counting.md`.

mod counting;
mod dynamic;

use std::fmt;
use std::io;

pub use counting::CountingFilter;
pub(crate) use counting::FORMAT as COUNTING_FORMAT;
pub use dynamic::DynamicFilter;
pub(crate) use dynamic::FORMAT as DYNAMIC_FORMAT;

use crate::contents::Contents;
use crate::decode_options::DecodeOptions;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::foreign_bloom::ForeignBloom;
use crate::format::{Format, ItemDomain, Items, Sniff};
use crate::hash::jenkins::lookup3;
use crate::hash::murmur2::hadoop_32;
use crate::reader::Reader;
use crate::rule::{ProbeRule, Rule};

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "hadoop",
    extensions: &[],
    summary: "Hadoop's util.bloom.BloomFilter, by write",
    sniff: Some(|bytes| sniff(bytes, |header| header.vector_size.div_ceil(8).into())),
    items: Items::Unspecified,
    item_domain: ItemDomain::Bytes,
    required: &[],
    read_uses: &[],
    write_uses: &[],
    versions: None,
    decode: |bytes, _| decode(bytes).map(Contents::Flat),
    encode,
    create: |options| {
        let (bits, probes) = plan(options)?;
        let created = create(bits, probes, HashType::Murmur).map(Contents::Flat);
        created.map_err(|error| EncodeError::NoPlace(error.to_string().into()))
    },
};

/// Plans bits and probes by the textbook: in Hadoop the caller chooses them.
fn plan(options: &DecodeOptions) -> Result<(u32, u32), EncodeError> {
    let (items, rate) = options.plan()?;
    if !(rate > 0.0 && rate < 1.0) || items == 0 {
        let why = format!(
            "a filter of {items} items at a rate of {rate} cannot be planned: plan one item at least, and a rate between 0 and 1"
        );
        return Err(EncodeError::NoPlace(why.into()));
    }
    let (n, ln_2) = (items as f64, std::f64::consts::LN_2);
    let bits = (-n * rate.ln() / (ln_2 * ln_2)).ceil();
    if bits > f64::from(i32::MAX) {
        let why = format!(
            "Hadoop has at most 2,147,483,647 bits, not {bits}: plan fewer items or a higher rate"
        );
        return Err(EncodeError::NoPlace(why.into()));
    }
    let probes = (bits / n * ln_2).round().clamp(1.0, f64::from(MAX_PROBES));
    Ok((bits.max(1.0) as u32, probes as u32))
}

/// Which hash a filter of Hadoop has, by its number in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HashType {
    /// `Hash.JENKINS_HASH`: lookup3.
    Jenkins = 0,
    /// `Hash.MURMUR_HASH`: Murmur2, whose last bytes are read with their sign.
    Murmur = 1,
}

/// The most probes that are read here: no plan has as many, and a file that says so would only take time.
pub const MAX_PROBES: u32 = 255;

/// The rule of Hadoop: each hash of an item is the seed of its next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hadoop {
    /// Invariant: 1 to 2³¹ − 1.
    vector_size: u32,
    /// Invariant: 1 to [`MAX_PROBES`].
    probes: u32,
    hash_type: HashType,
}

impl Hadoop {
    /// Returns the places of an item, in order. They may repeat.
    fn chain(self, key: &[u8]) -> impl Iterator<Item = u32> {
        let mut hash = 0;
        (0..self.probes).map(move |_| {
            hash = match self.hash_type {
                HashType::Jenkins => lookup3(key, hash),
                HashType::Murmur => hadoop_32(key, hash),
            };
            // Java's remainder has the sign of the hash: without it, it is the remainder of the hash without it.
            hash.cast_signed().unsigned_abs() % self.vector_size
        })
    }
}

impl ProbeRule for Hadoop {
    // The chain needs the item.
    type Hash<'k> = &'k [u8];

    fn bits(&self) -> u64 {
        self.vector_size.into()
    }

    fn probes(&self) -> u32 {
        self.probes
    }

    fn hash<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key
    }

    fn each_probe(&self, key: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        self.chain(key).map(u64::from)
    }
}

impl fmt::Display for Hadoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.hash_type {
            HashType::Jenkins => "chained jenkins lookup3 of Hadoop",
            HashType::Murmur => "chained murmur2 of Hadoop",
        })
    }
}

/// Why a filter of Hadoop cannot be made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// Not 1 to 2³¹ − 1 bits.
    VectorSize {
        /// What was asked for.
        bits: u32,
    },
    /// Not 1 to [`MAX_PROBES`] probes.
    Probes {
        /// What was asked for.
        probes: u32,
    },
    /// The memory is not there.
    Memory(tamis::OutOfMemory),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::VectorSize { bits } => {
                write!(f, "Hadoop has 1 to 2,147,483,647 bits, not {bits}")
            }
            CreateError::Probes { probes } => {
                write!(f, "1 to {MAX_PROBES} probes are supported, not {probes}")
            }
            CreateError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CreateError {}

/// Makes an empty filter, as `new BloomFilter(vectorSize, nbHash, hashType)` does.
///
/// # Errors
///
/// [`CreateError`] for numbers that no filter has.
///
/// # Examples
///
/// ```
/// use tamis_formats::hadoop::{HashType, create};
///
/// let mut rows = create(1024, 7, HashType::Murmur)?;
/// assert!(rows.insert(b"row1") && rows.contains(b"row1"));
/// # Ok::<(), tamis_formats::hadoop::CreateError>(())
/// ```
pub fn create(
    vector_size: u32,
    probes: u32,
    hash_type: HashType,
) -> Result<ForeignBloom, CreateError> {
    let rule = rule(vector_size, probes, hash_type)?;
    ForeignBloom::new(Rule::Hadoop(rule)).map_err(CreateError::Memory)
}

fn rule(vector_size: u32, probes: u32, hash_type: HashType) -> Result<Hadoop, CreateError> {
    if !(1..=i32::MAX.cast_unsigned()).contains(&vector_size) {
        return Err(CreateError::VectorSize { bits: vector_size });
    }
    if !(1..=MAX_PROBES).contains(&probes) {
        return Err(CreateError::Probes { probes });
    }
    Ok(Hadoop { vector_size, probes, hash_type })
}

/// Reads what `write` wrote, and nothing behind it.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are one filter.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = Reader::new(bytes);
    let rule = header(&mut reader)?;
    let at = reader.at() as u64;
    // The length is tested before there is memory for the words.
    let data = reader.bytes("bits", rule.vector_size.div_ceil(8) as usize)?;
    reader.end("bits")?;
    ForeignBloom::from_bytes(Rule::Hadoop(rule), data).map_err(|memory| DecodeError {
        field: "bits",
        at,
        kind: DecodeErrorKind::Memory(memory),
    })
}

/// The version of both formats.
const VERSION: i32 = -1;

/// Reads what both formats start with.
fn header(reader: &mut Reader<'_>) -> Result<Hadoop, DecodeError> {
    let version = reader.i32_be("version")?;
    if version != VERSION {
        let kind = DecodeErrorKind::Unexpected { expected: "-1", found: version.into() };
        return Err(DecodeError { field: "version", at: 0, kind });
    }
    let at = reader.at() as u64;
    let probes = reader.count_be("number of probes", 1, "1 to 255")?;
    if probes > MAX_PROBES {
        let kind = DecodeErrorKind::Unexpected { expected: "1 to 255", found: probes.into() };
        return Err(DecodeError { field: "number of probes", at, kind });
    }
    let at = reader.at() as u64;
    let hash_type = match reader.u8("hash type")? {
        0 => HashType::Jenkins,
        1 => HashType::Murmur,
        found => {
            let kind = DecodeErrorKind::Unexpected {
                expected: "0 (Jenkins) or 1 (Murmur)",
                found: found.cast_signed().into(),
            };
            return Err(DecodeError { field: "hash type", at, kind });
        }
    };
    let vector_size = reader.count_be("vector size", 1, "1 or more")?;
    Ok(Hadoop { vector_size, probes, hash_type })
}

fn header_bytes(rule: &Hadoop) -> Vec<u8> {
    let mut bytes = VERSION.to_be_bytes().to_vec();
    bytes.extend(rule.probes.to_be_bytes());
    bytes.push(rule.hash_type as u8);
    bytes.extend(rule.vector_size.to_be_bytes());
    bytes
}

fn sniff(bytes: &[u8], len_bytes: fn(&Hadoop) -> u64) -> Sniff {
    let mut reader = Reader::new(bytes);
    let Ok(header) = header(&mut reader) else { return Sniff::No };
    let is_whole = len_bytes(&header) == (bytes.len() - reader.at()) as u64;
    if is_whole { Sniff::Maybe } else { Sniff::No }
}

fn encode(
    contents: &Contents,
    _: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let Contents::Flat(filter) = contents else {
        let why = "Hadoop's BloomFilter has no place for such a filter: build one from the items";
        return Err(EncodeError::NoPlace(why.into()));
    };
    let Rule::Hadoop(rule) = filter.rule() else {
        let why = format!(
            "Hadoop places items otherwise: by a chain of hashes, not by {}; build one from the items",
            filter.rule()
        );
        return Err(EncodeError::NoPlace(why.into()));
    };
    out.write_all(&header_bytes(rule))?;
    filter.write_bytes(out)
}
