//! Golomb-coded sets: hashes of items, sorted, of which only the steps from one to the next are written.
//!
//! ```text
//! item → SipHash-2-4 → value in 0 … N·M−1 (high half of hash · N·M) → sorted → step d from the value before
//!
//! d = q·2ᴾ + r:   | 1 … 1 | 0 | r: P bits |     the most significant bit of a byte first
//!                   q ones
//! ```
//!
//! A set takes about P + 2 bits an item, less than any filter that can be asked at any place; so it is read from its start. Values
//! depend on N: an item more would move all of them.
//!
//! Sources: Golomb, "Run-length encodings" (1966); Rice (1979), for steps by a power of two; BIP-158 for the bytes.

use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;
use tamis::Answers;

use crate::bitcoin::{Hash256, compact_size};
use crate::change_error::ChangeError;
use crate::decode_error::{DecodeError, DecodeErrorKind};
use crate::filter_info::FilterInfo;
use crate::reader::Reader;
use crate::stored_filter::StoredFilter;

/// An immutable set of items in about P + 2 bits each, of which an absent item is taken for a present one once in M times.
///
/// Asking reads it from the start, so ask for many items at once.
///
/// # Examples
///
/// ```
/// use tamis_formats::{GolombParams, GolombSet};
///
/// let set = GolombSet::new([1, 2], GolombParams::BASIC, &["a", "b", "a"])?;
/// assert_eq!(set.len(), 2);
/// assert!(set.contains(b"a") && set.contains_any(&["c", "b"]));
/// assert!(!set.contains(b"c"));
/// # Ok::<(), tamis_formats::GolombError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GolombSet {
    key: [u64; 2],
    params: GolombParams,
    // Invariant: the number of values as a compact size, then as many values below `range`, and no whole byte more.
    bytes: Vec<u8>,
    values_at: usize,
    len: u32,
}

/// How a set is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GolombParams {
    // Invariants: at most 32; at least 1.
    p: u8,
    m: u32,
}

/// Why there is no such set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GolombError {
    /// The number of bits of a remainder is above 32, or the range of an item is 0.
    Params,
    /// 2³² distinct items or more.
    TooManyItems,
}

impl fmt::Display for GolombError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GolombError::Params => "P is at most 32, and M at least 1",
            GolombError::TooManyItems => "a Golomb-coded set has 2³² − 1 distinct items at most",
        })
    }
}

impl std::error::Error for GolombError {}

impl GolombParams {
    /// Those of basic block filters, BIP-158: P = 19, M = 784,931.
    pub const BASIC: Self = Self { p: 19, m: 784_931 };

    /// Takes P, the bits of a remainder, and M: an absent item is taken for a present one once in M times.
    ///
    /// M of about 1.5 times 2ᴾ makes the smallest sets. A far larger M makes steps of as many ones as it is larger: sets of
    /// N·M / 2ᴾ bits.
    ///
    /// # Errors
    ///
    /// [`GolombError::Params`] if P is above 32 or M is 0.
    pub const fn new(p: u8, m: u32) -> Result<Self, GolombError> {
        if p > 32 || m == 0 { Err(GolombError::Params) } else { Ok(Self { p, m }) }
    }

    /// Returns P: how many bits the remainder of a step has.
    #[must_use]
    pub const fn p(self) -> u8 {
        self.p
    }

    /// Returns M: an absent item is taken for a present one once in so many times.
    #[must_use]
    pub const fn m(self) -> u32 {
        self.m
    }
}

impl GolombSet {
    /// What to do instead of changing one.
    const WRITTEN_ONCE: &'static str = "a Golomb-coded set is written once: its values depend on how many items there \
         are, so build a new one from all items";

    /// Builds a set of distinct items; those that occur several times count once.
    ///
    /// Sorts twice; memory for a reference and a number an item, besides the bytes.
    ///
    /// # Errors
    ///
    /// [`GolombError::TooManyItems`].
    pub fn new(
        key: [u64; 2],
        params: GolombParams,
        items: &[impl AsRef<[u8]>],
    ) -> Result<Self, GolombError> {
        let mut items: Vec<&[u8]> = items.iter().map(AsRef::as_ref).collect();
        items.sort_unstable();
        items.dedup();
        let len = u32::try_from(items.len()).map_err(|_| GolombError::TooManyItems)?;
        let mut bytes = Vec::new();
        compact_size::write(len.into(), &mut bytes);
        let mut set = Self { key, params, values_at: bytes.len(), bytes, len };
        let mut values: Vec<_> = items.iter().map(|item| set.value(item)).collect();
        values.sort_unstable();
        let mut bits = BitWriter { bytes: std::mem::take(&mut set.bytes), pending: 0, len: 0 };
        let (p, mut last) = (u32::from(params.p), 0);
        for value in values {
            let step = value - last;
            bits.write_ones(step >> p);
            bits.write(0, 1);
            bits.write(step & ((1 << p) - 1), p);
            last = value;
        }
        set.bytes = bits.finish();
        Ok(set)
    }

    /// Reads a set, and nothing behind it, as Bitcoin Core does: every value once.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the number of items is written longer than needed or is 2³² or more, if values are missing or
    /// out of range, if whole bytes are left. rust-bitcoin takes bytes that are left, takes bytes without a readable number of items for the
    /// empty set, and finds missing values only when it gets there; Bitcoin Core takes values out of range, which no builder writes
    /// and a stream of ones would be read for long for.
    pub fn decode(bytes: &[u8], key: [u64; 2], params: GolombParams) -> Result<Self, DecodeError> {
        let (values_at, len) = check(bytes, params)?;
        Ok(Self { key, params, bytes: bytes.to_vec(), values_at, len })
    }

    /// Returns the bytes: the number of items, then their values.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns how it is coded.
    #[must_use]
    pub fn params(&self) -> GolombParams {
        self.params
    }

    /// Returns how many distinct items are in.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Tells whether it has no items; then none matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the values, which ascend; two items may share one.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let mut values = Values::new(&self.bytes[self.values_at..], self.params, self.len);
        std::iter::from_fn(move || values.next_value().ok().flatten())
    }

    /// Tells whether an item may be in. Reads half of the set, on average.
    #[must_use]
    pub fn contains(&self, item: &[u8]) -> bool {
        let wanted = self.value(item);
        self.values().find(|&value| value >= wanted) == Some(wanted)
    }

    /// Tells whether at least one of many items may be in. Sorts them, and reads the set once, up to the first match; no items never
    /// match.
    #[must_use]
    pub fn contains_any(&self, items: &[impl AsRef<[u8]>]) -> bool {
        let mut wanted: Vec<_> = items.iter().map(|item| self.value(item.as_ref())).collect();
        wanted.sort_unstable();
        let mut wanted = wanted.into_iter().peekable();
        for value in self.values() {
            while wanted.next_if(|&wanted| wanted < value).is_some() {}
            match wanted.peek() {
                Some(&wanted) if wanted == value => return true,
                Some(_) => {}
                None => return false,
            }
        }
        false
    }

    /// Tells for many items whether they may be in. Sorts them, and reads the set once.
    pub fn contains_each<K: AsRef<[u8]>>(&self, items: &[K], answers: &mut Answers) {
        let answers = answers.reset(items.len());
        let wanted = items.iter().map(|item| self.value(item.as_ref()));
        let mut wanted: Vec<_> = wanted.zip(0_usize..).collect();
        wanted.sort_unstable();
        let mut wanted = wanted.into_iter().peekable();
        for value in self.values() {
            while let Some((found, at)) = wanted.next_if(|&(wanted, _)| wanted <= value) {
                answers[at / 64] |= u64::from(found == value) << (at % 64);
            }
            if wanted.peek().is_none() {
                return;
            }
        }
    }

    /// Returns the double SHA-256 of its bytes.
    #[must_use]
    pub fn hash(&self) -> Hash256 {
        Hash256::of(&[&self.bytes])
    }

    /// Returns where an item's hash falls in the range of all values.
    fn value(&self, item: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        hasher.write(item);
        let range = range(self.len, self.params);
        ((u128::from(hasher.finish()) * u128::from(range)) >> 64) as u64
    }
}

impl StoredFilter for GolombSet {
    const MERGE_REFUSAL: Option<&'static str> = Some(Self::WRITTEN_ONCE);

    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        self.contains_each(keys, answers);
    }

    fn insert_each(&mut self, _: &[&[u8]], _: &mut Answers) -> Result<(), ChangeError> {
        Err(ChangeError::refused(Self::WRITTEN_ONCE))
    }

    fn info(&self) -> FilterInfo {
        let rate = if self.is_empty() { 0.0 } else { 1.0 / f64::from(self.params.m) };
        let params = format!("{}, {}", self.params.p, self.params.m);
        FilterInfo {
            rule: "SipHash-2-4, Golomb-coded set".into(),
            bits: (self.bytes.len() - self.values_at) as u64 * 8,
            // There is no place for another item.
            fill: 1.0,
            items: self.len.into(),
            rate,
            more: vec![("P, M", params), ("filter hash", self.hash().to_string())],
            ..FilterInfo::default()
        }
    }
}

/// Returns the number of values there can be.
fn range(len: u32, params: GolombParams) -> u64 {
    u64::from(len) * u64::from(params.m)
}

/// Returns where the values start and how many there are, if bytes are a set and nothing more.
pub(crate) fn check(bytes: &[u8], params: GolombParams) -> Result<(usize, u32), DecodeError> {
    let mut reader = Reader::new(bytes);
    let start = reader.clone();
    let found = compact_size::read(&mut reader, "number of items")?;
    let values_at = reader.at();
    let len = u32::try_from(found).map_err(|_| {
        let kind = DecodeErrorKind::Unexpected { expected: "below 2³²", found: found.into() };
        start.error("number of items", kind)
    })?;
    let mut values = Values::new(&bytes[values_at..], params, len);
    loop {
        match values.next_value() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(fault) => {
                let at = (values_at + values.bytes_read()).min(bytes.len()) as u64;
                let kind = match fault {
                    Fault::Ended => {
                        let found = bytes.len() as u64;
                        DecodeErrorKind::Truncated { expected: found + 1, found }
                    }
                    Fault::OutOfRange => {
                        DecodeErrorKind::Damaged { reason: "a value is out of range" }
                    }
                };
                return Err(DecodeError { field: "values", at, kind });
            }
        }
    }
    let end = values_at + values.bytes_read();
    if end < bytes.len() {
        let kind = DecodeErrorKind::TooLong { expected: end as u64 };
        return Err(DecodeError { field: "values", at: end as u64, kind });
    }
    Ok((values_at, len))
}

/// Why a value cannot be read.
enum Fault {
    Ended,
    OutOfRange,
}

/// Reads values one after the other.
struct Values<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bits that are read next, from the highest on; below `len` of them may be others, which are those of `bytes[at..]`.
    window: u64,
    len: u32,
    p: u32,
    range: u64,
    last: u64,
    left: u32,
}

impl<'a> Values<'a> {
    fn new(bytes: &'a [u8], params: GolombParams, left: u32) -> Self {
        let (p, range) = (params.p.into(), range(left, params));
        Self { bytes, at: 0, window: 0, len: 0, p, range, last: 0, left }
    }

    /// Returns the next value; `None` behind the last.
    fn next_value(&mut self) -> Result<Option<u64>, Fault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        // A step that reaches beyond the range is not read to its end: a stream of ones would be a long one.
        let max_step = self.range - 1 - self.last;
        let mut quotient = 0;
        loop {
            self.refill();
            let ones = self.window.leading_ones().min(self.len);
            quotient += u64::from(ones);
            if quotient > max_step >> self.p {
                return Err(Fault::OutOfRange);
            }
            if ones < self.len {
                self.skip(ones + 1);
                break;
            }
            if self.len == 0 {
                return Err(Fault::Ended);
            }
            self.skip(ones);
        }
        self.refill();
        if self.len < self.p {
            return Err(Fault::Ended);
        }
        // In two steps: P may be 0.
        let remainder = self.window >> 1 >> (63 - self.p);
        self.skip(self.p);
        // No overflow: without its remainder, the step is within the range.
        let step = quotient << self.p | remainder;
        if step > max_step {
            return Err(Fault::OutOfRange);
        }
        (self.last, self.left) = (self.last + step, left);
        Ok(Some(self.last))
    }

    /// Takes bytes until at least 56 bits are there, or all.
    #[inline(always)]
    fn refill(&mut self) {
        if let Some((&word, _)) = self.bytes[self.at..].split_first_chunk() {
            // Bits of a byte that has no room are left there, and are the same when they come again.
            self.window |= u64::from_be_bytes(word) >> self.len;
            self.at += ((63 - self.len) / 8) as usize;
            self.len |= 56;
            return;
        }
        while self.len < 56 && self.at < self.bytes.len() {
            self.window |= u64::from(self.bytes[self.at]) << (56 - self.len);
            self.at += 1;
            self.len += 8;
        }
    }

    /// Drops bits, fewer than 64, that are there.
    #[inline(always)]
    fn skip(&mut self, bits: u32) {
        self.window <<= bits;
        self.len -= bits;
    }

    /// Returns how many bytes were read, the last one perhaps in part.
    fn bytes_read(&self) -> usize {
        self.at - (self.len / 8) as usize
    }
}

/// Appends bits to bytes, the highest first.
struct BitWriter {
    bytes: Vec<u8>,
    // The lowest `len` bits, fewer than 8, wait for others to make a byte.
    pending: u64,
    len: u32,
}

impl BitWriter {
    /// Writes the lowest `len` bits of `value`, up to 56; the others are zero.
    fn write(&mut self, value: u64, len: u32) {
        self.pending = self.pending << len | value;
        self.len += len;
        while self.len >= 8 {
            self.len -= 8;
            self.bytes.push((self.pending >> self.len) as u8);
        }
        self.pending &= (1 << self.len) - 1;
    }

    fn write_ones(&mut self, mut count: u64) {
        while count > 0 {
            let len = count.min(32) as u32;
            self.write((1 << len) - 1, len);
            count -= u64::from(len);
        }
    }

    /// Returns the bytes; what is missing to a whole one is zero.
    fn finish(mut self) -> Vec<u8> {
        let missing = (8 - self.len) % 8;
        self.write(0, missing);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params() -> impl Strategy<Value = GolombParams> {
        (0..=32_u8, 1..=4_u32, 0..1000_u32).prop_map(|(p, times, more)| {
            // Few ones in each step, so that no set is large.
            let m = (1_u64 << p) * u64::from(times) + u64::from(more);
            GolombParams::new(p, u32::try_from(m).unwrap_or(u32::MAX)).unwrap()
        })
    }

    proptest! {
        #[test]
        fn values_come_back_and_questions_agree(
            items: Vec<Vec<u8>>, asked: Vec<Vec<u8>>, params in params(), key: [u64; 2],
        ) {
            let set = GolombSet::new(key, params, &items).unwrap();
            let mut distinct = items.clone();
            distinct.sort();
            distinct.dedup();
            let mut values: Vec<_> = distinct.iter().map(|item| set.value(item)).collect();
            values.sort_unstable();
            prop_assert_eq!(set.values().collect::<Vec<_>>(), &values[..]);
            prop_assert_eq!(&GolombSet::decode(set.bytes(), key, params).unwrap(), &set);
            for cut in set.values_at..set.bytes.len() {
                prop_assert!(GolombSet::decode(&set.bytes[..cut], key, params).is_err());
            }
            let all = [items, asked].concat();
            let mut answers = Answers::new();
            set.contains_each(&all, &mut answers);
            for (item, answer) in all.iter().zip(answers.iter()) {
                prop_assert_eq!(answer, values.binary_search(&set.value(item)).is_ok());
                prop_assert_eq!(answer, set.contains(item));
                prop_assert_eq!(answer, set.contains_any(&[item]));
            }
            prop_assert_eq!(set.contains_any(&all), !distinct.is_empty());
        }

        #[test]
        fn any_bytes_are_a_set_or_an_error(bytes: Vec<u8>, params in params()) {
            if let Ok(set) = GolombSet::decode(&bytes, [0, 0], params) {
                prop_assert_eq!(set.values().count(), set.len() as usize);
                prop_assert!(set.values().is_sorted());
            }
        }
    }
}
