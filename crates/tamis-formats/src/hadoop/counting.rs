//! Counters of four bits, so that items can be deleted.

use std::io;

use tamis::{Bitmap, Bits as _, BitsMut as _, OutOfMemory};

use super::{CreateError, Hadoop, HashType, header, header_bytes, rule, sniff};
use crate::contents::{Contents, FilterInfo};
use crate::decode_options::DecodeOptions;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::format::{Format, ItemDomain, Items};
use crate::guava::write_words;
use crate::reader::Reader;
use crate::rule::rate_std_error;

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "hadoop-counting",
    extensions: &[],
    summary: "Hadoop's util.bloom.CountingBloomFilter, by write",
    sniff: Some(|bytes| sniff(bytes, |header| words(header) * 8)),
    items: Items::Unspecified,
    item_domain: ItemDomain::Bytes,
    required: &[],
    read_uses: &[],
    write_uses: &[],
    versions: None,
    decode: |bytes, _| CountingFilter::decode(bytes).map(Contents::HadoopCounting),
    encode,
    create: |options| {
        let (counters, probes) = super::plan(options)?;
        let created = CountingFilter::new(counters, probes, HashType::Murmur);
        created
            .map(Contents::HadoopCounting)
            .map_err(|error| EncodeError::NoPlace(error.to_string().into()))
    },
};

/// Counters in a word.
const WORD_COUNTERS: u32 = 16;

/// At which a counter stops, never to go down again: nobody knows how often it was to go up.
const STOP: u64 = 15;

/// Hadoop's `CountingBloomFilter`: items can be deleted, and counted to 15.
///
/// # Examples
///
/// ```
/// use tamis_formats::hadoop::{CountingFilter, HashType};
///
/// let mut rows = CountingFilter::new(1024, 7, HashType::Murmur)?;
/// rows.insert(b"row1");
/// rows.insert(b"row1");
/// assert_eq!(rows.count(b"row1"), 2);
/// assert!(rows.remove(b"row1") && rows.remove(b"row1"));
/// assert!(!rows.contains(b"row1") && !rows.remove(b"row1"));
/// # Ok::<(), tamis_formats::hadoop::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CountingFilter {
    rule: Hadoop,
    // Counter j is bits 4j to 4j + 3 of word j / 16. Invariant: `words` of the rule's, those behind its counters zero.
    counters: Bitmap,
}

fn words(rule: &Hadoop) -> u64 {
    rule.vector_size.div_ceil(WORD_COUNTERS).into()
}

impl CountingFilter {
    /// Makes an empty filter, as `new CountingBloomFilter(vectorSize, nbHash, hashType)` does.
    ///
    /// # Errors
    ///
    /// [`CreateError`] for numbers that no filter has.
    pub fn new(counters: u32, probes: u32, hash_type: HashType) -> Result<Self, CreateError> {
        Self::of(rule(counters, probes, hash_type)?).map_err(CreateError::Memory)
    }

    fn of(rule: Hadoop) -> Result<Self, OutOfMemory> {
        Ok(Self { counters: Bitmap::zeroed(words(&rule) * 64)?, rule })
    }

    /// Reads what `write` wrote, and nothing behind it.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless `bytes` are one filter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let rule = header(&mut reader)?;
        let at = reader.at() as u64;
        // The length is tested before there is memory for the words.
        let data = reader.bytes("counters", (words(&rule) as usize).saturating_mul(8))?;
        reader.end("counters")?;
        let error = |at, kind| DecodeError { field: "counters", at, kind };
        let mut filter =
            Self::of(rule).map_err(|memory| error(at, DecodeErrorKind::Memory(memory)))?;
        let data = data.as_chunks().0;
        for (to, &word) in filter.counters.words_mut().iter_mut().zip(data) {
            *to = u64::from_be_bytes(word);
        }
        let used = rule.vector_size % WORD_COUNTERS;
        let last = data.len() - 1;
        if used > 0 && filter.counters.words()[last] >> (4 * used) != 0 {
            return Err(error(at + last as u64 * 8, DecodeErrorKind::NotZero));
        }
        Ok(filter)
    }

    /// Returns how many counters there are.
    #[must_use]
    pub fn counters(&self) -> u32 {
        self.rule.vector_size
    }

    /// Returns how many counters an item has.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.rule.probes
    }

    fn counter(&self, place: u32) -> u64 {
        self.counters.words()[(place / WORD_COUNTERS) as usize] >> shift(place) & STOP
    }

    /// Tells whether an item may be in.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.rule.chain(key).all(|place| self.counter(place) > 0)
    }

    /// Returns how often an item is in, at most, as `approximateCount` does: 15 is 15 or more.
    #[must_use]
    pub fn count(&self, key: &[u8]) -> u64 {
        self.rule.chain(key).map(|place| self.counter(place)).min().unwrap_or_default()
    }

    /// Inserts an item once more; true if it is certainly new. A counter at 15 stays.
    pub fn insert(&mut self, key: &[u8]) -> bool {
        let mut is_new = false;
        for place in self.rule.chain(key) {
            let counter = self.counter(place);
            is_new |= counter == 0;
            if counter < STOP {
                self.counters.words_mut()[(place / WORD_COUNTERS) as usize] += 1 << shift(place);
            }
        }
        is_new
    }

    /// Deletes an item once; false if it is not in. A counter at 15 stays, and so does an item that has only such.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let is_in = self.contains(key);
        if is_in {
            for place in self.rule.chain(key) {
                // A place may come twice, and be 0 by then.
                if (1..STOP).contains(&self.counter(place)) {
                    self.counters.words_mut()[(place / WORD_COUNTERS) as usize] -=
                        1 << shift(place);
                }
            }
        }
        is_in
    }

    /// Adds the counters of a filter of equal size, probes and hash, up to 15; false, and nothing is changed, if it is of others.
    ///
    /// Hadoop itself has no such sum.
    #[must_use = "filters of different rules do not merge"]
    pub fn merge(&mut self, other: &Self) -> bool {
        let is_alike = self.rule == other.rule;
        if is_alike {
            for (to, &from) in self.counters.words_mut().iter_mut().zip(other.counters.words()) {
                let sum = |at: u32| ((*to >> at & STOP) + (from >> at & STOP)).min(STOP) << at;
                *to = (0..64).step_by(4).map(sum).sum();
            }
        }
        is_alike
    }

    /// Counts the counters that are not 0 and those that are at 15. Reads all of them.
    #[must_use]
    pub fn count_used_and_stopped(&self) -> (u64, u64) {
        let (mut used, mut stopped) = (0, 0);
        for place in 0..self.rule.vector_size {
            let counter = self.counter(place);
            used += u64::from(counter > 0);
            stopped += u64::from(counter == STOP);
        }
        (used, stopped)
    }

    pub(crate) fn info(&self) -> FilterInfo {
        let (used, stopped) = self.count_used_and_stopped();
        let (m, k) = (f64::from(self.rule.vector_size), f64::from(self.rule.probes));
        let fill = used as f64 / m;
        let mut warnings = Vec::new();
        if stopped > 0 {
            warnings.push(format!(
                "{stopped} counters stopped at 15 and never go down: deleted items that have only such stay in"
            ));
        }
        FilterInfo {
            rule: format!("{}, counters of 4 bits", self.rule),
            bits: self.rule.vector_size.into(),
            probes: Some(self.rule.probes),
            fill,
            items: -(-fill).ln_1p() * m / k,
            rate: fill.powf(k),
            rate_std_error: rate_std_error(fill, self.rule.vector_size.into(), self.rule.probes),
            planned_rate: None,
            more: vec![("counters at 15", stopped.to_string())],
            warnings,
        }
    }
}

/// How many bits of its word lie below a counter.
fn shift(place: u32) -> u32 {
    place % WORD_COUNTERS * 4
}

fn encode(
    contents: &Contents,
    _: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let Contents::HadoopCounting(filter) = contents else {
        let why = "Hadoop's CountingBloomFilter has counters by a chain of hashes: build one from the items";
        return Err(EncodeError::NoPlace(why.into()));
    };
    out.write_all(&header_bytes(&filter.rule))?;
    let words = words(&filter.rule) as usize;
    write_words(&filter.counters.words()[..words], out, u64::to_be_bytes)
}
