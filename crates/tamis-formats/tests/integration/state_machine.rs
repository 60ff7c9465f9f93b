//! Runs random operations on every kind of filter and compares it with an exact set: inserts,
//! removals, growth, writing and reading files, merges, clock steps.

use std::collections::HashMap;

use proptest::prelude::*;
use tamis::{Answers, AnyFilter, Hasher, Kind, MergeError, NoRoom, Plan, Removed, Span, Window};
use tamis_formats::TamisFile;

/// One random operation. The items are few, so that repeats and removals of members are common.
#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    InsertEach(Vec<u16>),
    Remove(u16),
    Save,
    Merge(Vec<u16>),
    Advance(u16),
}

fn any_step() -> impl Strategy<Value = Step> {
    let item = || 0_u16..600;
    prop_oneof![
        3 => item().prop_map(Step::Insert),
        3 => prop::collection::vec(item(), 0..150).prop_map(Step::InsertEach),
        3 => item().prop_map(Step::Remove),
        1 => Just(Step::Save),
        1 => prop::collection::vec(item(), 0..80).prop_map(Step::Merge),
        2 => (0_u16..400).prop_map(Step::Advance),
    ]
}

/// The span of the windows. A slice lasts 250.
const SPAN: u64 = 1000;

fn empty(plan: &Plan) -> AnyFilter {
    match plan.kind() {
        Kind::Window => {
            let span = Span::Millis(SPAN);
            AnyFilter::Window(Window::from_plan(plan, Hasher::default(), span).unwrap())
        }
        _ => AnyFilter::from_plan(plan, Hasher::default()).unwrap(),
    }
}

/// The oracle: the number of copies of each present item, and the time of its last insert.
#[derive(Default)]
struct Oracle {
    copies: HashMap<u16, u64>,
    stored_at: HashMap<u16, u64>,
}

impl Oracle {
    fn add(&mut self, item: u16, is_new: bool, now: u64) {
        *self.copies.entry(item).or_default() += 1;
        if is_new {
            self.stored_at.insert(item, now);
        }
    }

    /// Returns true if the filter must report the item as present.
    fn must_contain(&self, item: u16, forgets: bool, now: u64) -> bool {
        if forgets {
            self.stored_at.get(&item).is_some_and(|&at| now - at <= SPAN)
        } else {
            self.copies.get(&item).is_some_and(|&copies| copies > 0)
        }
    }
}

fn check(filter: &AnyFilter, oracle: &Oracle, now: u64) -> Result<(), TestCaseError> {
    let kind = filter.plan().kind();
    let members: Vec<u16> = oracle
        .copies
        .keys()
        .copied()
        .filter(|&item| oracle.must_contain(item, kind.forgets(), now))
        .collect();
    let mut answers = Answers::new();
    filter.contains_each(&members, &mut answers);
    prop_assert_eq!(answers.count_ones(), members.len(), "{}: a false negative", kind);
    for item in members {
        prop_assert!(filter.contains(&item), "{kind}: a false negative one by one");
        let hash = filter.hasher().hash_item(&item);
        if let Some(count) = filter.count_hash(hash) {
            let most = filter.max_count().unwrap();
            prop_assert!(count >= oracle.copies[&item].min(most), "{kind}: {count}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_order_of_steps_makes_a_false_negative(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        capacity in prop::sample::select(vec![1_u64, 100, 1000, 5000]),
        rate in prop::sample::select(vec![0.1, 0.01, 1e-4]),
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        let plan = Plan::for_kind(kind, capacity, rate).unwrap();
        let (mut filter, mut oracle, mut now) = (empty(&plan), Oracle::default(), 0_u64);
        for step in steps {
            match step {
                Step::Insert(item) => {
                    if let Ok(is_new) = filter.try_insert_copy(&item) {
                        oracle.add(item, is_new, now);
                    }
                }
                Step::InsertEach(items) => {
                    let mut answers = Answers::new();
                    let inserted = match filter.try_insert_copy_each(&items, &mut answers) {
                        Ok(()) => items.len(),
                        Err(error) => error.inserted
                    };
                    for (&item, is_new) in items[..inserted].iter().zip(answers.iter()) {
                        oracle.add(item, is_new, now);
                    }
                }
                Step::Remove(item) => {
                    // The test removes only members. The removal of an absent item would remove
                    // bits of other items.
                    let copies = oracle.copies.entry(item).or_default();
                    if *copies > 0 {
                        match filter.remove_hash(filter.hasher().hash_item(&item)) {
                            Some(Removed::Yes) => *copies -= 1,
                            Some(Removed::Absent) => prop_assert!(false, "{kind}: a member is absent"),
                            Some(Removed::Saturated) | None => {}
                        }
                    }
                }
                Step::Save => {
                    let file = TamisFile::new(filter);
                    let mut bytes = Vec::new();
                    file.write_to(&mut bytes).unwrap();
                    prop_assert_eq!(bytes.len() as u64, file.len_bytes());
                    let back = TamisFile::decode(&bytes).unwrap();
                    let mut again = Vec::new();
                    back.write_to(&mut again).unwrap();
                    prop_assert!(bytes == again, "{}: the bytes of what was read", kind);
                    // Read the file in place, too.
                    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
                    let aligned: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
                    aligned[..bytes.len()].copy_from_slice(&bytes);
                    let view = TamisFile::view(&aligned[..bytes.len()]).unwrap();
                    for &item in oracle.copies.keys() {
                        prop_assert_eq!(view.filter.contains(&item), back.filter.contains(&item));
                    }
                    filter = back.filter;
                    filter.advance(now);
                }
                Step::Merge(items) => {
                    let mut other = empty(&plan);
                    other.advance(now);
                    let mut answers = Answers::new();
                    if other.try_insert_copy_each(&items, &mut answers).is_err() {
                        continue;
                    }
                    let before = filter.clone();
                    match filter.merge(&other) {
                        Ok(()) => items.iter().for_each(|&item| oracle.add(item, true, now)),
                        Err(MergeError::NoRoom(NoRoom::Full { .. } | NoRoom::Copies { .. })) => {
                            prop_assert!(filter == before, "{}: a refused merge changed it", kind);
                        }
                        Err(error) => prop_assert!(false, "{kind}: {error}"),
                    }
                }
                Step::Advance(millis) => {
                    now += u64::from(millis);
                    filter.advance(now);
                }
            }
            check(&filter, &oracle, now)?;
        }
    }
}
