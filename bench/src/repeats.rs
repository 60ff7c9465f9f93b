//! Finds exactly which of many random `u32` values occur more than once.

use tamis::{Bitmap, Bits as _, BitsMut as _, RepeatFinder};

use crate::items::mix;
use crate::lookups::short;
use crate::run::{Bench, Entry, Sample, Work, time};

/// Runs the cases with exact sets of integers.
pub fn run(bench: &mut Bench) {
    let count: usize = if bench.quick { 100_000_000 } else { 1_000_000_000 };
    let case = format!("repeats in {} random u32, exact", short(count as u64));
    if !bench.wants(&case) {
        return;
    }
    let items: Vec<u32> = (0..count as u64).map(|i| mix(i) as u32).collect();
    let right = naive(&items).yes;
    let by = |threads: usize| {
        let items = &items;
        move || {
            let mut repeated = None;
            let sample = time(|| {
                let finder = RepeatFinder::new().expect("memory for all of u32");
                let mut finder = finder.with_threads(threads);
                finder.feed(items);
                repeated = Some(finder.finish().repeated);
                0
            });
            Sample { yes: repeated.expect("found above").len(), ..sample }
        }
    };
    let works: [(&str, Work<'_>); 3] = [
        ("tamis, 1 thread", Box::new(by(1))),
        ("tamis, 2 threads", Box::new(by(2))),
        ("naive test-and-set", Box::new(|| naive(&items))),
    ];
    let entries = works.into_iter().map(|(name, work)| Entry {
        name: name.to_owned(),
        items: count as u64,
        // The work uses two bits for each possible value of a `u32`.
        bits_per_item: Some((2_u64 << 32) as f64 / count as f64),
        rate: Some(0.0),
        expect: right..=right,
        work,
    });
    let entries = entries.collect();
    bench.case(&case, entries);
}

/// The solution of common articles: two bitmaps, and a test for each item.
fn naive(items: &[u32]) -> Sample {
    let bitmap = || Bitmap::zeroed(1 << 32).expect("memory for all of u32");
    let (mut seen, mut repeated) = (bitmap(), bitmap());
    let sample = time(|| {
        let (seen, repeated) = (seen.words_mut(), repeated.words_mut());
        for &item in items {
            let (word, bit) = ((item >> 6) as usize, 1 << (item & 63));
            if seen[word] & bit == 0 {
                seen[word] |= bit;
            } else {
                repeated[word] |= bit;
            }
        }
        0
    });
    Sample { yes: repeated.count_ones(), ..sample }
}
