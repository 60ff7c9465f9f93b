//! Builds filters from items that are all in memory.

use std::num::NonZero;

use tamis::{Bloom, Hasher, Kind, Plan};

use crate::contender::{Contender, Fastbloom, Sbbf};
use crate::floor::Lines;
use crate::items::{Integers, mix};
use crate::lookups::short;
use crate::run::{Bench, Entry, Sample, time};

/// Runs every build case.
pub fn run(bench: &mut Bench) {
    let sizes: &[u64] = if bench.quick { &[10_000_000] } else { &[10_000_000, 100_000_000] };
    for &size in sizes {
        let case = format!("build {} ints at 1 %", short(size));
        if !bench.wants(&case) {
            continue;
        }
        let items: Vec<u64> = (0..size).map(mix).collect();
        let plan = Plan::for_kind(Kind::SplitBlock, size, 0.01).expect("a sound plan");
        let entries = vec![
            ours(&plan, &items, 1),
            ours(&plan, &items, 2),
            rival::<Sbbf>(&items),
            rival::<Fastbloom>(&items),
            random_lines(&plan, &items),
        ];
        bench.case(&case, entries);
    }
}

fn ours<'a>(plan: &'a Plan, items: &'a [u64], threads: usize) -> Entry<'a> {
    let plural = if threads == 1 { "" } else { "s" };
    entry(format!("tamis, {threads} thread{plural}"), items, plan.bits(), move || {
        let threads = NonZero::new(threads).expect("a thread at least");
        let mut set = None;
        let sample = time(|| {
            set = Bloom::build(plan, Hasher::default(), items, threads).ok();
            0
        });
        let set = set.expect("memory for the filter");
        (sample, count(|item| set.contains(&item)))
    })
}

fn rival<C: Contender<Integers>>(items: &[u64]) -> Entry<'_> {
    let empty = || C::empty(items.len() as u64, 0.01);
    let bits = empty().memory_bits();
    entry(C::NAME.to_owned(), items, bits, move || {
        let mut set = None;
        let sample = time(|| {
            set.insert(empty()).add_each(items);
            0
        });
        let set = set.expect("made above");
        (sample, count(|item| set.has(item)))
    })
}

/// The floor of all builds. Reads, changes and writes one random line for each item, with prefetch.
/// The floor computes no hash and changes one bit.
fn random_lines<'a>(plan: &'a Plan, items: &'a [u64]) -> Entry<'a> {
    let name = "floor: random line, modified".to_owned();
    let work = move || {
        let sample = time(|| Lines::zeroed(plan.bits()).modify(items));
        (sample, PROOFS)
    };
    Entry { bits_per_item: None, ..entry(name, items, 0, work) }
}

/// The number of items that are looked up after a build.
const PROOFS: u64 = 1000;

fn count(has: impl Fn(u64) -> bool) -> u64 {
    (0..PROOFS).map(|i| u64::from(has(mix(i * 9973)))).sum()
}

fn entry<'a>(
    name: String,
    items: &[u64],
    bits: u64,
    mut work: impl FnMut() -> (Sample, u64) + 'a,
) -> Entry<'a> {
    let items = items.len() as u64;
    let entry = Entry::new(name, items, PROOFS..=PROOFS, move || {
        let (sample, yes) = work();
        Sample { yes, ..sample }
    });
    Entry { bits_per_item: Some(bits as f64 / items as f64), ..entry }
}
