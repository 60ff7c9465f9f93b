//! A Bloom filter of another system: one run of bits, and the rule by which it is probed.
//!
//! Whatever the order of its bits in a file, here bit `i` is bit `i % 64` of word `i / 64`: formats with one rule are the same
//! filter.

use std::io;

use tamis::{Answers, Bitmap, Bits as _, BitsMut as _, OutOfMemory, prefetch};

use crate::contents::FilterInfo;
use crate::error::EncodeError;
use crate::guava::write_words;
use crate::rule::{ProbeRule, Rule, fill, rate_std_error, with_rule};

/// A Bloom filter that answers bit for bit as another system's does.
///
/// Items are bytes as that system hashes them: see [`Funnel`](crate::Funnel).
///
/// # Examples
///
/// ```
/// use tamis_formats::guava::{self, Probes, Strategy};
///
/// let mut users = guava::create(1_000, 0.01, Strategy::Mitz64, Probes::Since33)?;
/// assert!(users.insert(b"user:1"), "new");
/// assert!(users.contains(b"user:1"));
/// # Ok::<(), guava::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignBloom {
    rule: Rule,
    // Invariant: as many words as the rule's bits take, and no bit at or above them is set.
    bits: Bitmap,
}

impl ForeignBloom {
    /// Makes an empty filter.
    ///
    /// # Errors
    ///
    /// If the memory is not there.
    pub fn new(rule: Rule) -> Result<Self, OutOfMemory> {
        Ok(Self { bits: Bitmap::zeroed(rule.bits())?, rule })
    }

    /// Makes a filter whose words come from `words` in order, missing ones zero. Bits above the rule's are dropped.
    ///
    /// # Errors
    ///
    /// If the memory is not there.
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

    /// Makes a filter of the bytes of its bits, the least significant first, missing ones zero. Bits above the rule's are
    /// dropped.
    ///
    /// # Errors
    ///
    /// If the memory is not there.
    pub(crate) fn from_bytes(rule: Rule, bytes: &[u8]) -> Result<Self, OutOfMemory> {
        Self::from_words(rule, words_of(bytes))
    }

    /// Writes as many bytes as the bits take, the least significant bit of each first.
    pub(crate) fn write_bytes(&self, out: &mut dyn io::Write) -> Result<(), EncodeError> {
        let bytes = self.rule.bits().div_ceil(8);
        let (whole, rest) = self.words().split_at((bytes / 8) as usize);
        write_words(whole, out, u64::to_le_bytes)?;
        if let Some(rest) = rest.first() {
            out.write_all(&rest.to_le_bytes()[..(bytes % 8) as usize])?;
        }
        Ok(())
    }

    /// Returns the rule: filters of equal rules merge, and move between formats.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Returns the words: bit `i` is bit `i % 64` of word `i / 64`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.bits.words()[..self.rule.bits().div_ceil(64) as usize]
    }

    /// Tells whether an item may be in, as the original does.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let words = self.bits.words();
        with_rule!(&self.rule, rule => contains(rule, words, rule.hash(key)))
    }

    /// Tells for many items whether they may be in, several times as fast as one by one.
    pub fn contains_each<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Answers) {
        let (words, answers) = (self.bits.words(), answers.reset(keys.len()));
        with_rule!(&self.rule, rule => contains_each(rule, words, keys, answers));
    }

    /// Tells for many items whether they may be in any of these filters.
    pub(crate) fn any_contains_each<'f, K: AsRef<[u8]>>(
        filters: impl Iterator<Item = &'f Self>,
        keys: &[K],
        answers: &mut Answers,
    ) {
        let mut any = vec![0; answers.reset(keys.len()).len()];
        for filter in filters {
            filter.contains_each(keys, answers);
            any.iter_mut().zip(answers.words()).for_each(|(any, found)| *any |= found);
        }
        answers.reset(keys.len()).copy_from_slice(&any);
    }

    /// Inserts an item; true if a bit changed, so that it is certainly new.
    pub fn insert(&mut self, key: &[u8]) -> bool {
        self.insert_counted(key) > 0
    }

    /// Inserts an item; returns how many bits changed.
    pub(crate) fn insert_counted(&mut self, key: &[u8]) -> u32 {
        let words = self.bits.words_mut();
        with_rule!(&self.rule, rule => insert(rule, words, rule.hash(key)))
    }

    /// Inserts many items in order; tells which were new.
    pub fn insert_each<K: AsRef<[u8]>>(&mut self, keys: &[K], answers: &mut Answers) {
        let (words, answers) = (self.bits.words_mut(), answers.reset(keys.len()));
        with_rule!(&self.rule, rule => insert_each(rule, words, keys, answers));
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        self.bits.words_mut().fill(0);
    }

    /// Adds all items of a filter of the same rule; false, and nothing is changed, if it is of another.
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

    /// Counts the bits that are set. Reads all of them.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.bits.count_ones()
    }

    /// Returns the share of bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        fill(self.words(), self.rule.bits())
    }

    /// Estimates from the bits how many distinct items are in; infinite if all are set.
    #[must_use]
    pub fn estimate_items(&self) -> f64 {
        with_rule!(&self.rule, rule => rule.estimate_items(self.words()))
    }

    /// Reads from the bits what there is to tell. Linear time.
    #[must_use]
    pub fn info(&self) -> FilterInfo {
        let mut info = FilterInfo {
            rule: self.rule.to_string(),
            bits: self.rule.bits(),
            probes: Some(self.rule.probes()),
            fill: self.fill(),
            items: self.estimate_items(),
            rate: self.estimate_rate(),
            rate_std_error: self.rate_std_error(),
            ..FilterInfo::default()
        };
        self.rule.describe(&mut info);
        info
    }

    /// Returns how far chance moves the rate, as a share of it.
    pub(crate) fn rate_std_error(&self) -> f64 {
        rate_std_error(self.fill(), self.rule.bits(), self.rule.probes())
    }

    /// Estimates from the bits the rate at which absent items are taken for present ones.
    #[must_use]
    pub fn estimate_rate(&self) -> f64 {
        with_rule!(&self.rule, rule => rule.estimate_rate(self.words()))
    }
}

/// Returns the words that bytes are, the least significant first; the last is filled up with zeros.
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

#[inline(always)]
fn is_set(words: &[u64], bit: u64) -> bool {
    words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
}

#[inline(always)]
fn contains<R: ProbeRule>(rule: &R, words: &[u64], hash: R::Hash<'_>) -> bool {
    rule.each_probe(hash).all(|bit| is_set(words, bit))
}

#[inline(always)]
fn insert<R: ProbeRule>(rule: &R, words: &mut [u64], hash: R::Hash<'_>) -> u32 {
    let mut changed = 0;
    for bit in rule.each_probe(hash) {
        let word = &mut words[(bit / 64) as usize];
        changed += u32::from(*word >> (bit % 64) & 1 == 0);
        *word |= 1 << (bit % 64);
    }
    changed
}

/// How many items are asked for together.
const BATCH: usize = 64;

/// How many probes are made at first: of an absent item more than two are seldom needed in a filter that is half full.
const FIRST_PROBES: usize = 2;

fn contains_each<R: ProbeRule>(
    rule: &R,
    words: &[u64],
    keys: &[impl AsRef<[u8]>],
    answers: &mut [u64],
) {
    if R::IS_SMALL {
        for (i, key) in keys.iter().enumerate() {
            answers[i / 64] |=
                u64::from(contains(rule, words, rule.hash(key.as_ref()))) << (i % 64);
        }
        return;
    }
    let mut hashes = [R::Hash::<'_>::default(); BATCH];
    for (keys, answer) in keys.chunks(BATCH).zip(answers) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = rule.hash(key.as_ref());
            for bit in rule.each_probe(*hash).take(FIRST_PROBES) {
                prefetch(words, (bit / 64) as usize);
            }
        }
        let hashes = &hashes[..keys.len()];
        let mut left = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            // Without a branch an item: half of the branches would be guessed wrong.
            let first = rule.each_probe(hash).take(FIRST_PROBES);
            left |= u64::from(first.fold(true, |all, bit| all & is_set(words, bit))) << i;
        }
        for hash in ones(left).map(|i| hashes[i]) {
            for bit in rule.each_probe(hash).skip(FIRST_PROBES) {
                prefetch(words, (bit / 64) as usize);
            }
        }
        *answer = 0;
        for i in ones(left) {
            let mut rest = rule.each_probe(hashes[i]).skip(FIRST_PROBES);
            *answer |= u64::from(rest.all(|bit| is_set(words, bit))) << i;
        }
    }
}

fn insert_each<R: ProbeRule>(
    rule: &R,
    words: &mut [u64],
    keys: &[impl AsRef<[u8]>],
    answers: &mut [u64],
) {
    if R::IS_SMALL {
        for (i, key) in keys.iter().enumerate() {
            answers[i / 64] |=
                u64::from(insert(rule, words, rule.hash(key.as_ref())) > 0) << (i % 64);
        }
        return;
    }
    let mut hashes = [R::Hash::<'_>::default(); BATCH];
    for (keys, answer) in keys.chunks(BATCH).zip(answers) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = rule.hash(key.as_ref());
            for bit in rule.each_probe(*hash) {
                prefetch(words, (bit / 64) as usize);
            }
        }
        *answer = 0;
        for (i, &hash) in hashes[..keys.len()].iter().enumerate() {
            *answer |= u64::from(insert(rule, words, hash) > 0) << i;
        }
    }
}

/// Iterates over the numbers of the bits that are set.
pub(crate) fn ones(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(at)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bip37::Bip37;
    use crate::guava_rules::{Mitz32, Mitz64};

    fn filters() -> Vec<ForeignBloom> {
        [(1, 0), (1, 3), (100, 1), (1152, 8), (100_003, 30)]
            .into_iter()
            .flat_map(|(bits, probes)| {
                [
                    Rule::Mitz32(Mitz32::new(bits, probes).unwrap()),
                    Rule::Mitz64(Mitz64::new(bits, probes).unwrap()),
                ]
            })
            .chain(
                [(0, 3), (1, 0), (144, 8)]
                    .map(|(bytes, k)| Rule::Bip37(Bip37::new(bytes, k, 1, 0))),
            )
            .map(|rule| ForeignBloom::new(rule).unwrap())
            .collect()
    }

    proptest! {
        #[test]
        fn batches_answer_as_single_items(items: Vec<u16>, asked in prop::collection::vec(0..300_u16, 0..200)) {
            for mut one in filters() {
                let mut each = one.clone();
                let keys = |items: &[u16]| items.iter().map(|item| item.to_le_bytes()).collect::<Vec<_>>();
                let mut answers = Answers::new();
                each.insert_each(&keys(&items), &mut answers);
                let new: Vec<_> = keys(&items).iter().map(|key| one.insert(key)).collect();
                prop_assert_eq!(answers.iter().collect::<Vec<_>>(), new);
                prop_assert_eq!(&each, &one);
                for asked in [&items, &asked] {
                    each.contains_each(&keys(asked), &mut answers);
                    let found: Vec<_> = keys(asked).iter().map(|key| one.contains(key)).collect();
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
        let rule = Rule::Mitz64(Mitz64::new(70, 1).unwrap());
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
