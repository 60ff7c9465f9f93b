//! Generic code takes filters, references to filters and pointers to filters.

use std::rc::Rc;
use std::sync::Arc;

use tamis::{
    AnyFilter, Bloom, Clear, Count, Counting, Cuckoo, DigestSet, Filter, Growing, Insert, Kind,
    NoRoom, PlanError, Remove, SharedBloom, TryInsert, Window,
};

const ITEMS: [u64; 3] = [1, 2, 3];

fn holds_items(filter: impl Filter) -> bool {
    filter.contains_all(&ITEMS) && filter.contains(&1_u64) && !filter.contains(&4_u64)
}

fn fill(mut filter: impl TryInsert) -> usize {
    filter.try_insert_all(&ITEMS).unwrap() + usize::from(filter.try_insert(&1_u64).unwrap())
}

fn fill_without_errors(mut filter: impl Insert) -> usize {
    filter.insert_all(&ITEMS) + fill(filter)
}

#[test]
fn generic_code_takes_references_and_pointers() {
    let mut bloom = Bloom::for_items(100, 1e-4).unwrap();
    assert_eq!(fill_without_errors(&mut bloom), 3);
    let mutable = &mut bloom;
    assert!(holds_items(mutable) && holds_items(&bloom) && holds_items(Rc::new(bloom.clone())));
    assert!(holds_items(Box::new(bloom)));

    let shared = Arc::new(SharedBloom::for_items(100, 1e-4).unwrap());
    assert_eq!(fill_without_errors(&*shared), 3);
    assert_eq!(fill_without_errors(SharedBloom::clone(&shared)), 0);
    assert!(holds_items(shared));

    let mut cuckoo = Cuckoo::for_items(100, 1e-4).unwrap();
    assert_eq!((fill(&mut cuckoo), fill(&mut &mut cuckoo)), (3, 0));
    assert!(holds_items(&cuckoo));
}

#[test]
fn the_type_of_a_filter_can_be_chosen_at_run_time() {
    let filters: [Box<dyn TryInsert + Send + Sync>; 5] = [
        Box::new(Bloom::for_items(100, 1e-4).unwrap()),
        Box::new(Cuckoo::for_items(100, 1e-4).unwrap()),
        Box::new(Growing::new(1e-4).unwrap()),
        Box::new(Window::for_items(100, 1e-4).unwrap()),
        Box::new(AnyFilter::for_items(100, 1e-4).unwrap()),
    ];
    for mut filter in filters {
        assert_eq!(fill(&mut filter), 3);
        assert!(filter.contains(&1_u64) && holds_items(&filter));
        let borrowed: &(dyn TryInsert + Send + Sync) = &*filter;
        assert!(holds_items(borrowed));
    }
    let counting = Counting::for_items(100, 1e-4).unwrap();
    let mut removing: Box<dyn Remove> = Box::new(counting.clone());
    assert_eq!(removing.remove_all(&ITEMS), 0);
    let mut clearing: Box<dyn Clear> = Box::new(counting.clone());
    clearing.clear();
    let counts: &dyn Count = &counting;
    assert_eq!(Count::count(&counts, "a"), 0);
}

#[test]
fn a_filter_of_any_kind_becomes_its_type_or_an_error() {
    let any = AnyFilter::from(Cuckoo::for_items(100, 0.01).unwrap());
    assert!(Cuckoo::try_from(any.clone()).is_ok());
    let expected = PlanError::OtherKind { expected: Kind::SplitBlock, found: Kind::Cuckoo };
    assert_eq!(Bloom::try_from(any), Err(expected));
}

#[test]
fn numbers_of_items_are_any_integers() {
    let items = ["a", "b"];
    let one = Bloom::for_items(items.len(), 0.01).unwrap();
    assert_eq!(one, Bloom::for_items(2, 0.01).unwrap());
    assert_eq!(one, Bloom::for_items(2_u64, 0.01).unwrap());
    assert_eq!(Cuckoo::for_items(-1, 0.01), Err(PlanError::Items));
    assert_eq!(Growing::for_items(-1_i128, 0.01), Err(PlanError::Items));
    assert_eq!(Window::for_items(u128::MAX, 0.01), Err(PlanError::Items));
}

#[test]
fn filters_that_may_refuse_items_extend_or_say_why_not() {
    let mut growing = Growing::new(0.01).unwrap();
    growing.extend(0..5_000_u64);
    assert_eq!(growing.try_extend(0..5_000_u64), Ok(0));
    assert!((0..5_000_u64).all(|item| growing.contains(&item)));

    let mut cuckoo = Cuckoo::for_items(2_000, 0.01).unwrap();
    cuckoo.extend(0..2_000_u64);
    let error = cuckoo.try_extend(0..9_000_u64).unwrap_err();
    assert!((2_000..2_300).contains(&error.inserted), "{error:?}");
    assert!(matches!(error.reason, NoRoom::Full { .. }));
    assert!((0..error.inserted as u64).all(|item| cuckoo.contains(&item)));
}

#[test]
#[should_panic(expected = "the filter is full")]
fn a_full_filter_panics_in_extend() {
    Cuckoo::for_items(100, 0.01).unwrap().extend(0..1_000_u64);
}

#[test]
fn shared_filters_and_digest_sets_are_cloned_and_compared() {
    let seen = SharedBloom::for_items(10_000, 0.01).unwrap();
    seen.insert_all(&ITEMS);
    let copy = seen.clone();
    assert!(copy == seen && copy.contains_all(&ITEMS));
    copy.insert(&4_u64);
    assert!(copy != seen && !seen.contains(&4_u64));
    assert_eq!(copy.into_owned().capacity(), 10_000);

    let mut digests = DigestSet::<u64>::new();
    (0..1_000).for_each(|digest| _ = digests.insert(digest).unwrap());
    let mut copy = digests.clone();
    assert_eq!(copy, digests);
    assert!(copy.insert(1_000).unwrap() && !digests.contains(1_000));
    assert_ne!(copy, digests);
    assert_eq!(DigestSet::<u64>::new(), DigestSet::within(0));
}

#[test]
fn the_description_of_a_growing_filter_has_no_capacity() {
    let mut seen = Growing::new(0.01).unwrap();
    seen.extend(0..1_000_u64);
    let shown = format!("{seen:?}");
    assert!(!shown.contains("capacity") && shown.contains("planned_rate: 0.01"), "{shown}");
    assert!(shown.contains("estimated_items: 100"), "{shown}");
}
