//! Measures one filter that several threads fill together. The filter is small enough for the
//! caches.

use foldhash::fast::FixedState;
use tamis::{Answers, AtomicBitmap, BloomFilter, Hasher, Plan, SplitBlock};

use crate::items::mix;
use crate::run::{Bench, Entry, Sample, time_threads};

const SIZE: u64 = 1_000_000;

type Ours = BloomFilter<SplitBlock, AtomicBitmap>;
type Theirs = fastbloom::AtomicBloomFilter<FixedState>;

/// Runs the cases with one filter shared between threads.
pub fn run(bench: &mut Bench) {
    let case = "shared insert 1 M ints at 1 %";
    if !bench.wants(case) {
        return;
    }
    let items: Vec<u64> = (0..SIZE).map(mix).collect();
    let plan = Plan::for_kind(tamis::Kind::SplitBlock, SIZE, 0.01).expect("a sound plan");
    let ours = || Ours::from_plan(&plan, Hasher::default()).expect("memory for the filter");
    let theirs = || -> Theirs {
        let builder = fastbloom::AtomicBloomFilter::with_false_pos(0.01);
        builder.hasher(FixedState::with_seed(1)).expected_items(SIZE as usize)
    };
    let bits = (plan.bits_per_item(), theirs().num_bits() as f64 / SIZE as f64);
    let mut entries = Vec::new();
    for threads in [1, 2] {
        let of = |name: &str| match threads {
            1 => format!("{name}, 1 thread"),
            _ => format!("{name}, {threads} threads"),
        };
        entries.push(entry(
            of("tamis, batches"),
            &items,
            bits.0,
            threads,
            ours,
            |set, items| {
                set.insert_each(items, &mut Answers::new());
            },
            |set, item| set.contains(item),
        ));
        entries.push(entry(
            of("tamis"),
            &items,
            bits.0,
            threads,
            ours,
            |set, items| items.iter().for_each(|item| _ = set.insert(item)),
            |set, item| set.contains(item),
        ));
        entries.push(entry(
            of("fastbloom"),
            &items,
            bits.1,
            threads,
            theirs,
            |set, items| items.iter().for_each(|item| _ = set.insert(item)),
            |set, item| set.contains(item),
        ));
    }
    bench.case(case, entries);
}

/// Creates an entry that fills a new filter with several threads. Each thread inserts its part of
/// the items. The entry then looks up every item. A missing item was lost by a race between
/// threads.
fn entry<'a, F: Sync>(
    name: String,
    items: &'a [u64],
    bits_per_item: f64,
    threads: usize,
    empty: impl Fn() -> F + 'a,
    insert: impl Fn(&F, &[u64]) + Copy + Send + Sync + 'a,
    contains: impl Fn(&F, &u64) -> bool + 'a,
) -> Entry<'a> {
    let work = move || {
        let set = empty();
        let share = items.len().div_ceil(threads);
        let sample = time_threads(items.chunks(share), |items| insert(&set, items));
        let yes = items.iter().filter(|item| contains(&set, item)).count() as u64;
        Sample { yes, ..sample }
    };
    let count = items.len() as u64;
    Entry { bits_per_item: Some(bits_per_item), ..Entry::new(name, count, count..=count, work) }
}
