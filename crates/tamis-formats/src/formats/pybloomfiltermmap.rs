//! Python's `pybloomfiltermmap`: the file that the library maps into memory. Layout:
//! `docs/formats/pybloomfiltermmap.md`.

use std::io::Write;

use tamis::Modulus;

use crate::encoding::ByteReader;
use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, ForeignBloom, Growth, Layer, Layers};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::items::{Charset, Funnel};
use crate::rules::hash::murmur3::{Tail, x64_128};
use crate::rules::probe_positions::ProbePositions;
use crate::rules::{ProbeRule, Rule};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "pybloomfiltermmap",
    extensions: &["bloom"],
    summary: "the mapped file of Python's pybloomfiltermmap and pybloomfilter3",
    detection: Detection::ByBytes(|bytes| Sniff::yes(bytes.starts_with(MAGIC))),
    items: Items::Default(Funnel::Text(Charset::Utf8)),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| options.create(|items, rate| create(items, rate, None)),
    ..Format::BASE
};

const MAGIC: &[u8; 9] = b"MBITARRAY";

/// The number of seeds that fit into the header.
const MAX_SEEDS: usize = 256;

// The C struct after the number of bits, as on 64-bit little-endian machines. Each offset is computed from the previous
// offset.
const BITS_AT: usize = MAGIC.len();
const HEADER_LEN_AT: usize = BITS_AT + size_of::<u64>();
const CAPACITY_AT: usize = HEADER_LEN_AT + size_of::<u32>();
const RATE_AT: usize = CAPACITY_AT + size_of::<u64>();
const PROBES_AT: usize = RATE_AT + size_of::<f64>();
const SEEDS_AT: usize = PROBES_AT + size_of::<u32>();
const POINTER_AT: usize = SEEDS_AT + MAX_SEEDS * size_of::<u32>() + 4;
const VERSION_AT: usize = POINTER_AT + size_of::<u64>();
const DATA_AT: usize = 1280;

/// The value of the header field that stores the size of the struct.
const HEADER_LEN: u32 = 1200;

/// The rule of `pybloomfiltermmap`. Each probe has its own seed. A probe is the XOR of the two halves of a 128-bit
/// hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    bits: Modulus,
    // Invariant: the number of seeds is 1 to `ProbePositions::MAX`.
    seeds: Vec<u32>,
}

impl Seeds {
    fn new(bits: u64, seeds: Vec<u32>) -> Option<Self> {
        let count = u32::try_from(seeds.len()).ok()?;
        Some(Self { bits: Modulus::new(bits)?, seeds })
            .filter(|_| (1..=ProbePositions::MAX).contains(&count))
    }
}

impl ProbeRule for Seeds {
    type Hash<'k> = ProbePositions;

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.seeds.len() as u32)
    }

    fn name(&self) -> String {
        // The text contains the seeds, because filters with different seeds cannot merge.
        format!("murmur3 x64 128, both halves, under seeds {:?}", self.seeds)
    }

    fn hash(&self, key: &[u8]) -> ProbePositions {
        ProbePositions::new(self.seeds.iter().map(|&seed| {
            let (low, high) = x64_128(key, seed.into(), Tail::Unsigned);
            self.bits.reduce(low ^ high)
        }))
    }

    #[inline]
    fn each_probe(&self, positions: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        positions.iter(self.seeds.len() as u32)
    }
}

/// Returns the plan of the Python library: `(bits, probes)`.
///
/// # Examples
///
/// ```
/// assert_eq!(tamis_formats::pybloomfiltermmap::plan(100_000, 0.01), (958_506, 6));
/// ```
#[must_use]
pub fn plan(items: u64, rate: f64) -> (u64, u32) {
    let (n, p, ln_2) = (items as f64, rate, std::f64::consts::LN_2);
    let probes = ((1.0 / p).ln() / ln_2).floor().max(1.0);
    let bits = (n * p.ln().abs() / (probes * (ln_2 * ln_2))).ceil() * probes;
    ((bits as u64).max(128), probes as u32)
}

/// Creates an empty filter. The default seeds are 1, 2, 3 and so on, so that equal items give equal files. The original
/// library uses random seeds.
///
/// # Errors
///
/// [`CreateError`] if the rate is not above 0 and below 1, or if the allocation fails. [`CreateError`] if the number of
/// seeds differs from the number of probes.
pub fn create(items: u64, rate: f64, seeds: Option<&[u32]>) -> Result<Layers, CreateError> {
    CreateError::check_plan("pybloomfiltermmap", items, rate)?;
    let (bits, probes) = plan(items, rate);
    let seeds = seeds.map_or_else(|| (1..=probes).collect(), <[u32]>::to_vec);
    if seeds.len() != probes as usize {
        return Err(CreateError::refused(format!(
            "{} seeds for {probes} probes: give one seed per probe",
            seeds.len()
        )));
    }
    let too_large = || {
        CreateError::refused(format!(
            "{bits} bits, {probes} probes: at most 64 probes, and as many bits as fit into memory"
        ))
    };
    let rule = Seeds::new(bits, seeds).ok_or_else(too_large)?;
    let filter = ForeignBloom::new(Rule::new(rule)).map_err(|_| too_large())?;
    let layer = Layer { filter, capacity: items, rate, added: None };
    Ok(Layers::new(vec![layer], Growth::None))
}

/// Decodes a whole file.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one file.
pub fn decode(bytes: &[u8]) -> Result<Layers, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let invalid = DecodeError::invalid;
    if reader.array("magic")? != *MAGIC {
        return Err(invalid("magic", 0, "MBITARRAY"));
    }
    let bits = reader.u64("number of bits")?;
    let header_len = reader.u32("header length")?;
    if header_len != HEADER_LEN {
        return Err(DecodeError::unexpected(
            "header length",
            HEADER_LEN_AT,
            "1200, that of 64-bit little-endian machines",
            header_len,
        ));
    }
    let capacity = reader.u64("capacity")?;
    let rate = f64::from_le_bytes(reader.array("error rate")?);
    if !(rate > 0.0 && rate < 1.0) {
        return Err(invalid("error rate", RATE_AT, "between 0 and 1"));
    }
    let probes = reader.u32("number of probes")?;
    if !(1..=ProbePositions::MAX).contains(&probes) {
        return Err(invalid("number of probes", PROBES_AT, "1 to 64"));
    }
    let seeds = reader.bytes("seeds", MAX_SEEDS * size_of::<u32>())?;
    let seeds = seeds.as_chunks().0.iter().map(|&seed| u32::from_le_bytes(seed));
    let seeds = seeds.take(probes as usize).collect();
    // The reserved bytes contain the count of items, which is always zero in files of the original library.
    reader.bytes("reserved", DATA_AT - reader.at())?;
    let rule = Seeds::new(bits, seeds).ok_or(invalid("number of bits", BITS_AT, "1 or more"))?;
    let filter = ForeignBloom::read_bytes(Rule::new(rule), &mut reader)?;
    reader.end("bits")?;
    Ok(Layers::new(vec![Layer { filter, capacity, rate, added: None }], Growth::None))
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let needs_items =
        || EncodeError::needs_items("pybloomfiltermmap hashes each probe with a seed of its own");
    let layers = contents.downcast_ref::<Layers>().ok_or_else(needs_items)?;
    let (Growth::None, [Layer { filter, capacity, rate, .. }]) = (layers.growth(), layers.layers())
    else {
        return Err(needs_items());
    };
    let rule = filter.rule_of::<Seeds>("pybloomfiltermmap")?;
    let mut header = [0; DATA_AT];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, MAGIC);
    put(BITS_AT, &rule.bits.bits().to_le_bytes());
    put(HEADER_LEN_AT, &HEADER_LEN.to_le_bytes());
    put(CAPACITY_AT, &capacity.to_le_bytes());
    put(RATE_AT, &rate.to_le_bytes());
    put(PROBES_AT, &filter.rule().probes().to_le_bytes());
    for (i, seed) in rule.seeds.iter().enumerate() {
        put(SEEDS_AT + i * size_of::<u32>(), &seed.to_le_bytes());
    }
    // Version 1, and the flag that marks the count as correct. The original library sets the flag for a correct count
    // but writes no count.
    put(VERSION_AT, &[1, 1]);
    out.write_all(&header)?;
    Ok(filter.write_bytes(out)?)
}
