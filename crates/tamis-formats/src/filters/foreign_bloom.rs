//! A Bloom filter of another system: its bits, and the rule that computes the bit numbers of an item.
//!
//! In memory, bit `i` is always bit `i % 64` of word `i / 64`, independently of the order in the file. Because the
//! order in memory is fixed, formats with equal rules can store the same filter.

use std::io;

use tamis::{Answers, Bitmap, Bits as _, BitsMut as _, OutOfMemory};

use crate::encoding::{ByteReader, words_of, write_words};
use crate::errors::{ChangeError, DecodeError, EncodeError};
use crate::filters::answer_each::answer_each;
use crate::filters::contents::Contents;
use crate::filters::filter_info::FilterInfo;
use crate::filters::stored_filter::StoredFilter;
use crate::rules::{EstimatedRate, Rule, fill};

/// A Bloom filter with the same bits and the same answers as a filter of another system.
///
/// An item is given as the bytes that the original system hashes: see [`Funnel`](crate::Funnel).
///
/// # Examples
///
/// ```
/// use tamis_formats::guava::{self, GuavaRelease, GuavaStrategy};
///
/// let mut users = guava::create(1_000, 0.01, GuavaStrategy::Mitz64, GuavaRelease::Since33)?;
/// assert!(users.insert(b"user:1"), "new");
/// assert!(users.contains(b"user:1"));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignBloom {
    rule: Rule,
    // Invariant: `bits` has exactly the words that the bits of the rule need. No bit after the last bit of the rule is
    // set.
    bits: Bitmap,
}

impl ForeignBloom {
    /// Creates an empty filter.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the allocation fails.
    pub fn new(rule: Rule) -> Result<Self, OutOfMemory> {
        Ok(Self { bits: Bitmap::zeroed(rule.bits())?, rule })
    }

    /// Creates a filter from `words` in order. Missing words are zero. Bits after the last bit of
    /// the rule are dropped.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the allocation fails.
    pub(crate) fn from_words(
        rule: Rule,
        words: impl Iterator<Item = u64>,
    ) -> Result<Self, OutOfMemory> {
        let mut filter = Self::new(rule)?;
        let len = filter.rule.bits().div_ceil(64) as usize;
        for (to, word) in filter.bits.words_mut()[..len].iter_mut().zip(words) {
            *to = word;
        }
        let used = filter.rule.bits() % 64;
        if used != 0 {
            filter.bits.words_mut()[len - 1] &= (1 << used) - 1;
        }
        Ok(filter)
    }

    /// Creates a filter from the bytes of its bits, the least significant bit of each byte first.
    /// Missing bytes are zero. Bits after the last bit of the rule are dropped.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the allocation fails.
    pub(crate) fn from_bytes(rule: Rule, bytes: &[u8]) -> Result<Self, OutOfMemory> {
        Self::from_words(rule, words_of(bytes))
    }

    /// Reads the field "words": the bits as whole words of 8 bytes. Checks the length before allocating memory.
    pub(crate) fn read_words(
        rule: Rule,
        reader: &mut ByteReader<'_>,
        from_bytes: fn([u8; 8]) -> u64,
    ) -> Result<Self, DecodeError> {
        let at = reader.at();
        let len = usize::try_from(rule.bits().div_ceil(64) * 8).unwrap_or(usize::MAX);
        let data = reader.bytes("words", len)?;
        let words = data.as_chunks().0.iter().map(|&word| from_bytes(word));
        Self::from_words(rule, words).map_err(DecodeError::memory("words", at))
    }

    /// Reads the field "bits": the bytes that contain the bits of the rule. Checks the length before allocating memory.
    pub(crate) fn read_bytes(rule: Rule, reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        let at = reader.at();
        let len = usize::try_from(rule.bits().div_ceil(8)).unwrap_or(usize::MAX);
        let data = reader.bytes("bits", len)?;
        Self::from_bytes(rule, data).map_err(DecodeError::memory("bits", at))
    }

    /// Writes the bytes that contain the bits of the rule, the least significant bit of each byte first.
    pub(crate) fn write_bytes(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let bytes = self.rule.bits().div_ceil(8);
        let (whole, rest) = self.words().split_at((bytes / 8) as usize);
        write_words(whole, out, u64::to_le_bytes)?;
        if let Some(rest) = rest.first() {
            out.write_all(&rest.to_le_bytes()[..(bytes % 8) as usize])?;
        }
        Ok(())
    }

    /// Returns the filter in `contents`, for a format of `system` that stores Bloom filters.
    ///
    /// # Errors
    ///
    /// [`EncodeError::NeedsItems`] if `contents` are not a [`ForeignBloom`].
    pub(crate) fn of<'c>(contents: &'c Contents, system: &str) -> Result<&'c Self, EncodeError> {
        contents.downcast_ref().ok_or_else(|| {
            EncodeError::needs_items(format!("{system} cannot store this kind of filter"))
        })
    }

    /// Returns the filter in `contents` and its rule, for a format of `system` with the rule `R`.
    ///
    /// # Errors
    ///
    /// [`EncodeError::NeedsItems`] if `contents` are not a [`ForeignBloom`], or if the type of the rule is not `R`.
    pub(crate) fn with_rule<'c, R: 'static>(
        contents: &'c Contents,
        system: &str,
    ) -> Result<(&'c Self, &'c R), EncodeError> {
        let filter = Self::of(contents, system)?;
        Ok((filter, filter.rule_of(system)?))
    }

    /// Returns the rule if the type of the rule is `R`, the rule type of `system`.
    ///
    /// # Errors
    ///
    /// [`EncodeError::NeedsItems`] if the type of the rule is not `R`.
    pub(crate) fn rule_of<R: 'static>(&self, system: &str) -> Result<&R, EncodeError> {
        self.rule.downcast_ref().ok_or_else(|| {
            let rule = &self.rule;
            EncodeError::needs_items(format!("{system} sets other bits for an item than {rule}"))
        })
    }

    /// Returns the rule. Filters with equal rules can merge and can be converted between their formats.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Returns the words. Bit `i` is bit `i % 64` of word `i / 64`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.bits.words()[..self.rule.bits().div_ceil(64) as usize]
    }

    /// Tests whether an item may be in the filter.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.rule.any().contains(self.bits.words(), key)
    }

    /// Tests a batch of items. In a large filter, a batch is several times as fast as repeated calls of
    /// [`contains`](Self::contains).
    pub fn contains_each<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Answers) {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.contains_slices(&keys, answers);
    }

    fn contains_slices(&self, keys: &[&[u8]], answers: &mut Answers) {
        self.rule.any().contains_each(self.bits.words(), keys, answers.reset(keys.len()));
    }

    /// Tests for each item of a batch whether any of `filters` may contain the item. Writes the results to `answers`.
    pub(crate) fn any_contains_each<'f>(
        filters: impl Iterator<Item = &'f Self>,
        keys: &[&[u8]],
        answers: &mut Answers,
    ) {
        let mut any = vec![0; answers.reset(keys.len()).len()];
        for filter in filters {
            filter.contains_slices(keys, answers);
            any.iter_mut().zip(answers.words()).for_each(|(any, found)| *any |= found);
        }
        answers.reset(keys.len()).copy_from_slice(&any);
    }

    /// Inserts an item. Returns true if a bit changed: then the item is certainly new.
    pub fn insert(&mut self, key: &[u8]) -> bool {
        self.insert_counted(key) > 0
    }

    /// Inserts an item. Returns the number of changed bits.
    pub(crate) fn insert_counted(&mut self, key: &[u8]) -> u32 {
        self.rule.any().insert(self.bits.words_mut(), key)
    }

    /// Inserts a batch of items in order. Writes to `answers` for each item whether the item is certainly new.
    pub fn insert_each<K: AsRef<[u8]>>(&mut self, keys: &[K], answers: &mut Answers) {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.insert_slices(&keys, answers);
    }

    fn insert_slices(&mut self, keys: &[&[u8]], answers: &mut Answers) {
        self.rule.any().insert_each(self.bits.words_mut(), keys, answers.reset(keys.len()));
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        self.bits.words_mut().fill(0);
    }

    /// Merges all items of `other` into the filter. If the rules differ, returns false and changes nothing.
    #[must_use = "filters of different rules do not merge"]
    pub fn merge(&mut self, other: &Self) -> bool {
        let is_alike = self.rule == other.rule;
        if is_alike {
            for (to, from) in self.bits.words_mut().iter_mut().zip(other.bits.words()) {
                *to |= from;
            }
        }
        is_alike
    }

    /// Merges each filter with the filter at the same index of `others`. If the numbers of filters or the rules differ,
    /// returns false and changes nothing.
    pub(crate) fn merge_all(filters: &mut [Self], others: &[Self]) -> bool {
        let is_alike = filters.len() == others.len()
            && filters.iter().zip(others).all(|(one, other)| one.rule == other.rule);
        is_alike && filters.iter_mut().zip(others).all(|(one, other)| one.merge(other))
    }

    /// Counts the bits that are set. Linear time.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.bits.count_ones()
    }

    /// Returns the share of bits that are set. Linear time.
    #[must_use]
    pub fn fill(&self) -> f64 {
        fill(self.words(), self.rule.bits())
    }

    /// Estimates the number of distinct items from the bits. The estimate is infinite if all bits are set. Linear time.
    #[must_use]
    pub fn estimate_items(&self) -> f64 {
        self.rule.any().estimate_items(self.words())
    }

    /// Estimates the false positive rate from the bits. Takes linear time, plus up to about 50 ms for a rule whose rate
    /// is measured.
    ///
    /// The rate is often above the textbook rate, which is [`fill`](Self::fill) to the power of the number of probes.
    /// The textbook rate assumes independent probes. In most rules, the probes of an item are multiples of one number,
    /// are in one block, or come from a short hash.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::guava::{self, GuavaRelease, GuavaStrategy};
    ///
    /// let mut few = guava::create(20, 1e-5, GuavaStrategy::Mitz64, GuavaRelease::Since33)?;
    /// (0..20_u32).for_each(|i| drop(few.insert(&i.to_le_bytes())));
    /// assert!(few.fill().powi(17) < 2e-5 && few.estimate_rate() > 2e-3);
    /// # Ok::<(), tamis_formats::CreateError>(())
    /// ```
    #[must_use]
    pub fn estimate_rate(&self) -> f64 {
        self.estimated_rate().rate
    }

    pub(crate) fn estimated_rate(&self) -> EstimatedRate {
        self.rule.any().estimate_rate(self.words())
    }

    /// Computes the report about the filter from the bits. Linear time.
    #[must_use]
    pub fn info(&self) -> FilterInfo {
        let EstimatedRate { rate, std_error } = self.estimated_rate();
        let mut info = FilterInfo {
            layout: self.rule.to_string(),
            bits: self.rule.bits(),
            probes: Some(self.rule.probes()),
            fill: self.fill(),
            items: self.estimate_items(),
            rate_now: rate,
            rate_std_error: std_error,
            ..FilterInfo::default()
        };
        self.rule.any().describe(&mut info);
        info
    }

    /// Returns the sizes, items and rate of several filters together. An item is present if any filter contains the
    /// item.
    pub(crate) fn info_of_all<'f>(filters: impl Iterator<Item = &'f Self> + Clone) -> FilterInfo {
        let bits: u64 = filters.clone().map(|it| it.rule.bits()).sum();
        let ones: u64 = filters.clone().map(Self::count_ones).sum();
        let mut probes = filters.clone().map(|it| it.rule.probes());
        let first = probes.next();
        let rates: Vec<_> = filters.clone().map(Self::estimated_rate).collect();
        let EstimatedRate { rate, std_error } = EstimatedRate::of_any(&rates);
        FilterInfo {
            bits,
            probes: first.filter(|&first| probes.all(|it| it == first)),
            fill: if bits == 0 { 0.0 } else { ones as f64 / bits as f64 },
            items: filters.map(Self::estimate_items).sum(),
            rate_now: rate,
            rate_std_error: std_error,
            ..FilterInfo::default()
        }
    }
}

impl StoredFilter for ForeignBloom {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        match self.rule.item_bytes() {
            // The rule accepts only items of `len` bytes, so the filter contains no item of another length.
            Some(len) if fitting(keys, len) < keys.len() => {
                answer_each(keys, answers, |key| key.len() == len && self.contains(key));
            }
            _ => self.contains_slices(keys, answers),
        }
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        match self.rule.item_bytes() {
            Some(len) if fitting(keys, len) < keys.len() => {
                self.insert_slices(&keys[..fitting(keys, len)], answers);
                Err(ChangeError::refused(format!(
                    "its items are hashes of {len} bytes: name another funnel"
                )))
            }
            _ => {
                self.insert_slices(keys, answers);
                Ok(())
            }
        }
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        Ok(self.merge(other))
    }

    fn info(&self) -> FilterInfo {
        self.info()
    }
}

/// Returns the number of keys before the first key whose length is not `len` bytes.
fn fitting(keys: &[&[u8]], len: usize) -> usize {
    keys.iter().take_while(|key| key.len() == len).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::formats::bip37::rule::Bip37;
    use crate::rules::guava_rules::{Mitz32, Mitz64};

    fn filters() -> Vec<ForeignBloom> {
        [(1, 0), (1, 3), (100, 1), (1152, 8), (100_003, 30)]
            .into_iter()
            .flat_map(|(bits, probes)| {
                [
                    Rule::new(Mitz32::new(bits, probes).unwrap()),
                    Rule::new(Mitz64::new(bits, probes).unwrap()),
                ]
            })
            .chain(
                [(0, 3), (1, 0), (144, 8)].map(|(bytes, k)| Rule::new(Bip37::new(bytes, k, 1, 0))),
            )
            .map(|rule| ForeignBloom::new(rule).unwrap())
            .collect()
    }

    proptest! {
        #[test]
        fn batches_answer_as_single_items(items: Vec<u16>, lookups in prop::collection::vec(0..300_u16, 0..200)) {
            for mut one in filters() {
                let mut each = one.clone();
                let keys = |items: &[u16]| items.iter().map(|item| item.to_le_bytes()).collect::<Vec<_>>();
                let mut answers = Answers::new();
                each.insert_each(&keys(&items), &mut answers);
                let new: Vec<_> = keys(&items).iter().map(|key| one.insert(key)).collect();
                prop_assert_eq!(answers.iter().collect::<Vec<_>>(), new);
                prop_assert_eq!(&each, &one);
                for lookups in [&items, &lookups] {
                    each.contains_each(&keys(lookups), &mut answers);
                    let found: Vec<_> = keys(lookups).iter().map(|key| one.contains(key)).collect();
                    prop_assert_eq!(answers.iter().collect::<Vec<_>>(), found);
                }
                prop_assert!(keys(&items).iter().all(|key| one.contains(key)));
            }
        }
    }

    #[test]
    fn merge_refuses_other_rules() {
        let filters = filters();
        for (i, one) in filters.iter().enumerate() {
            for (j, other) in filters.iter().enumerate() {
                assert_eq!(one.clone().merge(other), i == j);
            }
        }
    }

    #[test]
    fn bits_above_the_rules_are_dropped() {
        let rule = Rule::new(Mitz64::new(70, 1).unwrap());
        let filter = ForeignBloom::from_words(rule, [u64::MAX; 3].into_iter()).unwrap();
        assert_eq!(filter.count_ones(), 70);
        let mut bytes = Vec::new();
        filter.write_bytes(&mut bytes).unwrap();
        assert_eq!(bytes, [&[0xff; 8][..], &[0x3f]].concat());
        assert_eq!(ForeignBloom::from_bytes(filter.rule().clone(), &bytes).unwrap(), filter);
        assert_eq!(filter.fill(), 1.0);
        assert_eq!(filter.estimate_items(), f64::INFINITY);
    }
}
