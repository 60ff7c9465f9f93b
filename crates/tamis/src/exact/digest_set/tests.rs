//! Tests that a digest set holds the same digests as a reference set.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::exact::digest_set::*;
use crate::hash::Hasher;

/// Generates digests that belong to a few cache lines, occur several times, and are sometimes zero
/// or in the last line.
fn crowded() -> impl Strategy<Value = Vec<u64>> {
    let digest = prop_oneof![
        4 => 0_u64..40,
        4 => (0_u64..300).prop_map(|i| i << 55),
        1 => (0_u64..20).prop_map(|i| u64::MAX - i),
        4 => any::<u64>(),
    ];
    prop::collection::vec(digest, 0..2500)
}

fn check<D: Digest + std::hash::Hash>(batches: &[Vec<D>]) {
    let mut set = DigestSet::new();
    let mut oracle = HashSet::new();
    let mut new = Answers::new();
    for batch in batches {
        set.insert_each(batch, &mut new).unwrap();
        let expected: Vec<bool> = batch.iter().map(|digest| oracle.insert(*digest)).collect();
        assert_eq!(new.iter().collect::<Vec<_>>(), expected);
    }
    assert_eq!(set.len(), oracle.len() as u64);
    assert!(oracle.iter().all(|digest| set.contains(*digest)));
    assert_eq!(set.iter().collect::<HashSet<_>>(), oracle);
    assert!(set.iter().count() == oracle.len());
    assert!(set.memory_bytes() <= (DigestSet::<D>::bytes_for(set.len()) * 2).max(1 << 16));
    let mut drained = Vec::new();
    set.drain_each(|digests| drained.extend_from_slice(digests));
    assert_eq!(drained.len(), oracle.len());
    assert_eq!(drained.into_iter().collect::<HashSet<_>>(), oracle);
}

#[test]
fn a_wrong_expected_number_loses_no_digest() {
    let len = if cfg!(miri) { 100 } else { 5000 };
    let digests: Vec<u64> = (0..len).map(|i| Hasher::default().hash_item(&i)).collect();
    for (expected, max_bytes) in [
        (0, u64::MAX),
        (10, u64::MAX),
        (1 << 20, u64::MAX),
        (u64::MAX, u64::MAX),
        (1 << 20, 1 << 16),
    ] {
        let mut set = DigestSet::within(max_bytes);
        set.set_expected(expected);
        for digests in digests.chunks(7) {
            set.insert_each(digests, &mut Answers::new()).unwrap();
        }
        assert_eq!(set.len(), len, "{expected}");
        assert!(digests.iter().all(|&digest| set.contains(digest)), "{expected}");
        let needed_bytes = DigestSet::<u64>::bytes_for(len).max(MIN_BYTES);
        let most_bytes = max_bytes.min(MAX_STEP * needed_bytes);
        assert!(set.memory_bytes() <= most_bytes, "{expected}: {}", set.memory_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn it_holds_what_a_hash_set_holds(batches in prop::collection::vec(crowded(), 1..4)) {
        check(&batches);
    }

    #[test]
    fn wide_digests_differ_in_either_half(batches in prop::collection::vec(crowded(), 1..4)) {
        let widen = |batch: &Vec<u64>| -> Vec<u128> {
            batch
                .chunks_exact(2)
                .map(|pair| u128::from(pair[0]) << 64 | u128::from(pair[1]))
                .collect()
        };
        check(&batches.iter().map(widen).collect::<Vec<_>>());
    }
}

#[test]
fn a_large_set_grows_and_drains_in_order() {
    let hasher = Hasher::default();
    let digests: Vec<u64> = (0..1_000_000_u64).map(|i| hasher.hash_item(&i)).collect();
    let mut set = DigestSet::new();
    let mut new = Answers::new();
    for batch in digests.chunks(5000) {
        set.insert_each(batch, &mut new).unwrap();
        assert_eq!(new.count_ones(), batch.len());
    }
    set.insert_each(&digests, &mut new).unwrap();
    assert_eq!(new.count_ones(), 0);
    assert!(!set.contains(1) && set.contains(digests[77]));
    let (mut last, mut count) = (0, 0);
    set.drain_each(|batch| {
        assert!(batch[0] >> 48 >= last, "almost ascending");
        last = batch[0] >> 48;
        count += batch.len();
    });
    assert_eq!(count, digests.len());
}

#[test]
fn a_limit_is_kept_and_refusal_changes_nothing() {
    let mut set = DigestSet::<u64>::within(100_000);
    let hasher = Hasher::default();
    let mut items = 0_u64;
    let error = loop {
        match set.insert(hasher.hash_item(&items)) {
            Ok(new) => assert!(new),
            Err(error) => break error,
        }
        items += 1;
    };
    assert!(error.bytes > 100_000 && set.memory_bytes() <= 100_000);
    assert_eq!(set.len(), items);
    // The memory limit allows 12,500 slots, of which three quarters can be used. The number of
    // items is slightly lower than three quarters of the slots, because a table has whole lines and
    // grows in steps.
    assert!((9_300..=9_375).contains(&items), "{items}");
    assert!((0..items).all(|item| set.contains(hasher.hash_item(&item))));
}
