//! Measures batches beside single calls in a filter of one size. The program is small, so that
//! `cargo xtask bench` can build it twice: for any CPU, and for this CPU.
//!
//! Arguments: the number of items in the filter. Output: nanoseconds an item for single lookups,
//! lookups in a batch, single inserts, and inserts in a batch.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tamis::{Answers, Bloom, Hasher, Plan};

/// Each loop repeats for at least this time, and the fastest repetition is reported.
const ROUND: Duration = Duration::from_millis(60);

fn main() {
    let size = std::env::args().nth(1).and_then(|size| size.parse::<u64>().ok());
    let size = size.filter(|&size| size > 0).expect("the argument is a number above zero");
    let plan = Plan::new(size, 0.01).expect("a sound plan");
    let mut filter = Bloom::from_plan(&plan, Hasher::default()).expect("enough memory");
    // Half of the items are members, in an order that the branch predictor cannot learn. After the
    // first repetition of the inserts, all items are members.
    let count = (size / 8).next_power_of_two().clamp(1 << 16, 1 << 22);
    let items: Vec<u64> = (0..count).map(|i| mix(mix(i) % (2 * size))).collect();
    (0..size).for_each(|i| _ = filter.insert(&mix(i)));

    let mut answers = Answers::new();
    filter.contains_each(&items, &mut answers);
    let singles = items.iter().map(|item| filter.contains(item));
    assert!(answers.iter().eq(singles), "a batch and single calls answer differently");
    assert!((0..size).all(|i| filter.contains(&mix(i))), "a member is missing");
    let single = best(&mut filter, count, |filter| {
        black_box(items.iter().filter(|&item| filter.contains(item)).count());
    });
    let batch = best(&mut filter, count, |filter| {
        filter.contains_each(&items, &mut answers);
        black_box(&answers);
    });
    let insert = best(&mut filter, count, |filter| {
        black_box(items.iter().filter(|&item| filter.insert(item)).count());
    });
    let insert_batch = best(&mut filter, count, |filter| {
        black_box(filter.insert_all(&items));
    });
    println!("{single} {batch} {insert} {insert_batch}");
}

/// Returns the best time of `run`, in nanoseconds an item.
fn best(filter: &mut Bloom, items: u64, mut run: impl FnMut(&mut Bloom)) -> f64 {
    let (start, mut best) = (Instant::now(), Duration::MAX);
    while best == Duration::MAX || start.elapsed() < ROUND {
        let start = Instant::now();
        run(filter);
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / items as f64
}

/// A bijection of 64 bits without a pattern (the finalizer of SplitMix64). The function is a copy of
/// `mix` of the bench: this program must not depend on the rivals.
fn mix(i: u64) -> u64 {
    let z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
