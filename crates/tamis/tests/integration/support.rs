//! Functions that several tests use.

use std::convert::Infallible;

use tamis::{Answers, AnyFilter, FilterWords as _, Hasher, Item, Plan};

/// Creates a filter that holds `items`.
pub fn filled<I: Item>(plan: &Plan, hasher: Hasher, items: &[I]) -> AnyFilter {
    let mut filter = AnyFilter::from_plan(plan, hasher).unwrap();
    filter.try_insert_each(items, &mut Answers::new()).unwrap();
    filter
}

/// Counts the items that the filter reports as present.
pub fn count_found<I: Item>(filter: &AnyFilter, items: &[I]) -> u64 {
    let mut answers = Answers::new();
    filter.contains_each(items, &mut answers);
    answers.count_ones() as u64
}

/// Returns numbers that no test inserts.
pub fn absent(len: u64) -> Vec<u64> {
    (1 << 40..(1 << 40) + len).collect()
}

/// Returns all words of a filter.
pub fn words_of(filter: &AnyFilter) -> Vec<u64> {
    let mut words = Vec::new();
    let Ok(()) = filter.each_words_from(0, |part| {
        words.extend_from_slice(part);
        Ok::<(), Infallible>(())
    });
    words
}
