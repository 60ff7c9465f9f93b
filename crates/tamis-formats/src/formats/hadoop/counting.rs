//! Hadoop's `CountingBloomFilter`, which can remove items because it has counters of four bits.

use std::io::Write;

use tamis::{Bitmap, Bits as _, BitsMut as _, OutOfMemory};

use crate::encoding::{ByteReader, write_words};
use crate::errors::{ChangeError, CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, FilterInfo, StoredFilter, answer_each};
use crate::format::{DecodeOptions, Detection, Format};
use crate::formats::hadoop::header::{read_header, sniff};
use crate::formats::hadoop::rule::{Hadoop, HashType, plan, rule};
use crate::rules::{EstimatedRate, ProbeRule as _};
use tamis::Answers;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "hadoop-counting",
    summary: "Hadoop's util.bloom.CountingBloomFilter, by write",
    detection: Detection::ByBytes(|bytes| sniff(bytes, |rule| words(rule) * 8)),
    decode: |bytes, _| CountingFilter::decode(bytes).map(Contents::new),
    encode,
    create: |options| {
        let (counters, probes) = plan(options)?;
        CountingFilter::new(counters, probes, HashType::Murmur).map(Contents::new)
    },
    ..Format::BASE
};

/// The number of counters in a word.
const WORD_COUNTERS: u32 = 16;

/// The largest value of a counter. A counter at 15 is never decremented, because the true count may be higher than 15.
const STOP: u64 = 15;

/// Hadoop's `CountingBloomFilter`, which can remove items and count up to 15 inserts of an item.
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
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CountingFilter {
    rule: Hadoop,
    // Counter `j` is in word `j / 16` and starts at bit `4j % 64`. Invariant: the number of words is `words(&rule)`,
    // and the counters after the last counter are zero.
    counters: Bitmap,
}

fn words(rule: &Hadoop) -> u64 {
    rule.vector_size.div_ceil(WORD_COUNTERS).into()
}

impl CountingFilter {
    /// Creates an empty filter, as `new CountingBloomFilter(vectorSize, nbHash, hashType)` does.
    ///
    /// # Errors
    ///
    /// [`CreateError`] if Hadoop does not support the given sizes.
    pub fn new(counters: u32, probes: u32, hash_type: HashType) -> Result<Self, CreateError> {
        Ok(Self::of(rule(counters, probes, hash_type)?)?)
    }

    fn of(rule: Hadoop) -> Result<Self, OutOfMemory> {
        Ok(Self { counters: Bitmap::zeroed(words(&rule) * 64)?, rule })
    }

    /// Decodes the output of Hadoop's `write`. Rejects trailing bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless `bytes` are exactly one filter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        let rule = read_header(&mut reader)?;
        let at = reader.at();
        // Checks the length before allocating the words.
        let data = reader.bytes("counters", (words(&rule) as usize).saturating_mul(8))?;
        reader.end("counters")?;
        let mut filter = Self::of(rule).map_err(DecodeError::memory("counters", at))?;
        let data = data.as_chunks().0;
        for (to, &word) in filter.counters.words_mut().iter_mut().zip(data) {
            *to = u64::from_be_bytes(word);
        }
        let used = rule.vector_size % WORD_COUNTERS;
        let last = data.len() - 1;
        if used > 0 && filter.counters.words()[last] >> (4 * used) != 0 {
            let kind = DecodeErrorKind::NotZero;
            return Err(DecodeError::new("counters", at + last * 8, kind));
        }
        Ok(filter)
    }

    /// Returns the number of counters of the filter.
    #[must_use]
    pub fn counters(&self) -> u32 {
        self.rule.vector_size
    }

    /// Returns the number of counters of an item.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.rule.probes
    }

    fn counter(&self, place: u32) -> u64 {
        self.counters.words()[(place / WORD_COUNTERS) as usize] >> shift(place) & STOP
    }

    /// Tests whether an item may be in the filter.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.rule.chain(key).all(|place| self.counter(place) > 0)
    }

    /// Returns an upper bound of the number of inserts of an item, as `approximateCount` does. A result of 15 stands
    /// for 15 or more inserts.
    #[must_use]
    pub fn count(&self, key: &[u8]) -> u64 {
        self.rule.chain(key).map(|place| self.counter(place)).min().unwrap_or_default()
    }

    /// Inserts an item and increments its counters. Returns true if the item is certainly new. A counter at 15 does not
    /// change.
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

    /// Removes one insert of an item. Returns false if the item is absent. A counter at 15 does not change. If all
    /// counters of an item are at 15, the item stays in the filter.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let is_in = self.contains(key);
        if is_in {
            for place in self.rule.chain(key) {
                // A position can occur twice in an item, so the counter of the position can already be 0.
                if (1..STOP).contains(&self.counter(place)) {
                    self.counters.words_mut()[(place / WORD_COUNTERS) as usize] -=
                        1 << shift(place);
                }
            }
        }
        is_in
    }

    /// Counts the counters above 0, and the counters at 15. Reads all counters.
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
}

impl StoredFilter for CountingFilter {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        answer_each(keys, answers, |key| self.contains(key));
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        answer_each(keys, answers, |key| self.insert(key));
        Ok(())
    }

    /// Adds the counters of both filters. Each sum is at most 15. Hadoop itself has no merge operation.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        let is_alike = self.rule == other.rule;
        if is_alike {
            for (to, &from) in self.counters.words_mut().iter_mut().zip(other.counters.words()) {
                let sum = |at: u32| ((*to >> at & STOP) + (from >> at & STOP)).min(STOP) << at;
                *to = (0..64).step_by(4).map(sum).sum();
            }
        }
        Ok(is_alike)
    }

    fn info(&self) -> FilterInfo {
        let (used, stopped) = self.count_used_and_stopped();
        let (m, k) = (f64::from(self.rule.vector_size), f64::from(self.rule.probes));
        let fill = used as f64 / m;
        let rate = EstimatedRate::independent(fill, self.rule.vector_size.into(), self.rule.probes);
        let mut warnings = Vec::new();
        if stopped > 0 {
            warnings.push(format!(
                "{stopped} counters stopped at 15 and never go down: an item that has only such \
                counters cannot be deleted"
            ));
        }
        FilterInfo {
            layout: format!("{}, counters of 4 bits", self.rule.name()),
            bits: self.rule.vector_size.into(),
            probes: Some(self.rule.probes),
            fill,
            items: -(-fill).ln_1p() * m / k,
            rate_now: rate.rate,
            rate_std_error: rate.std_error,
            details: vec![("counters at 15", stopped.to_string())],
            warnings,
            ..FilterInfo::default()
        }
    }
}

/// Returns the offset of a counter in its word, in bits.
fn shift(place: u32) -> u32 {
    place % WORD_COUNTERS * 4
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let filter =
        contents.filter::<CountingFilter>("Hadoop's CountingBloomFilter stores counters")?;
    out.write_all(&filter.rule.header())?;
    let words = words(&filter.rule) as usize;
    Ok(write_words(&filter.counters.words()[..words], out, u64::to_be_bytes)?)
}
