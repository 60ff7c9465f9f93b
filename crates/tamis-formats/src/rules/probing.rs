//! The loops over the items and probes of a batch. The compiler creates the loops once for each rule.
//!
//! Because a large filter does not fit into the CPU caches, the loops first prefetch the words of many items, and then
//! read the words.

use tamis::prefetch;

use crate::encoding::ones;
use crate::rules::probe_rule::ProbeRule;

#[inline(always)]
fn is_set(words: &[u64], bit: u64) -> bool {
    words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
}

#[inline(always)]
pub(crate) fn contains<R: ProbeRule>(rule: &R, words: &[u64], hash: R::Hash<'_>) -> bool {
    rule.each_probe(hash).all(|bit| is_set(words, bit))
}

#[inline(always)]
pub(crate) fn insert<R: ProbeRule>(rule: &R, words: &mut [u64], hash: R::Hash<'_>) -> u32 {
    let mut changed = 0;
    for bit in rule.each_probe(hash) {
        let word = &mut words[(bit / 64) as usize];
        changed += u32::from(*word >> (bit % 64) & 1 == 0);
        *word |= 1 << (bit % 64);
    }
    changed
}

/// The number of items of a batch.
const BATCH: usize = 64;

/// The number of probes that the first round tests. In a half-full filter, an absent item seldom needs more than two
/// probes.
const FIRST_PROBES: usize = 2;

pub(crate) fn contains_each<R: ProbeRule>(
    rule: &R,
    words: &[u64],
    keys: &[&[u8]],
    answers: &mut [u64],
) {
    if R::IS_SMALL {
        for (i, key) in keys.iter().enumerate() {
            answers[i / 64] |= u64::from(contains(rule, words, rule.hash(key))) << (i % 64);
        }
        return;
    }
    let mut hashes = [R::Hash::<'_>::default(); BATCH];
    for (keys, answer) in keys.chunks(BATCH).zip(answers) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = rule.hash(key);
            for bit in rule.each_probe(*hash).take(FIRST_PROBES) {
                prefetch(words, (bit / 64) as usize);
            }
        }
        let hashes = &hashes[..keys.len()];
        let mut left = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            // The code has no branches, because half of all branches would be mispredicted.
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

pub(crate) fn insert_each<R: ProbeRule>(
    rule: &R,
    words: &mut [u64],
    keys: &[&[u8]],
    answers: &mut [u64],
) {
    if R::IS_SMALL {
        for (i, key) in keys.iter().enumerate() {
            answers[i / 64] |= u64::from(insert(rule, words, rule.hash(key)) > 0) << (i % 64);
        }
        return;
    }
    let mut hashes = [R::Hash::<'_>::default(); BATCH];
    for (keys, answer) in keys.chunks(BATCH).zip(answers) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = rule.hash(key);
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
