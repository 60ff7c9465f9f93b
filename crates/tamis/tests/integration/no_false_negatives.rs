//! Every inserted item is found, for every kind, storage, insert method and number of threads.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{filled, words_of};
use proptest::prelude::*;
use tamis::{
    Answers, AnyFilter, AtomicBitmap, BitView, Bits, Bloom, BloomFilter, Classic, Filter, Hasher,
    Kind, MergeError, Parquet, Plan, SplitBlock, Strategy as Rule,
};

/// The kinds that never lose an item, because their bits or counters only increase.
const KINDS: [Kind; 4] = [Kind::SplitBlock, Kind::Parquet, Kind::Classic, Kind::Counting];

fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(KINDS.to_vec())
}

fn any_hasher() -> impl Strategy<Value = Hasher> {
    prop_oneof![
        any::<u64>().prop_map(Hasher::mix),
        any::<u64>().prop_map(Hasher::xxh3),
        any::<[u64; 2]>().prop_map(Hasher::sip13),
        any::<u64>().prop_map(Hasher::xxh64),
    ]
}

fn any_plan() -> impl Strategy<Value = Plan> {
    // Some plans are far too small for the inserted items. An overfull filter has more false
    // positives than planned, but never a false negative.
    (any_kind(), 1_u64..3000, prop::sample::select(vec![0.5, 0.1, 0.01, 1e-4]))
        .prop_map(|(kind, items, rate)| Plan::for_kind(kind, items, rate).unwrap())
}

/// One operation of a test, on a filter and on the set of items that the filter must contain.
#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>),
    InsertEach(Vec<Vec<u8>>),
    Extend(Vec<Vec<u8>>),
    Merge(Vec<Vec<u8>>),
    Contains(Vec<u8>),
}

fn any_step() -> impl Strategy<Value = Step> {
    let item = || prop::collection::vec(any::<u8>(), 0..40);
    let items = || prop::collection::vec(item(), 0..200);
    prop_oneof![
        item().prop_map(Step::Insert),
        items().prop_map(Step::InsertEach),
        items().prop_map(Step::Extend),
        items().prop_map(Step::Merge),
        item().prop_map(Step::Contains),
    ]
}

proptest! {
    #[test]
    fn a_filter_contains_what_the_set_contains(
        plan in any_plan(),
        hasher in any_hasher(),
        steps in prop::collection::vec(any_step(), 1..12),
    ) {
        let mut filter = AnyFilter::from_plan(&plan, hasher).unwrap();
        let mut oracle = HashSet::new();
        let mut answers = Answers::new();
        for step in steps {
            match step {
                Step::Insert(item) => {
                    let new = filter.try_insert(&item).unwrap();
                    prop_assert!(!new || oracle.insert(item.clone()), "a repeat is never new");
                    oracle.insert(item);
                }
                Step::InsertEach(items) => {
                    filter.try_insert_each(&items, &mut answers).unwrap();
                    for (item, new) in items.into_iter().zip(answers.iter()) {
                        prop_assert!(oracle.insert(item) || !new, "a repeat is never new");
                    }
                }
                Step::Extend(items) => {
                    match &mut filter {
                        AnyFilter::SplitBlock(bloom) => bloom.extend(&items),
                        AnyFilter::Parquet(bloom) => bloom.extend(&items),
                        AnyFilter::Classic(bloom) => bloom.extend(&items),
                        other => other.try_insert_each(&items, &mut answers).unwrap(),
                    }
                    oracle.extend(items);
                }
                Step::Merge(items) => {
                    filter.merge(&filled(&plan, hasher, &items)).unwrap();
                    oracle.extend(items);
                }
                Step::Contains(item) => {
                    prop_assert!(filter.contains(&item) || !oracle.contains(&item));
                }
            }
        }
        // Looks up the items in the owned filter and in the borrowed filter, one by one and in
        // batches.
        let words = words_of(&filter);
        let view = AnyFilter::view(filter.plan(), hasher, &words).unwrap();
        let items: Vec<&Vec<u8>> = oracle.iter().collect();
        prop_assert!(items.iter().all(|item| filter.contains(item) && view.contains(item)));
        for in_batch in [&filter as &dyn AsksEach, &view] {
            in_batch.ask(&items, &mut answers);
            prop_assert_eq!(answers.count_ones(), items.len());
        }
    }

    #[test]
    fn merging_gives_the_bytes_of_one_filter_of_all_items(
        plan in any_plan(),
        left in prop::collection::vec(any::<u64>(), 0..300),
        right in prop::collection::vec(any::<u64>(), 0..300),
    ) {
        let filled = |items: &[u64]| filled(&plan, Hasher::default(), items);
        let mut merged = filled(&left);
        merged.merge(&filled(&right)).unwrap();
        prop_assert_eq!(merged, filled(&[left, right].concat()));
    }
}

trait AsksEach {
    fn ask(&self, items: &[&Vec<u8>], answers: &mut Answers);
}

impl<F: Filter> AsksEach for F {
    fn ask(&self, items: &[&Vec<u8>], answers: &mut Answers) {
        self.contains_each(items, answers);
    }
}

#[test]
fn merge_refuses_other_layouts() {
    let plan = Plan::for_kind(Kind::SplitBlock, 100, 0.01).unwrap();
    let filter = |plan: &Plan, hasher| AnyFilter::from_plan(plan, hasher).unwrap();
    let mut seen = filter(&plan, Hasher::default());
    for other in [
        filter(&Plan::for_kind(Kind::Parquet, 100, 0.01).unwrap(), Hasher::default()),
        filter(&Plan::for_kind(Kind::SplitBlock, 9000, 0.01).unwrap(), Hasher::default()),
        filter(&plan, Hasher::mix(1)),
    ] {
        let (expected, found) = (seen.layout(), other.layout());
        assert_eq!(seen.merge(&other), Err(MergeError::Layout { expected, found }));
        assert_eq!(seen, filter(&plan, Hasher::default()), "nothing has changed");
    }
}

/// Four threads insert overlapping shares of the items, one by one and in batches. Each thread also
/// looks up the items that the thread has inserted.
fn share_a_filter<S: Rule>() {
    let plan = Plan::for_kind(S::KIND, 40_000, 0.01).unwrap();
    let shared = BloomFilter::<S, AtomicBitmap>::from_plan(&plan, Hasher::default()).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..4_u64 {
            let shared = &shared;
            threads.spawn(move || {
                let items: Vec<u64> = (thread * 5_000..thread * 5_000 + 20_000).collect();
                let (first, rest) = items.split_at(10_000);
                for item in first {
                    shared.insert(item);
                    assert!(shared.contains(item), "{item} at once");
                }
                let mut answers = Answers::new();
                (*shared).insert_each(rest, &mut answers);
                shared.contains_each(&items, &mut answers);
                assert_eq!(answers.count_ones(), items.len());
            });
        }
    });
    let mut alone = BloomFilter::<S>::from_plan(&plan, Hasher::default()).unwrap();
    alone.extend(0..35_000_u64);
    let shared_words: Vec<u64> =
        shared.bits().words().iter().map(|word| word.load(Ordering::Relaxed)).collect();
    assert_eq!(shared_words, alone.bits().words(), "the bytes of one thread");
}

#[test]
fn threads_that_share_a_filter_lose_nothing() {
    share_a_filter::<SplitBlock>();
    share_a_filter::<Parquet>();
    share_a_filter::<Classic>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Threads insert batches long enough to be sorted, short batches and single items. Several
    /// threads insert some of the items, and only one thread inserts each of the other items.
    #[test]
    fn threads_that_insert_in_batches_lose_nothing(
        capacity in prop_oneof![Just(1_u64), 1_u64..300, 300_u64..60_000],
        shares in prop::collection::vec((0_u64..20_000, 0_u64..20_000, 1_usize..8_000), 2..5),
    ) {
        let plan = Plan::for_kind(Kind::SplitBlock, capacity, 0.001).unwrap();
        let shared = BloomFilter::<SplitBlock, AtomicBitmap>::from_plan(&plan, Hasher::default()).unwrap();
        let start = std::sync::Barrier::new(shares.len());
        let news: usize = std::thread::scope(|threads| {
            let insert = |&(first, len, batch): &(u64, u64, usize)| {
                let (shared, start) = (&shared, &start);
                threads.spawn(move || {
                    let items: Vec<u64> = (first..first + len).collect();
                    let mut answers = Answers::new();
                    let mut new = 0;
                    start.wait();
                    for (i, items) in items.chunks(batch).enumerate() {
                        if i % 4 == 3 {
                            new += items.iter().filter(|item| shared.insert(*item)).count();
                        } else {
                            (*shared).insert_each(items, &mut answers);
                            new += answers.count_ones();
                        }
                        shared.contains_each(items, &mut answers);
                        assert_eq!(answers.count_ones(), items.len(), "at once");
                    }
                    new
                })
            };
            let threads: Vec<_> = shares.iter().map(insert).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let mut alone = Bloom::from_plan(&plan, Hasher::default()).unwrap();
        let mut distinct = HashSet::new();
        for &(first, len, _) in &shares {
            alone.extend(first..first + len);
            distinct.extend(first..first + len);
        }
        prop_assert!(news <= distinct.len(), "{news} new of {} distinct", distinct.len());
        if alone.fill() < 0.3 {
            // The order of the items determines which items are false positives, but hardly changes
            // their number.
            prop_assert!(news * 100 >= distinct.len() * 98, "{news} of {}", distinct.len());
        }
        let is_equal = |(shared, alone): (&AtomicU64, &u64)| shared.load(Ordering::Relaxed) == *alone;
        prop_assert!(shared.bits().words().iter().zip(alone.bits().words()).all(is_equal));
    }
}

/// Four threads insert the same items in the same order, one by one or in small batches. Threads
/// often insert the same item at the same time.
fn race_for_each_item<S: Rule>(batch: usize) {
    const ITEMS: u64 = 20_000;
    // The filter is nearly empty, so that no item is a false positive.
    let plan = Plan::for_kind(S::KIND, ITEMS * 20, 1e-4).unwrap();
    let shared = BloomFilter::<S, AtomicBitmap>::from_plan(&plan, Hasher::default()).unwrap();
    let items: Vec<u64> = (0..ITEMS).collect();
    let start = std::sync::Barrier::new(4);
    let insert = || {
        start.wait();
        let batches = items.chunks(batch);
        batches.map(|items| shared.insert_all(items)).sum::<usize>()
    };
    let news: usize = std::thread::scope(|threads| {
        let counts: Vec<_> = (0..4).map(|_| threads.spawn(insert)).collect();
        counts.into_iter().map(|count| count.join().unwrap()).sum()
    });
    assert_eq!(news, items.len(), "{:?} in batches of {batch}", S::KIND);
}

#[test]
fn one_of_several_threads_finds_an_item_new() {
    for batch in [1, 12] {
        race_for_each_item::<SplitBlock>(batch);
        race_for_each_item::<Parquet>(batch);
        race_for_each_item::<Classic>(batch);
    }
}

#[test]
fn a_filter_built_by_threads_contains_every_item() {
    let items: Vec<String> = (0..200_000).map(|i| format!("https://example.org/{i}")).collect();
    let plan = Plan::for_kind(Kind::SplitBlock, 1_000_000, 0.01).unwrap();
    let seen = Bloom::build(&plan, Hasher::default(), &items, NonZero::new(3).unwrap()).unwrap();
    let view =
        BloomFilter::<SplitBlock, BitView>::view(&plan, Hasher::default(), seen.bits().words());
    let mut answers = Answers::new();
    view.unwrap().contains_each(&items, &mut answers);
    assert_eq!(answers.count_ones(), items.len());
}
