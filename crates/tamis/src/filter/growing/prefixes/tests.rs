use std::collections::HashSet;

use proptest::prelude::*;

use crate::Hasher;
use crate::bits::BitView;
use crate::filter::growing::prefixes::flat_pages::FlatPages;
use crate::filter::growing::prefixes::grow::GrowError;
use crate::filter::growing::prefixes::growth::Growth;
use crate::filter::growing::prefixes::pages::Pages;
use crate::filter::growing::prefixes::table::{Counts, Table};

fn hashes(items: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
    let hasher = Hasher::default();
    items.map(move |item| hasher.hash_item(&item))
}

fn table(rate: f64) -> Table {
    Table::new(Growth::for_rate(rate).unwrap()).unwrap()
}

/// Panics unless the table is valid and its counters match its entries.
fn check<P: Pages>(table: &Table<P>) {
    let (mut entries, mut covered) = (0, 0);
    table
        .each_page(|page, depth, _| {
            let form = &table.forms[usize::from(depth > table.depth)];
            crate::filter::growing::prefixes::check::each_entry(page, form, |_, _| entries += 1)
        })
        .unwrap();
    table
        .each_prefix(|_, len| -> Result<(), ()> {
            covered += 1 << (64 - len);
            Ok(())
        })
        .unwrap();
    assert_eq!((entries, covered), (table.counts.entries, table.counts.covered));
}

#[test]
fn the_covered_hashes_do_not_overflow() {
    // Crafted words may cover all hashes except the hashes of one entry.
    let mut table = table(0.01);
    table.counts.covered = u64::MAX;
    assert!(table.insert(7).unwrap());
    assert_eq!(table.counts.covered, u64::MAX);
}

#[test]
fn nothing_is_lost_through_thousands_of_splits() {
    for rate in [0.3, 0.01, 1e-4, 1e-9] {
        let mut table = table(rate);
        let len = 300_000;
        let (mut new, mut next_check) = (0, 1);
        for (i, hash) in hashes(0..len).enumerate() {
            new += u64::from(table.insert(hash).unwrap());
            assert!(table.contains(hash));
            if i as u64 == next_check {
                next_check *= 2;
                check(&table);
                assert!(hashes(0..i as u64 + 1).all(|hash| table.contains(hash)), "{i} at {rate}");
                assert!(table.rate() <= rate);
            }
        }
        assert_eq!(table.counts().items, new);
        assert!(hashes(0..len).all(|hash| table.contains(hash)));
    }
}

fn words<P: Pages>(table: &Table<P>) -> Vec<u64> {
    let mut words = Vec::new();
    let written: Result<(), ()> = table.write_words(0, |run| {
        words.extend_from_slice(run);
        Ok(())
    });
    written.unwrap();
    assert_eq!(words.len() as u64, table.len_words());
    words
}

fn filled(rate: f64, items: std::ops::Range<u64>) -> Table {
    let mut table = table(rate);
    hashes(items).for_each(|hash| _ = table.insert(hash).unwrap());
    table
}

/// Generates random hashes, and hashes that share long prefixes.
fn crowded() -> impl Strategy<Value = Vec<u64>> {
    let hash = prop_oneof![
        4 => any::<u64>(),
        2 => (0_u64..5000).prop_map(|i| i << 40),
        2 => (0_u64..5000).prop_map(|i| u64::MAX - i),
        1 => (0_u64..64).prop_map(|i| 1 << i),
    ];
    prop::collection::vec(hash, 0..6000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn it_holds_what_a_hash_set_holds(
        batches in prop::collection::vec(crowded(), 1..3),
        rate in prop_oneof![Just(0.5), Just(0.01), Just(1e-3), Just(1e-9)],
    ) {
        let (mut one, mut each) = (table(rate), table(rate));
        let mut oracle = HashSet::new();
        for batch in &batches {
            let mut new = vec![u64::MAX; batch.len().div_ceil(64)];
            each.insert_each(batch, &mut new).unwrap();
            for (i, &hash) in batch.iter().enumerate() {
                let expected = !one.contains(hash);
                prop_assert_eq!(one.insert(hash).unwrap(), expected);
                prop_assert_eq!(new[i / 64] >> (i % 64) & 1 == 1, expected);
                prop_assert!(oracle.insert(hash) || !expected, "an inserted hash is reported as new");
            }
            check(&one);
            let mut found = new;
            one.contains_each(batch, &mut found);
            prop_assert!((0..batch.len()).all(|i| found[i / 64] >> (i % 64) & 1 == 1));
        }
        prop_assert!(oracle.iter().all(|&hash| one.contains(hash)));
        prop_assert_eq!(words(&one), words(&each), "batches write the same bytes");
    }

    #[test]
    fn words_give_the_same_answers_and_grow_on(
        before in crowded(),
        after in crowded(),
    ) {
        let mut table = table(0.01);
        before.iter().for_each(|&hash| _ = table.insert(hash).unwrap());
        let flat = words(&table);
        let view = Table::view(table.growth, BitView::new(&flat)).unwrap();
        check(&view);
        prop_assert_eq!(view.counts(), table.counts());
        for &hash in before.iter().chain(&after) {
            prop_assert_eq!(view.contains(hash), table.contains(hash));
        }
        let mut copy = view.to_owned().unwrap();
        for &hash in &after {
            prop_assert_eq!(copy.insert(hash), table.insert(hash));
        }
        prop_assert_eq!(words(&copy), words(&table));
    }

    #[test]
    fn a_merged_table_covers_what_one_of_both_does(
        first in crowded(),
        second in crowded(),
        more in 0_u64..20_000,
        absent in crowded(),
    ) {
        for more in [[0, more], [more, 0]] {
            let [mut one, mut other] = [table(0.01), table(0.01)];
            first.iter().for_each(|&hash| _ = one.insert(hash).unwrap());
            second.iter().for_each(|&hash| _ = other.insert(hash).unwrap());
            hashes(0..more[0]).for_each(|hash| _ = one.insert(hash).unwrap());
            hashes(0..more[1]).for_each(|hash| _ = other.insert(hash).unwrap());
            let mut both = one.clone();
            both.merge(&other).unwrap();
            check(&both);
            prop_assert!(both.rate() <= one.rate() + other.rate());
            for &hash in first.iter().chain(&second).chain(&absent) {
                let expected = one.contains(hash) || other.contains(hash);
                prop_assert_eq!(both.contains(hash), expected);
            }
            prop_assert!(hashes(0..more[0] + more[1]).all(|hash| both.contains(hash)));
        }
    }
}

#[test]
fn short_prefixes_merge_into_deep_tables_and_back() {
    // At high rates, remainders are short, so the entries of the first items have no remainder
    // after a few depths.
    for rate in [0.9, 0.3] {
        let old = filled(rate, 0..200_000);
        let mut deep = filled(rate, 200_000..2_000_000);
        check(&deep);
        let mut shallow = old.clone();
        shallow.merge(&deep).unwrap();
        check(&shallow);
        let rates = deep.rate() + old.rate();
        deep.merge(&old).unwrap();
        check(&deep);
        assert!(deep.rate() <= rates && shallow.rate() <= rates);
        assert!(hashes(0..2_000_000).all(|hash| deep.contains(hash) && shallow.contains(hash)));
        assert_eq!(deep.counts().covered, shallow.counts().covered, "the same union");
        let before = words(&deep);
        deep.merge(&old).unwrap();
        assert_eq!(words(&deep), before, "nothing is new");
    }
}

#[test]
fn the_rate_is_kept_and_known_at_every_power_of_two() {
    for (rate, len) in [(0.1, 1 << 19), (0.01, 1 << 22), (0.0001, 1 << 17)] {
        let mut table = table(rate);
        for (i, hash) in hashes(0..len).enumerate() {
            table.insert(hash).unwrap();
            let items = i as u64 + 1;
            if items.is_power_of_two() {
                let tests = (100.0 / rate).max(20_000.0) as u64;
                let found = hashes(1 << 40..(1 << 40) + tests).filter(|&hash| table.contains(hash));
                let (n, p) = (tests as f64, table.rate());
                let found = found.count() as f64;
                let deviation = (n * p * (1.0 - p)).sqrt();
                assert!(
                    (found - n * p).abs() <= 4.5 * deviation + 1.0,
                    "{items}: {found} of {n}, {p}"
                );
                assert!(p <= rate, "{items} items at {rate}");
                // All items are new except the false positives.
                let new = table.counts().items as f64;
                assert!(new <= items as f64 && new >= items as f64 * (1.0 - rate) - 1.0);
            }
        }
    }
}

#[test]
fn memory_stays_small_at_every_size() {
    let mut table = table(0.01);
    let (mut sum, mut count) = (0.0, 0);
    for (i, hash) in hashes(0..1_000_000).enumerate() {
        table.insert(hash).unwrap();
        let items = i as f64 + 1.0;
        if items >= 100_000.0 && i % 1000 == 0 {
            let bits = table.memory_bytes() as f64 * 8.0 / items;
            assert!(bits < 24.0, "{bits} bits an item at {items}");
            sum += bits;
            count += 1;
        }
    }
    assert!(sum / f64::from(count) < 16.0, "{}", sum / f64::from(count));
    assert!(filled(0.01, 0..1).memory_bytes() < 1000);
}

#[test]
fn hostile_words_are_an_error_or_a_usable_table() {
    for len in [0, 1, 10, 3000] {
        let table = filled(0.01, 0..len);
        let good = words(&table);
        for cut in 0..good.len().min(100) {
            assert!(Table::view(table.growth, BitView::new(&good[..cut])).is_err());
            assert!(
                Table::view(table.growth, BitView::new(&good[..good.len() - cut - 1])).is_err()
            );
        }
        let mut usable = 0;
        for at in 0..good.len() {
            for flip in [1, 1 << 7, 1 << 16, 1 << (at % 64), u64::MAX, 1 << 63] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                let Ok(view) = Table::view(table.growth, BitView::new(&bad)) else { continue };
                usable += 1;
                check(&view);
                let mut copy = view.to_owned().unwrap();
                for hash in hashes(0..50).chain([0, u64::MAX]) {
                    assert_eq!(copy.contains(hash), view.contains(hash));
                    assert_eq!(copy.insert(hash), Ok(!view.contains(hash)));
                }
                check(&copy);
                if usable % 64 == 0 {
                    hashes(0..5000).for_each(|hash| _ = copy.insert(hash).unwrap());
                    check(&copy);
                }
            }
        }
        assert!(usable > 0, "the number of items is not checked");
        // Lookups do not check the words, so lookups must not panic if another process has changed
        // the words of a mapped file.
        let [order, items, unsplit, ..] = good[..] else { panic!("a head") };
        for seed in 0..200 {
            let mut bad = good.clone();
            for word in &mut bad[3..] {
                *word ^= hashes(seed..seed + 1).next().unwrap() & *word;
            }
            let pages = FlatPages::unchecked(BitView::new(&bad), unsplit, (2 << order) - unsplit);
            let view =
                Table::with_pages(table.growth, order as u32, false, pages, Counts::default());
            hashes(0..100).for_each(|hash| _ = view.contains(hash));
            assert_eq!(items, table.counts().items);
        }
    }
}

/// Fills one page with hashes that all begin with `zeros` zeros, until the page is full.
fn fill_one_page(table: &mut Table, zeros: u32) -> Vec<u64> {
    let mut taken = Vec::new();
    // The hashes are the high bits of multiples of an odd number, so nearly all hashes differ.
    for i in 0..500_000_u64 {
        let hash = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> zeros;
        match table.insert(hash) {
            Ok(_) => taken.push(hash),
            Err(error) => {
                assert_eq!(error, GrowError::Crowded);
                return taken;
            }
        }
    }
    panic!("a page takes half a million entries");
}

#[test]
fn a_crowded_page_refuses_items_but_other_pages_accept_items() {
    for (rate, zeros) in [(1e-9, 9), (0.01, 7)] {
        let mut table = table(rate);
        let crowd = fill_one_page(&mut table, zeros);
        check(&table);
        let mut refused = 0;
        // With `others` items, the crowded page splits several times.
        let others = 100_000;
        for hash in hashes(0..others) {
            match table.insert(hash) {
                Ok(_) => {}
                Err(GrowError::Crowded) => refused += 1,
                Err(error) => panic!("{error:?} at {rate}"),
            }
        }
        // One page receives at most one in 32 hashes.
        assert!(refused <= others >> 5, "{refused} refused at {rate}");
        check(&table);
        assert!(crowd.iter().all(|&hash| table.contains(hash)), "an item is lost at {rate}");
        let found = hashes(0..others).filter(|&hash| table.contains(hash)).count() as u64;
        assert!(found + refused >= others, "{found} of {others} at {rate}");
    }
}

#[test]
fn crowded_pages_refuse_to_merge_and_nothing_is_lost() {
    let mut one = table(1e-9);
    let crowd = fill_one_page(&mut one, 9);
    let mut other = table(1e-9);
    for i in 0..crowd.len() as u64 {
        other.insert(i.wrapping_mul(0xd134_2543_de82_ef95) >> 9).unwrap();
    }
    assert_eq!(one.merge(&other), Err(GrowError::Crowded));
    check(&one);
    assert!(crowd.iter().all(|&hash| one.contains(hash)));
    let refused = hashes(0..1000).filter(|&hash| one.insert(hash).is_err()).count();
    assert!(refused < 1000 / 16, "{refused}");
}

#[test]
fn write_words_passes_all_words_from_a_number_on() {
    let table = filled(0.01, 0..20_000);
    let all = words(&table);
    for start in (0..all.len() + 5).step_by(13) {
        let (mut rest, mut runs) = (Vec::new(), 0);
        let written: Result<(), ()> = table.write_words(start as u64, |run| {
            runs += 1;
            rest.extend_from_slice(run);
            Ok(())
        });
        written.unwrap();
        assert_eq!(rest, all.get(start..).unwrap_or_default());
        // The callback receives no empty slices for skipped words.
        assert!(runs <= rest.len());
    }
}
