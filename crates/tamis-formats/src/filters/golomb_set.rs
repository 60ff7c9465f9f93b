//! Golomb-coded sets: sorted hashes of items. Each hash is stored as the difference from the previous hash.
//!
//! ```text
//! item → SipHash-2-4 → value in 0 … N·M−1 (high half of hash · N·M) → sorted → step d from the value before
//!
//! d = q·2ᴾ + r:   | 1 … 1 | 0 | r: P bits |     the most significant bit of a byte first
//!                   q ones
//! ```
//!
//! A set with the parameter P takes about P + 2 bits per item, less than any filter with random access. The
//! disadvantage of a Golomb-coded set is that each lookup reads the set from its start. All values depend on the number
//! of items N, so inserting an item would change all values.
//!
//! Sources: Golomb, "Run-length encodings" (1966); Rice (1979) for the division by a power of two; BIP-158 for the
//! bytes.

mod coding;
mod params;

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;
use tamis::Answers;

use crate::encoding::bitcoin::{Hash256, compact_size};
use crate::errors::{ChangeError, DecodeError};
use crate::filters::filter_info::FilterInfo;
use crate::filters::golomb_set::coding::{BitWriter, GolombValues, range};
use crate::filters::stored_filter::StoredFilter;
pub(crate) use coding::check;
pub use params::{GolombError, GolombParams};

/// An immutable set of items with the parameters P and M: about P + 2 bits per item, and a false positive rate of 1/M.
///
/// Every lookup reads the set from its start. Test items in batches to read the set only once.
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
    // Invariant: `bytes` contains the compact size n, then n encoded values below `range`. At least one bit of the last
    // byte is used.
    bytes: Vec<u8>,
    values_at: usize,
    len: u32,
}

impl GolombSet {
    /// The reason why a set cannot change, and what to do.
    const WRITTEN_ONCE: &'static str = "a Golomb-coded set is written once: its values depend on \
        how many items there are, so build a new one from all items";

    /// Creates a set of the distinct items.
    ///
    /// Sorts the items and the values. Needs memory for one reference and one number per item, in addition to the bytes
    /// of the set.
    ///
    /// # Errors
    ///
    /// [`GolombError::TooManyItems`] if the number of distinct items is 2³² or more.
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
        let mut bits = BitWriter::new(std::mem::take(&mut set.bytes));
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

    /// Decodes a set as Bitcoin Core does, and checks every value in addition. Rejects trailing bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the number of items is 2³² or more, or is not in its shortest form. [`DecodeError`] if values
    /// are missing or out of range, or if bytes follow the last value.
    ///
    /// Some libraries accept bytes that `decode` rejects. The library rust-bitcoin accepts trailing bytes. rust-bitcoin
    /// decodes bytes without a number of items as the empty set. rust-bitcoin detects missing values only during a
    /// lookup. Bitcoin Core accepts values out of range, which no writer produces. A value out of range could be a long
    /// run of 1 bits, which would take a long time to read.
    pub fn decode(bytes: &[u8], key: [u64; 2], params: GolombParams) -> Result<Self, DecodeError> {
        let (values_at, len) = check(bytes, params)?;
        Ok(Self { key, params, bytes: bytes.to_vec(), values_at, len })
    }

    /// Returns the encoded bytes: the number of items, then the values.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the parameters.
    #[must_use]
    pub fn params(&self) -> GolombParams {
        self.params
    }

    /// Returns the number of distinct items.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Tests whether the set has no items. No item is found in an empty set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the values in ascending order. Two items may have the same value.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let mut values = GolombValues::new(&self.bytes[self.values_at..], self.params, self.len);
        std::iter::from_fn(move || values.next_value().ok().flatten())
    }

    /// Tests whether an item may be in the set. Reads half of the set on average.
    #[must_use]
    pub fn contains(&self, item: &[u8]) -> bool {
        let wanted = self.value(item);
        self.values().find(|&value| value >= wanted) == Some(wanted)
    }

    /// Tests whether any of the items may be in the set. Sorts the items and reads the set once, up to the first match.
    /// Returns false if `items` is empty.
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

    /// Tests a batch of items. Sorts the items and reads the set once.
    pub fn contains_each<K: AsRef<[u8]>>(&self, items: &[K], answers: &mut Answers) {
        answers.reset(items.len());
        let wanted = items.iter().map(|item| self.value(item.as_ref()));
        let mut wanted: Vec<_> = wanted.zip(0_usize..).collect();
        wanted.sort_unstable();
        let mut wanted = wanted.into_iter().peekable();
        for value in self.values() {
            while let Some((found, at)) = wanted.next_if(|&(wanted, _)| wanted <= value) {
                answers.set(at, found == value);
            }
            if wanted.peek().is_none() {
                return;
            }
        }
    }

    /// Returns the double SHA-256 of the encoded bytes.
    #[must_use]
    pub fn hash(&self) -> Hash256 {
        Hash256::of(&[&self.bytes])
    }

    /// Maps the hash of an item to the range of all values.
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
            layout: "SipHash-2-4, Golomb-coded set".into(),
            bits: (self.bytes.len() - self.values_at) as u64 * 8,
            // The set is full, because no item can be inserted.
            fill: 1.0,
            items: self.len.into(),
            rate_now: rate,
            details: vec![("P, M", params), ("filter hash", self.hash().to_string())],
            ..FilterInfo::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params() -> impl Strategy<Value = GolombParams> {
        (0..=32_u8, 1..=4_u32, 0..1000_u32).prop_map(|(p, times, more)| {
            // Small quotients keep the test sets short.
            let m = (1_u64 << p) * u64::from(times) + u64::from(more);
            GolombParams::new(p, u32::try_from(m).unwrap_or(u32::MAX)).unwrap()
        })
    }

    proptest! {
        #[test]
        fn values_come_back_and_questions_agree(
            items: Vec<Vec<u8>>, lookups: Vec<Vec<u8>>, params in params(), key: [u64; 2],
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
            let all = [items, lookups].concat();
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
