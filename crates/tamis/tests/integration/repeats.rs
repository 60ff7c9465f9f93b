//! A `RepeatFinder` finds exactly the integers that a hash map counts at least twice.

use std::collections::HashMap;

use proptest::prelude::*;
use tamis::RepeatFinder;

fn check(slices: &[Vec<u32>], threads: usize, scratch_bytes: u64) {
    let mut counts: HashMap<u32, u32> = HashMap::new();
    let mut finder =
        RepeatFinder::new().unwrap().with_threads(threads).with_scratch_bytes(scratch_bytes);
    for slice in slices {
        finder.feed(slice);
        for &item in slice {
            *counts.entry(item).or_default() += 1;
        }
    }
    let found = finder.finish();
    let mut repeated: Vec<u64> =
        counts.iter().filter(|&(_, &n)| n > 1).map(|(&item, _)| u64::from(item)).collect();
    repeated.sort_unstable();
    assert_eq!(found.seen.len(), counts.len() as u64);
    assert!(found.repeated.iter().eq(repeated));
    assert!(counts.keys().all(|&item| found.seen.contains(item.into())));
}

/// Pseudorandom numbers, the same on every run: the steps of a Weyl sequence, mixed by
/// multiplications and shifts.
fn random(seed: u64, len: usize, mask: u32) -> Vec<u32> {
    (1..=len as u64)
        .map(|i| {
            let x = (seed.wrapping_add(i)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
            (x >> 32) as u32 & mask
        })
        .collect()
}

#[test]
fn repeats_are_found_over_several_rounds_and_threads() {
    for threads in [1, 2, 3] {
        // 1 MiB of scratch memory holds 256 Ki items, so this case takes many rounds.
        check(&[random(1, 2_000_000, u32::MAX >> 8)], threads, 1 << 20);
    }
}

#[test]
fn repeats_are_found_in_chunks_of_every_size() {
    for scratch_bytes in [4 << 20, 128 << 20, 512 << 20] {
        check(&[random(3, 700_000, u32::MAX >> 9), random(4, 50_000, u32::MAX)], 1, scratch_bytes);
    }
}

#[test]
fn more_threads_than_the_scratch_memory_allows_still_finish() {
    check(&[random(7, 600_000, 0xffff)], usize::MAX, 0);
}

#[test]
fn a_single_value_fills_one_bin_and_is_one_repeat() {
    check(&[vec![77; 1_000_000], vec![u32::MAX]], 2, 1 << 20);
}

#[test]
fn ascending_values_fill_bins_in_turn_without_a_repeat() {
    let ascending: Vec<u32> = (u32::MAX - 1_500_000..=u32::MAX).collect();
    check(&[ascending], 2, 2 << 20);
}

#[test]
fn large_and_small_slices_mix() {
    let slices: Vec<Vec<u32>> = [0, 1, 15, 16, 17, 300_000, 5, 270_000, 1_000]
        .iter()
        .enumerate()
        .map(|(seed, &len)| random(seed as u64 * 1_000, len, 0xfff0_00ff))
        .collect();
    check(&slices, 2, 4 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn repeats_are_exactly_the_values_counted_twice(
        slices in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..400), 0..6),
        mask: u32,
        again in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut slices: Vec<Vec<u32>> = slices;
        let mut all: Vec<u32> = slices.concat();
        all.push(0);
        slices.push(again.iter().map(|index| *index.get(&all)).collect());
        for item in slices.iter_mut().flatten() {
            *item &= mask;
        }
        check(&slices, 1, 0);
    }
}
