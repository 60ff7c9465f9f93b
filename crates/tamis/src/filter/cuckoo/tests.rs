//! Compares the filter with an exact model of its keys, and tests its guarantees at every size.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::filter::cuckoo::plan::{load_limit, plan, rate_at};
use crate::filter::cuckoo::*;

/// Returns uniform hashes: the outputs of SplitMix64, starting at `seed`.
fn hashes(seed: u64) -> impl Iterator<Item = u64> {
    (1_u64..).map(move |i| {
        let x = (seed << 40).wrapping_add(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    })
}

fn empty(table: Table) -> Cuckoo {
    Cuckoo::empty(table, Hasher::default()).unwrap()
}

/// Fills a filter until the first item does not fit. Returns the filter and its items.
fn filled(table: Table, seed: u64) -> (Cuckoo, Vec<u64>) {
    let mut filter = empty(table);
    let items =
        hashes(seed).take_while(|&hash| filter.try_insert_copy_hash(hash).is_ok()).collect();
    (filter, items)
}

/// Inserts items. All of them must fit.
fn insert_all(filter: &mut Cuckoo, items: impl IntoIterator<Item = u64>) {
    items.into_iter().for_each(|hash| _ = filter.try_insert_copy_hash(hash).unwrap());
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(usize),
    Remove(usize),
    Contains(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = (0..10_u8, 0..120_usize).prop_map(|(kind, item)| match kind {
        0..6 => Op::Insert(item),
        6..8 => Op::Remove(item),
        _ => Op::Contains(item),
    });
    prop::collection::vec(op, 0..400)
}

fn tables() -> impl Strategy<Value = Table> {
    (2..=4_u32, 4..=32_u32, 1..40_u64)
        .prop_map(|(bucket, slot_bits, starts)| Table::new(bucket, slot_bits, starts))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 512 }))]

    #[test]
    fn a_filter_is_a_multiset_of_keys(table in tables(), seed in 0..1000_u64, ops in ops()) {
        let universe: Vec<u64> = hashes(seed).take(120).collect();
        let mut filter = empty(table);
        // The expected count of each key: the number of inserted items with this key, minus the
        // number of removed items with this key.
        let mut copies: HashMap<u64, u64> = HashMap::new();
        let most = filter.max_count();
        for op in ops {
            match op {
                Op::Insert(item) => {
                    let hash = universe[item];
                    let count = copies.entry(key(&table, hash)).or_default();
                    let before = filter.bits().words().to_vec();
                    match filter.try_insert_copy_hash(hash) {
                        Ok(new) => {
                            prop_assert_eq!(new, *count == 0);
                            *count = (*count + 1).min(most);
                        }
                        Err(error) => {
                            prop_assert!(*count < most);
                            let items = filter.len();
                            let capacity = filter.capacity();
                            let reasons = [NoRoom::Full { items }, NoRoom::Copies { items, capacity }];
                            prop_assert!(reasons.contains(&error.reason));
                            prop_assert_eq!(filter.bits().words(), &before);
                        }
                    }
                }
                Op::Remove(item) => {
                    let hash = universe[item];
                    let count = copies.entry(key(&table, hash)).or_default();
                    let before = filter.bits().words().to_vec();
                    let removed = filter.remove_hash(hash);
                    match removed {
                        Removed::Yes => *count -= 1,
                        Removed::Absent => prop_assert_eq!(*count, 0),
                        Removed::Saturated => prop_assert_eq!(*count, most),
                    }
                    let same = filter.bits().words() == before;
                    prop_assert_eq!(same, removed != Removed::Yes);
                }
                Op::Contains(item) => {
                    let count = copies.get(&key(&table, universe[item])).copied().unwrap_or(0);
                    prop_assert_eq!(filter.contains_hash(universe[item]), count > 0);
                    prop_assert_eq!(filter.count_hash(universe[item]), count);
                }
            }
        }
        for &hash in &universe {
            let count = copies.get(&key(&table, hash)).copied().unwrap_or(0);
            prop_assert_eq!(filter.count_hash(hash), count);
            prop_assert_eq!(filter.contains_hash(hash), count > 0);
        }
        prop_assert_eq!(filter.len(), copies.values().sum::<u64>());
        prop_assert_eq!(filter.len(), table.items(filter.bits().words()));
        prop_assert!(filter.table.is_valid(filter.bits().words()));
    }

    #[test]
    fn batches_do_what_single_items_do(table in tables(), seed in 0..1000_u64, len in 0..150_usize) {
        let all: Vec<u64> = hashes(seed).take(len).chain(hashes(seed).take(len / 2)).collect();
        let (mut one, mut each) = (empty(table), empty(table));
        let mut answers = vec![u64::MAX; all.len().div_ceil(64)];
        let result = each.try_insert_copy_hashes(&all, &mut answers);
        let mut inserted = 0;
        for &hash in &all {
            let Ok(new) = one.try_insert_copy_hash(hash) else { break };
            prop_assert_eq!(answers[inserted / 64] >> (inserted % 64) & 1 == 1, new);
            inserted += 1;
        }
        prop_assert_eq!(result.map_or_else(|error| error.inserted, |()| all.len()), inserted);
        prop_assert_eq!(one.bits(), each.bits());
        prop_assert_eq!(one.len(), each.len());
        one.contains_hashes(&all, &mut answers);
        for (i, &hash) in all.iter().enumerate() {
            prop_assert_eq!(answers[i / 64] >> (i % 64) & 1 == 1, one.contains_hash(hash));
        }
        each.remove_hashes(&all, &mut answers);
        for (i, &hash) in all.iter().enumerate() {
            let is_gone = one.remove_hash(hash) == Removed::Yes;
            prop_assert_eq!(answers[i / 64] >> (i % 64) & 1 == 1, is_gone);
        }
        prop_assert_eq!(one.bits(), each.bits());
        prop_assert_eq!(one.len(), each.len());
    }

    #[test]
    fn bytes_that_are_no_filter_do_no_harm(
        table in tables(),
        seed in 0..1000_u64,
        random in prop::collection::vec(any::<u64>(), 200),
    ) {
        let len_words = table.len_words() as usize;
        let words: Vec<u64> = random.iter().copied().cycle().take(len_words).collect();
        let mut bits = Bitmap::zeroed(table.len_words() * 64).unwrap();
        bits.words_mut().copy_from_slice(&words);
        let plan = *empty(table).plan();
        let mut filter = Cuckoo::over(&plan, table, Hasher::default(), bits, None);
        let mut other = empty(table);
        for hash in hashes(seed).take(100) {
            let _ = filter.remove_hash(hash);
            let _ = filter.try_insert_hash(hash);
            filter.contains_hash(hash);
            filter.count_hash(hash);
        }
        let _ = other.merge(&filter);
        let _ = filter.merge(&other);
        prop_assert!(filter.len() <= table.slots());
        prop_assert!(Cuckoo::view(&plan, Hasher::default(), &words[1..]).is_err());
    }
}

#[test]
fn every_kernel_answers_as_the_rules_do() {
    for bucket in 2..=4 {
        for slot_bits in 4..=32 {
            for starts in [1, 2, 63, 64, 1000, 40_000] {
                let table = Table::new(bucket, slot_bits, starts);
                let (filter, items) = filled(table, starts);
                let extremes = [0, 1, u64::MAX, 1 << 63, u64::from(u32::MAX), !0 << 32];
                let absent = hashes(77).take(300 + starts as usize % 64);
                let all: Vec<u64> =
                    items.into_iter().rev().take(700).chain(absent).chain(extremes).collect();
                let mut answers = vec![u64::MAX; all.len().div_ceil(64)];
                filter.contains_hashes(&all, &mut answers);
                for (i, &hash) in all.iter().enumerate() {
                    let found = answers[i / 64] >> (i % 64) & 1 == 1;
                    let expected = table.contains(filter.bits().words(), hash);
                    assert_eq!(found, expected, "{table:?}, {hash:x}");
                }
                let beyond = answers[all.len() / 64] & (!0 << (all.len() % 64));
                assert!(all.len().is_multiple_of(64) || beyond == 0, "{table:?}");
            }
        }
    }
}

fn key(table: &Table, hash: u64) -> u64 {
    let key = table.key(hash);
    key.starts[0] << 32 | key.fingerprint
}

#[test]
fn tables_are_filled_to_95_percent() {
    for (bucket, slot_bits, limit) in [
        (2, 8, 0.95),
        (2, 12, 0.95),
        (2, 16, 0.95),
        (2, 32, 0.95),
        (3, 8, 0.98),
        (3, 12, 0.98),
        (4, 12, 0.98),
        (4, 16, 0.98),
    ] {
        for (slots, seeds) in [(10_000, 10), (100_000, 3), (1_000_000, 1)] {
            for seed in 0..seeds {
                let table = Table::from_slots(bucket, slot_bits, slots).unwrap();
                let (filter, items) = filled(table, seed);
                let load = filter.len() as f64 / slots as f64;
                assert!(load >= limit, "{bucket}, {slot_bits}, {slots}: full at {load}");
                assert!(items.iter().all(|&hash| filter.contains_hash(hash)));
            }
        }
    }
}

#[test]
fn an_item_inserted_too_often_cannot_be_removed() {
    for bucket in 2..=4 {
        let mut filter = empty(Table::new(bucket, 12, 50));
        let most = filter.max_count();
        assert_eq!(most, 2 * u64::from(bucket));
        for count in 0..most {
            assert_eq!(filter.count_hash(42), count);
            assert_eq!(filter.try_insert_copy_hash(42), Ok(count == 0));
        }
        for _ in 0..20 {
            assert_eq!(filter.try_insert_copy_hash(42), Ok(false));
            assert_eq!(filter.remove_hash(42), Removed::Saturated);
            assert_eq!((filter.count_hash(42), filter.len()), (most, most));
        }
    }
}

#[test]
fn an_item_is_absent_after_its_last_copy_is_removed() {
    let mut filter = empty(Table::new(2, 12, 50));
    insert_all(&mut filter, [42; 3]);
    for left in [2, 1, 0] {
        assert_eq!(filter.remove_hash(42), Removed::Yes);
        assert_eq!(filter.count_hash(42), left);
    }
    assert_eq!(filter.remove_hash(42), Removed::Absent);
    assert_eq!(filter.bits().count_ones(), 0);
}

#[test]
fn an_item_is_stored_once_unless_the_caller_inserts_copies() {
    for bucket in 2..=4 {
        let mut filter = Cuckoo::from_plan(
            &crate::Plan::cuckoo(10_000, 0.01, bucket).unwrap(),
            Hasher::default(),
        )
        .unwrap();
        let items: Vec<u64> = (0..10_000).collect();
        let new = filter.try_insert_all(&items).unwrap();
        assert!((9_900..=10_000).contains(&new), "{new}");
        for _ in 0..100 {
            assert_eq!(filter.try_insert_all(&items), Ok(0));
            assert_eq!(filter.try_insert(&7_u64), Ok(false));
        }
        assert_eq!(filter.len(), new as u64);
        assert_eq!(filter.try_insert_copy(&7_u64), Ok(false));
        assert_eq!((filter.len(), filter.count(&7_u64)), (new as u64 + 1, 2));
    }
}

#[test]
fn a_filter_with_copies_is_full_at_the_stated_share_and_says_why() {
    for ((items, copies, bucket, least, most), seed) in LOADS
        .into_iter()
        .flat_map(|row| (0..6_000_000 / row.0.max(1_000_000)).map(move |seed| (row, seed)))
    {
        let plan = crate::Plan::cuckoo(items, 0.01, bucket).unwrap();
        let mut filter = Cuckoo::from_plan(&plan, Hasher::default()).unwrap();
        let all = hashes(seed).flat_map(|hash| std::iter::repeat_n(hash, copies));
        let error = all.map(|hash| filter.try_insert_copy_hash(hash)).find_map(Result::err);
        let share = filter.len() as f64 / items as f64;
        assert!((least..=most).contains(&share), "{items}, {copies} copies, {bucket}: {share}");
        let reason = error.expect("an endless stream fills the filter").reason;
        let expected = match share {
            ..1.0 => NoRoom::Copies { items: filter.len(), capacity: items },
            _ => NoRoom::Full { items: filter.len() },
        };
        assert_eq!(reason, expected, "{items}, {copies} copies, {bucket}");
    }
}

/// Planned items, copies of each item, slots of a bucket, and the lowest and the highest share of the
/// planned items at which one of six filters is full. The documentation of [`Cuckoo`] states the
/// shares in percent.
const LOADS: [(u64, usize, u32, f64, f64); 15] = [
    (1_000, 1, 2, 1.04, 1.07),
    (100_000, 1, 2, 1.04, 1.05),
    (4_000_000, 1, 2, 1.04, 1.05),
    (1_000, 2, 2, 0.69, 0.80),
    (100_000, 2, 2, 0.57, 0.73),
    (4_000_000, 2, 2, 0.18, 0.45),
    (1_000, 2, 4, 0.98, 1.03),
    (100_000, 2, 4, 0.98, 0.99),
    (4_000_000, 2, 4, 0.98, 0.99),
    (1_000, 3, 2, 0.03, 0.22),
    (100_000, 3, 2, 0.02, 0.06),
    (4_000_000, 3, 2, 0.00, 0.02),
    (1_000, 3, 4, 0.87, 0.92),
    (100_000, 3, 4, 0.87, 0.89),
    (4_000_000, 3, 4, 0.67, 0.88),
];

#[test]
fn merge_adds_the_counts_or_changes_nothing() {
    let table = Table::new(2, 12, 1000);
    let (mut left, mut right) = (empty(table), empty(table));
    let all: Vec<u64> = hashes(1).take(1800).collect();
    insert_all(&mut left, all[..900].iter().copied());
    insert_all(&mut right, all[800..1700].iter().copied());
    let mut both = left.clone();
    both.merge(&right).unwrap();
    assert_eq!(both.len(), 1800);
    assert!(all[..1700].iter().all(|&hash| both.contains_hash(hash)));
    assert!(all[800..900].iter().all(|&hash| both.count_hash(hash) >= 2));
    let before = both.bits().clone();
    let refused = both.merge(&right);
    assert!(matches!(refused, Err(MergeError::NoRoom(NoRoom::Copies { items: 1800.., .. }))));
    assert_eq!((both.bits(), both.len()), (&before, 1800));
    // The sum of the two counts is above the highest count. The merge must have the same result as
    // inserting each copy.
    let (mut left, mut right) = (empty(table), empty(table));
    insert_all(&mut left, [7; 3]);
    insert_all(&mut right, [7; 3]);
    left.merge(&right).unwrap();
    assert_eq!((left.count_hash(7), left.remove_hash(7)), (4, Removed::Saturated));
}

#[test]
fn equal_inserts_give_equal_bytes_whatever_was_searched_before() {
    let table = Table::new(2, 12, 3000);
    let (used, _) = filled(table, 1);
    let mut again = empty(table);
    again.search = used.search;
    insert_all(&mut again, hashes(2).take(5700));
    let mut fresh = empty(table);
    for hash in hashes(2).take(5700) {
        fresh.try_insert_copy_hash(hash).unwrap();
        fresh.search = Search::default();
    }
    assert_eq!(again.bits(), fresh.bits());
}

/// Fills filters of a plan and tests absent items. The tolerance is four standard deviations. The
/// deviation includes the binomial distribution and the different rates of the filters.
fn check_rate(bucket: u32, items: u64, rate: f64) {
    let table = plan(bucket, items, rate).unwrap();
    let computed = rate_at(&table, items);
    assert!(computed <= rate);
    let filters = (1_000_000 / (items + 200)).clamp(1, 4000);
    let lookups_each = (4_000_000 / filters).clamp(500, 2_000_000);
    let mut found = 0;
    for seed in 0..filters {
        let mut filter = empty(table);
        let mut all = hashes(seed);
        insert_all(&mut filter, all.by_ref().take(items as usize));
        assert!((filter.estimate_rate() / computed - 1.0).abs() < 0.35);
        found += all.take(lookups_each as usize).filter(|&hash| filter.contains_hash(hash)).count();
    }
    let lookups = (filters * lookups_each) as f64;
    let of_filters = lookups * lookups / filters as f64 * computed * computed / items as f64;
    let sigma = (lookups * computed + of_filters).sqrt();
    let off = (found as f64 - lookups * computed).abs();
    assert!(off <= 4.0 * sigma, "{bucket}, {items} at {rate}: {found} of {lookups}, {computed}");
}

#[test]
fn the_rate_is_the_computed_one_at_every_size() {
    for items in [1, 2, 10, 100, 1_000, 10_000, 1_000_000] {
        for rate in [0.1, 0.01, 0.001] {
            check_rate(2, items, rate);
        }
        check_rate(3, items, 0.01);
        check_rate(4, items, 0.01);
    }
}

#[test]
fn an_item_takes_less_than_three_bits_more_than_log2_of_the_rate() {
    for (slot_bits, slots) in [(8, 100_000), (12, 1_000_000), (16, 1_000_000)] {
        let table = Table::from_slots(2, slot_bits, slots).unwrap();
        let items = slots * 95 / 100;
        let bits = (table.len_words() * 64) as f64 / items as f64;
        let over = bits + rate_at(&table, items).log2();
        assert!(over < 2.8, "{slot_bits}: {over}");
    }
}

#[test]
fn planned_items_fit() {
    for bucket in 2..=4 {
        for items in (1..60).chain([100, 300, 1000, 3000, 10_000]) {
            for rate in [0.1, 0.01, 1e-4] {
                let table = plan(bucket, items, rate).unwrap();
                let most = load_limit(bucket, table.slot_bits()) * table.slots() as f64;
                assert!(items as f64 <= most || items <= 8, "{bucket}, {items} at {rate}");
                for seed in 0..(3000 / items).clamp(2, 100) {
                    insert_all(&mut empty(table), hashes(seed).take(items as usize));
                }
            }
        }
    }
}
