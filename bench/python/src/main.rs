//! Measures batches of the library: the floor of the same batches in Python. Prints one line for each
//! case: its name and the time of an item in nanoseconds.

use std::hint::black_box;
use std::time::Instant;

use tamis::{Answers, Bloom, SharedBloom};

/// The rate of all filters.
const RATE: f64 = 0.01;

/// The cases of a number of integers and of a number of web addresses. `bench.py` has the same
/// items.
fn main() {
    let mut sizes = std::env::args().skip(1).map(|size| size.parse().expect("a number of items"));
    let integers: usize = sizes.next().unwrap_or(1_000_000);
    let urls: usize = sizes.next().unwrap_or(0);
    let present: Vec<u64> =
        (0..integers as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let absent: Vec<u64> = present.iter().map(|item| item ^ 1 << 63).collect();
    let mut answers = Answers::new();
    let new = || Bloom::for_items(integers, RATE).expect("memory for a filter");
    measure("insert", integers, || new().insert_each(&present, &mut answers));
    let mut seen = new();
    seen.insert_each(&present, &mut answers);
    measure("hit", integers, || seen.contains_each(&present, &mut answers));
    measure("miss", integers, || seen.contains_each(&absent, &mut answers));
    let shared = SharedBloom::for_items(integers, RATE).expect("memory for a filter");
    measure("shared insert", integers, || shared.insert_each(&present, &mut answers));
    measure("shared insert, 2 threads", integers, || {
        let shared = SharedBloom::for_items(integers, RATE).expect("memory for a filter");
        std::thread::scope(|threads| {
            for part in present.chunks(integers.div_ceil(2)) {
                let shared = &shared;
                threads.spawn(move || shared.insert_each(part, &mut Answers::new()));
            }
        });
    });
    if urls == 0 {
        return;
    }
    let text: Vec<u8> = (0..urls).flat_map(|i| url(i).into_bytes()).collect();
    let items: Vec<&[u8]> = text.chunks(url(0).len()).collect();
    let new = || Bloom::for_items(urls, RATE).expect("memory for a filter");
    measure("url insert", urls, || new().insert_each(&items, &mut answers));
    let mut seen = new();
    seen.insert_each(&items, &mut answers);
    measure("url hit", urls, || seen.contains_each(&items, &mut answers));
}

/// Returns web address number `i`, of 61 bytes.
fn url(i: usize) -> String {
    format!("https://www.example.org/shop/products/item-{i:016}/x")
}

fn measure<R>(name: &str, items: usize, mut run: impl FnMut() -> R) {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_secs_f64()
    });
    let best = times.fold(f64::MAX, f64::min);
    println!("{name}\t{:.3}", best / items as f64 * 1e9);
}
