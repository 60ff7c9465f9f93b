//! Compares the exact integer sets with `BTreeSet`, which is slow but simple.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use proptest::prelude::*;
use tamis::{Answers, CompressedSet, DenseSet, Order};

/// One change of a set, with values relative to the start of the set's range.
#[derive(Clone, Debug)]
enum Change {
    Insert(u64),
    Remove(u64),
    InsertRange(RangeInclusive<u64>),
    RemoveRange(RangeInclusive<u64>),
    InsertEach(Vec<u64>),
    Not,
}

const WIDTH: u64 = 700;

fn value() -> impl Strategy<Value = u64> {
    // Values at the edges of words and of the range are frequent. A few values are outside the
    // range.
    prop_oneof![0..WIDTH + 20, Just(0), Just(63), Just(64), Just(WIDTH - 1), Just(WIDTH),]
}

fn range() -> impl Strategy<Value = RangeInclusive<u64>> {
    (value(), value()).prop_map(|(a, b)| a..=b)
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => value().prop_map(Change::Insert),
        3 => value().prop_map(Change::Remove),
        1 => range().prop_map(Change::InsertRange),
        1 => range().prop_map(Change::RemoveRange),
        1 => prop::collection::vec(value(), 0..200).prop_map(Change::InsertEach),
        1 => Just(Change::Not),
    ]
}

/// The start of the range of a set: zero, inside a word, above `u32`, or near the end of `u64`.
fn first() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1_u64..200, Just(u64::from(u32::MAX) - 300), Just(u64::MAX - WIDTH - 20),]
}

fn shift(range: &RangeInclusive<u64>, first: u64) -> RangeInclusive<u64> {
    first + range.start()..=first + range.end()
}

/// Applies a change to all three sets and compares their results.
fn apply(
    change: &Change,
    first: u64,
    dense: &mut DenseSet,
    compressed: &mut CompressedSet,
    oracle: &mut BTreeSet<u64>,
) -> Result<(), TestCaseError> {
    let last = first + WIDTH - 1;
    let fits = |value: u64| value <= last;
    match change {
        Change::Insert(value) => {
            let value = first + value;
            if fits(value) {
                let new = oracle.insert(value);
                prop_assert_eq!(dense.insert(value), Ok(new));
                prop_assert_eq!(compressed.insert(value), new);
            } else {
                prop_assert_eq!(dense.insert(value).unwrap_err().value, value);
            }
        }
        Change::Remove(value) => {
            let was_in = oracle.remove(&(first + value));
            prop_assert_eq!(dense.remove(first + value), was_in);
            prop_assert_eq!(compressed.remove(first + value), was_in);
        }
        Change::InsertRange(range) => {
            let range = shift(range, first);
            if range.is_empty() || fits(*range.end()) && fits(*range.start()) {
                let new = range.clone().filter(|&value| oracle.insert(value)).count() as u64;
                prop_assert_eq!(dense.insert_range(range.clone()), Ok(new));
                prop_assert_eq!(compressed.insert_range(range), new);
            } else {
                prop_assert!(dense.insert_range(range).is_err());
            }
        }
        Change::RemoveRange(range) => {
            let range = shift(range, first);
            let removed = range.clone().filter(|value| oracle.remove(value)).count() as u64;
            prop_assert_eq!(dense.remove_range(range.clone()), removed);
            prop_assert_eq!(compressed.remove_range(range), removed);
        }
        Change::InsertEach(values) => {
            let values: Vec<u64> = values.iter().map(|value| first + value).collect();
            let mut answers = Answers::new();
            if values.iter().all(|&value| fits(value)) {
                let new: Vec<bool> = values.iter().map(|&value| oracle.insert(value)).collect();
                prop_assert_eq!(dense.insert_each(&values, &mut answers), Ok(()));
                prop_assert!(answers.iter().eq(new.iter().copied()));
                compressed.insert_each(&values, &mut answers);
                prop_assert!(answers.iter().eq(new));
            } else {
                prop_assert!(dense.insert_each(&values, &mut answers).is_err());
            }
        }
        Change::Not => {
            dense.not();
            compressed.not(first..=last);
            *oracle = (first..=last).filter(|value| !oracle.contains(value)).collect();
        }
    }
    Ok(())
}

/// Compares the answers of all three sets for every read operation.
fn compare(
    dense: &DenseSet,
    compressed: &CompressedSet,
    oracle: &BTreeSet<u64>,
    first: u64,
) -> Result<(), TestCaseError> {
    let last = first + WIDTH - 1;
    prop_assert!(dense.iter().eq(oracle.iter().copied()));
    prop_assert!(compressed.iter().eq(oracle.iter().copied()));
    let words = dense.words().flat_map(|(base, word)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base + bit)
    });
    prop_assert!(words.eq(oracle.iter().copied()));
    let count = oracle.len() as u64;
    prop_assert_eq!((dense.len(), compressed.len()), (count, count));
    prop_assert_eq!((dense.min(), compressed.min()), (oracle.first().copied(), dense.min()));
    prop_assert_eq!((dense.max(), compressed.max()), (oracle.last().copied(), dense.max()));
    prop_assert_eq!((dense.is_empty(), compressed.is_empty()), (count == 0, count == 0));

    let lookups: Vec<u64> = (first.saturating_sub(70)..=last.saturating_add(20)).collect();
    let mut answers = Answers::new();
    dense.contains_each(&lookups, &mut answers);
    let mut compressed_answers = Answers::new();
    compressed.contains_each(&lookups, &mut compressed_answers);
    prop_assert_eq!(&answers, &compressed_answers);
    let index = dense.rank_index();
    let mut rank = 0;
    for (at, &value) in lookups.iter().enumerate() {
        let is_in = oracle.contains(&value);
        prop_assert_eq!((dense.contains(value), answers.get(at)), (is_in, is_in));
        rank += u64::from(is_in);
        prop_assert_eq!((dense.rank(value), index.rank(value)), (rank, rank), "{}", value);
        prop_assert_eq!(compressed.rank(value), rank);
    }
    for (n, &value) in oracle.iter().enumerate() {
        let n = n as u64;
        prop_assert_eq!((dense.select(n), index.select(n)), (Some(value), Some(value)));
        prop_assert_eq!(compressed.select(n), Some(value));
    }
    prop_assert_eq!((dense.select(count), index.select(count)), (None, None));
    prop_assert_eq!(compressed.select(count), None);
    Ok(())
}

proptest! {
    #[test]
    fn every_operation_agrees_with_a_tree_set(
        first in first(),
        changes in prop::collection::vec(change(), 0..25),
        lookups in prop::collection::vec(range(), 4),
    ) {
        let last = first + WIDTH - 1;
        let mut dense = DenseSet::new(first..=last).unwrap();
        let mut compressed = CompressedSet::new();
        let mut oracle = BTreeSet::new();
        for change in &changes {
            apply(change, first, &mut dense, &mut compressed, &mut oracle)?;
        }
        compare(&dense, &compressed, &oracle, first)?;
        for range in lookups {
            let range = shift(&range, first);
            let count = range.clone().filter(|value| oracle.contains(value)).count() as u64;
            let all = range.clone().all(|value| oracle.contains(&value));
            prop_assert_eq!(dense.count_range(range.clone()), count);
            prop_assert_eq!(compressed.count_range(range.clone()), count);
            prop_assert_eq!(dense.contains_range(range.clone()), all);
            prop_assert_eq!(compressed.contains_range(range), all);
        }
        prop_assert_eq!(dense.to_compressed(), compressed.clone());
        prop_assert_eq!(compressed.to_dense(first..=last).unwrap(), dense.clone());
        for order in [Order::LsbFirst, Order::MsbFirst] {
            let bytes = dense.to_bytes(order);
            prop_assert_eq!(bytes.len() as u64, WIDTH.div_ceil(8));
            let back = DenseSet::from_bytes(first, &bytes, order).unwrap();
            prop_assert!(back.iter().eq(oracle.iter().copied()));
        }
    }

    #[test]
    fn set_algebra_agrees_with_a_tree_set(
        first in first(),
        one in prop::collection::btree_set(0..WIDTH, 0..300),
        two in prop::collection::btree_set(0..WIDTH, 0..300),
    ) {
        let tree = |set: &BTreeSet<u64>| -> BTreeSet<u64> { set.iter().map(|v| v + first).collect() };
        let (one, two) = (tree(&one), tree(&two));
        let compressed = |set: &BTreeSet<u64>| set.iter().copied().collect::<CompressedSet>();
        let (first_compressed, other_compressed) = (compressed(&one), compressed(&two));
        let range = first..=first + WIDTH - 1;
        let dense = first_compressed.to_dense(range.clone()).unwrap();
        let other = other_compressed.to_dense(range).unwrap();
        type Dense = fn(&mut DenseSet, &DenseSet) -> Result<(), tamis::RangeMismatch>;
        type Compressed = fn(&mut CompressedSet, &CompressedSet);
        let cases: [(Dense, Compressed, BTreeSet<u64>); 4] = [
            (DenseSet::and, CompressedSet::and, &one & &two),
            (DenseSet::or, CompressedSet::or, &one | &two),
            (DenseSet::xor, CompressedSet::xor, &one ^ &two),
            (DenseSet::and_not, CompressedSet::and_not, &one - &two),
        ];
        for (change_dense, change_compressed, expected) in cases {
            let mut set = dense.clone();
            change_dense(&mut set, &other).unwrap();
            prop_assert!(set.iter().eq(expected.iter().copied()));
            let mut set = first_compressed.clone();
            change_compressed(&mut set, &other_compressed);
            prop_assert!(set.iter().eq(expected));
        }
    }
}
