//! The filters of DCSO's `bloom` (Go, flor in Python, fleur in C). Layout: `docs/formats/dcso.md`.

use std::io::Write;

use tamis::{Answers, Modulus};

use crate::encoding::{ByteReader, write_words};
use crate::errors::{ChangeError, CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, FilterInfo, ForeignBloom, Growth, Layer, Layers, StoredFilter};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::items::Funnel;
use crate::rules::{EstimatedRate, ProbeRule, Rule, fill, rates};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "dcso",
    extensions: &["dcso"],
    summary: "the filter of DCSO's bloom, flor and fleur (CIRCL's hashlookup)",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Bytes),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| options.create(create),
    ..Format::BASE
};

/// The rule of DCSO: the 64-bit FNV-1 hash of an item is multiplied by a factor once for each probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiplied {
    bits: Modulus,
    probes: u32,
}

impl Multiplied {
    fn new(bits: u64, probes: u64) -> Option<Self> {
        let probes = u32::try_from(probes).ok().filter(|it| (1..=MAX_PROBES).contains(it))?;
        // With more than 2⁶² bits, the number of bytes would overflow.
        let bits = Modulus::new(bits).filter(|bits| bits.bits() <= 1 << 62)?;
        Some(Self { bits, probes })
    }
}

/// The largest prime below 2⁶⁴. The product of the state and the factor wraps at 2⁶⁴ before the reduction modulo the
/// prime.
const PRIME: u64 = 18_446_744_073_709_551_557;

const FACTOR: u64 = 18_446_744_073_709_550_147;

/// The largest accepted number of probes. The smallest rate of an `f64` needs 1,074 probes.
const MAX_PROBES: u32 = 1_100;

impl ProbeRule for Multiplied {
    type Hash<'k> = u64;

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        "fnv-1 of 64 bits, multiplied for each probe (DCSO)".into()
    }

    fn hash(&self, key: &[u8]) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x100_0000_01b3;
        key.iter().fold(OFFSET, |hash, &byte| hash.wrapping_mul(PRIME) ^ u64::from(byte))
    }

    #[inline]
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let (bits, mut state) = (self.bits, hash % PRIME);
        (0..self.probes).map(move |_| {
            state = state.wrapping_mul(FACTOR) % PRIME;
            bits.reduce(state)
        })
    }

    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let (bits, probes) = self.sizes();
        let filter = rates::multiplied::Multiplied { words, bits, probes, factor: FACTOR };
        filter.estimate_rate(fill(words, bits), |hash| self.each_probe(hash))
    }
}

/// A filter of DCSO, and the data that the user attached to the filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcso {
    // Invariant: there is one layer, and its rule is `Multiplied`.
    filter: Layers,
    data: Vec<u8>,
}

impl Dcso {
    /// Returns the filter with its capacity, its rate and the number of new items.
    #[must_use]
    pub fn filter(&self) -> &Layers {
        &self.filter
    }

    /// Returns the attached data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    fn new(filter: ForeignBloom, capacity: u64, rate: f64, added: u64, data: &[u8]) -> Self {
        let layer = Layer { filter, capacity, rate, added: Some(added) };
        Self { filter: Layers::new(vec![layer], Growth::None), data: data.to_vec() }
    }
}

/// Returns the plan of DCSO: `(bits, probes)`.
///
/// # Examples
///
/// ```
/// assert_eq!(tamis_formats::dcso::plan(100, 0.01), (958, 7));
/// ```
#[must_use]
pub fn plan(items: u64, rate: f64) -> (u64, u64) {
    let (n, p, ln_2) = (items as f64, rate, std::f64::consts::LN_2);
    let bits = (-n * p.ln() / (ln_2 * ln_2)).floor();
    (bits as u64, (ln_2 * bits / n).ceil() as u64)
}

/// Creates an empty filter, as `bloom create -n items -p rate` does.
///
/// # Errors
///
/// [`CreateError`] if the rate is not above 0 and below 1, if the filter would have no bits, or if
/// the allocation fails.
pub fn create(items: u64, rate: f64) -> Result<Dcso, CreateError> {
    CreateError::check_plan("DCSO's bloom", items, rate)?;
    let (bits, probes) = plan(items, rate);
    let rule = Multiplied::new(bits, probes).ok_or_else(|| {
        CreateError::refused(format!(
            "DCSO's bloom plans {bits} bits and {probes} probes for {items} items at the rate \
             {rate}: plan more items, or a lower rate"
        ))
    })?;
    Ok(Dcso::new(ForeignBloom::new(Rule::new(rule))?, items, rate, 0, &[]))
}

/// The version of the format in the header.
const VERSION: u64 = 1;

// Each offset is computed from the previous offset.
const RATE_AT: usize = 2 * size_of::<u64>();
const PROBES_AT: usize = RATE_AT + size_of::<f64>();

/// Decodes a whole file. All bytes after the bits are the attached data.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` start with a filter.
pub fn decode(bytes: &[u8]) -> Result<Dcso, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let invalid = DecodeError::invalid;
    if reader.u64("version")? != VERSION {
        return Err(invalid("version", 0, "1"));
    }
    let capacity = reader.u64("capacity")?;
    let rate = f64::from_le_bytes(reader.array("rate")?);
    if !(rate > 0.0 && rate < 1.0) {
        return Err(invalid("rate", RATE_AT, "between 0 and 1"));
    }
    let (probes, bits) = (reader.u64("number of probes")?, reader.u64("number of bits")?);
    let added = reader.u64("number of items")?;
    let rule = Multiplied::new(bits, probes);
    let rule = rule.ok_or(invalid(
        "number of probes",
        PROBES_AT,
        "1 to 1,100, and a number of bits from 1 on",
    ))?;
    let filter = ForeignBloom::read_words(Rule::new(rule), &mut reader, u64::from_le_bytes)?;
    Ok(Dcso::new(filter, capacity, rate, added, reader.rest()))
}

/// The header states the size twice: as bits and probes, and as the plan from which bits and probes are computed.
fn sniff(bytes: &[u8]) -> Sniff {
    let Some(header) = bytes.first_chunk::<48>() else { return Sniff::No };
    let [version, capacity, rate, probes, bits, _] = [0, 8, 16, 24, 32, 40]
        .map(|at| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes")));
    let rate = f64::from_bits(rate);
    let is_plan =
        version == VERSION && rate > 0.0 && rate < 1.0 && plan(capacity, rate) == (bits, probes);
    Sniff::yes(is_plan && bits > 0)
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let needs_items =
        || EncodeError::needs_items("DCSO's bloom computes the bits of an item by its own hash");
    let Dcso { filter, data } = contents.downcast_ref::<Dcso>().ok_or_else(needs_items)?;
    let [Layer { filter, capacity, rate, added }] = filter.layers() else {
        return Err(needs_items());
    };
    let (bits, probes) = (filter.rule().bits(), u64::from(filter.rule().probes()));
    let added = added.unwrap_or(0);
    let header = [VERSION, *capacity, rate.to_bits(), probes, bits, added];
    out.write_all(header.map(u64::to_le_bytes).as_flattened())?;
    write_words(filter.words(), out, u64::to_le_bytes)?;
    Ok(out.write_all(data)?)
}

impl StoredFilter for Dcso {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        self.filter.contains_each(keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        self.filter.insert_each(keys, answers)
    }

    /// The merged filter keeps the data of `self`, as in `bloom join`.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        self.filter.merge(&other.filter)
    }

    fn info(&self) -> FilterInfo {
        let mut info = self.filter.info();
        info.details.push(("attached data", format!("{} bytes", self.data.len())));
        info
    }

    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        self.filter.exceeded_rate(info, planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the computed rate of a filter, and the measured share of absent items that the filter accepts.
    fn rates(bits: u64, probes: u64, items: u64) -> (f64, f64) {
        let rule = Multiplied::new(bits, probes).unwrap();
        let mut words = vec![0_u64; bits.div_ceil(64) as usize];
        // Items have even numbers, and absent items have odd numbers.
        let hash =
            |number: u64| rule.hash(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        for item in 0..items {
            rule.each_probe(hash(2 * item))
                .for_each(|bit| words[(bit / 64) as usize] |= 1 << (bit % 64));
        }
        let is_found = |absent: &u64| {
            let mut probes = rule.each_probe(hash(2 * absent + 1));
            probes.all(|bit| words[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
        };
        let found = (0..ASKED).filter(is_found).count();
        (rule.estimate_rate(&words).rate, found as f64 / ASKED as f64)
    }

    const ASKED: u64 = 1_000_000;

    #[test]
    fn items_that_meet_modulo_a_power_of_two_raise_the_rate() {
        for (bits, probes, items) in [
            (131_072, 9, 10_000),
            (131_072, 9, 100),
            (2_048, 14, 100),
            (16_384, 11, 1_000),
            (98_304, 7, 10_000),
            (9_216, 6, 1_000),
            (1_840, 10, 128),
            (14, 10, 1),
            (3 << 20, 5, 40_000),
            (1 << 22, 20, 100_000),
            (1_000 << 8, 10, 20_000),
            (95_851, 7, 10_000),
        ] {
            let (stated, measured) = rates(bits, probes, items);
            let found = (measured * ASKED as f64).max(1.0);
            let within = 0.1 + 4.0 / found.sqrt();
            assert!(
                (stated / measured - 1.0).abs() < within,
                "{bits} {probes} {items}: states {stated:e}, has {measured:e}"
            );
        }
    }
}
