//! Measurements, printed by
//! `cargo test --release -p tamis --lib growing::prefixes::measure -- --ignored --nocapture`.

use std::hint::black_box;

use super::{Growth, Table};
use crate::hash::Hasher;
use crate::{Bloom, Filter, Insert};

const RATE: f64 = 0.01;

fn hashes(items: std::ops::Range<u64>) -> Vec<u64> {
    let hasher = Hasher::default();
    items.map(|item| hasher.hash_item(&item)).collect()
}

fn table() -> Table {
    Table::new(Growth::for_rate(RATE).unwrap()).unwrap()
}

/// Nanoseconds that this thread has run, so that others on the machine count for less. The kernel may tell
/// them in steps of 4 ms.
fn cpu_nanos() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0
}

fn time(len: usize, mut run: impl FnMut() -> u64) -> f64 {
    let start = cpu_nanos();
    let repeats = (10_000_000 / len).max(1);
    (0..repeats).for_each(|_| _ = black_box(run()));
    (cpu_nanos() - start) / (repeats * len) as f64
}

#[test]
#[ignore = "measures, in release mode"]
fn memory_and_rate() {
    let mut table = table();
    let (mut sum, mut count, mut worst) = (0.0, 0, 0.0_f64);
    let mut next = 100.0;
    let absent = hashes(1 << 40..(1 << 40) + 200_000);
    let items = hashes(0..10_000_000);
    let before = resident_bytes();
    for (i, &hash) in items.iter().enumerate() {
        table.insert(hash).unwrap();
        let items = i as f64 + 1.0;
        if items >= next {
            let bits = table.memory_bytes() as f64 * 8.0 / items;
            if items >= 100_000.0 {
                (sum, count, worst) = (sum + bits, count + 1, worst.max(bits));
            }
            if count % 8 == 0 && items >= 10_000.0 {
                let found = absent.iter().filter(|&&hash| table.contains(hash)).count();
                let measured = found as f64 / absent.len() as f64;
                let exact = table.rate();
                // What the allocator leaves between pages counts here, and what it keeps for later.
                let resident = (resident_bytes() - before) * 8.0 / items;
                println!("{items:9}: {bits:5.2} bits/item, {resident:5.2} resident");
                println!("           rate {exact:.5}, measured {measured:.5}");
            }
            next *= 1.03;
        }
    }
    println!("from 100 k: {:.2} bits/item on average, {worst:.2} at worst", sum / f64::from(count));
}

#[test]
#[ignore = "measures, in release mode"]
fn beside_bloom() {
    let absent = hashes(1 << 40..(1 << 40) + 1_000_000);
    for len in [10_000, 100_000, 1_000_000, 10_000_000] {
        let items = hashes(0..len);
        let len = items.len();
        let mut answers = vec![0; len.max(absent.len()).div_ceil(64)];
        let mut best = [[f64::MAX; 2]; 6];
        for _ in 0..3 {
            let mut least = |row: usize, column: usize, nanos: f64| {
                best[row][column] = best[row][column].min(nanos);
            };
            let new_bloom = || -> Bloom { Bloom::for_items(len as u64, RATE).unwrap() };
            let (mut bloom, mut grown) = (new_bloom(), table());
            least(
                0,
                0,
                time(len, || {
                    bloom = new_bloom();
                    items.iter().map(|&hash| u64::from(bloom.insert_hash(hash))).sum()
                }),
            );
            least(
                0,
                1,
                time(len, || {
                    grown = table();
                    items.iter().map(|&hash| u64::from(grown.insert(hash).unwrap())).sum()
                }),
            );
            let answers_of = |len: usize| ..len.div_ceil(64);
            least(
                1,
                0,
                time(len, || {
                    bloom = new_bloom();
                    bloom.insert_hashes(&items, &mut answers[answers_of(len)]);
                    0
                }),
            );
            least(
                1,
                1,
                time(len, || {
                    grown = table();
                    grown.insert_each(&items, &mut answers[answers_of(len)]).unwrap();
                    0
                }),
            );
            for (row, asked) in [(2, &absent), (4, &items)] {
                let n = asked.len();
                least(
                    row,
                    0,
                    time(n, || {
                        asked.iter().map(|&hash| u64::from(bloom.contains_hash(hash))).sum()
                    }),
                );
                least(
                    row,
                    1,
                    time(n, || asked.iter().map(|&hash| u64::from(grown.contains(hash))).sum()),
                );
                least(
                    row + 1,
                    0,
                    time(n, || {
                        bloom.contains_hashes(asked, &mut answers[answers_of(n)]);
                        0
                    }),
                );
                least(
                    row + 1,
                    1,
                    time(n, || {
                        grown.contains_each(asked, &mut answers[answers_of(n)]);
                        0
                    }),
                );
            }
        }
        println!("{len} items, ns each: split-block, growing");
        let names =
            ["insert", "insert batch", "absent", "absent batch", "present", "present batch"];
        for (name, [bloom, grown]) in names.iter().zip(best) {
            println!("  {name:14} {bloom:6.1} {grown:6.1} = {:.1} times", grown / bloom);
        }
    }
}
