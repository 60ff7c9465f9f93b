//! Every filter has its methods without an import of a trait. Methods of the same name give the
//! same results for every filter.

use tamis::{
    Answers, AnyFilter, Bloom, BloomFilter, ClassicBloom, Counting, Cuckoo, Growing, Hasher, Kind,
    ParquetBloom, Plan, Removed, Span, SplitBlock, Window,
};

/// Tests the methods of a filter that accepts every item.
macro_rules! assert_methods {
    ($seen:expr) => {{
        let mut seen = $seen;
        let items: Vec<u64> = (0..3_000).collect();
        let absent: Vec<u64> = (1 << 40..(1 << 40) + 3_000).collect();
        assert!(seen.is_empty() && seen.contains_all::<u64>(&[]) && !seen.contains_all(&[1_u64]));
        assert!(seen.insert("tamis") && !seen.insert("tamis") && seen.contains("tamis"));
        assert!(!seen.is_empty());
        let new = seen.insert_all(&items);
        assert!((2_950..=3_000).contains(&new), "{new} are new");
        assert!(seen.contains_all(&items) && !seen.contains_all(&absent));
        assert!(
            !seen.contains_all(&[&items[..], &absent[..1_000]].concat()),
            "the last are absent"
        );
        let mut answers = Answers::new();
        seen.contains_each(&items, &mut answers);
        assert_eq!((answers.len(), answers.count_ones()), (3_000, 3_000));
        seen.insert_each(&items, &mut answers);
        assert_eq!(answers.count_ones(), 0, "none is new");
        let hash = seen.hasher().hash_item(&7_u64);
        assert!(seen.contains_hash(hash) && !seen.insert_hash(hash));
        assert_eq!(seen.capacity(), seen.plan().items());
        assert!(seen.estimate_rate() < 0.02 && seen.fill() > 0.0 && !seen.is_over_rate());
        let mut other = seen.clone();
        other.clear();
        assert!(other.is_empty() && other.estimate_items() == 0.0 && !other.contains("tamis"));
        other.insert("other");
        seen.merge(&other).unwrap();
        assert!(seen.contains("other") && seen.contains("tamis"));
        assert_eq!(seen.layout(), other.layout());
        seen
    }};
}

#[test]
fn filters_that_take_every_item_share_their_methods() {
    assert_methods!(Bloom::for_items(10_000, 0.01).unwrap());
    assert_methods!(ParquetBloom::for_items(10_000, 0.01).unwrap());
    assert_methods!(ClassicBloom::for_items(10_000, 0.01).unwrap());
    assert_methods!(Window::for_items(10_000, 0.01).unwrap());
    let mut seen = assert_methods!(Counting::for_items(10_000, 0.01).unwrap());
    assert_eq!((seen.count("other"), seen.max_count()), (1, 15));
    assert_eq!(seen.remove("other"), Removed::Yes);
    assert!((95..=100).contains(&seen.remove_all(&(0..100_u64).collect::<Vec<_>>())));
    seen.remove_each(&[5_000_000_u64], &mut Answers::new());
}

#[test]
fn a_window_that_is_cleared_keeps_its_time() {
    let plan = Plan::window(1_000, 0.01, 3).unwrap();
    let mut seen = Window::from_plan(&plan, Hasher::default(), Span::Millis(3_000)).unwrap();
    seen.advance(10_000);
    seen.insert("before");
    seen.clear();
    assert_eq!((seen.contains("before"), seen.began_millis()), (false, Some(10_000)));
    seen.insert("after");
    seen.advance(13_000);
    assert!(seen.contains("after"), "a span later");
    seen.advance(14_000);
    assert!(!seen.contains("after"), "a slice after that");
}

/// Tests the methods of a filter that may refuse items.
macro_rules! assert_try_methods {
    ($seen:expr) => {{
        let mut seen = $seen;
        let items: Vec<u64> = (0..3_000).collect();
        assert!(seen.is_empty());
        assert!(seen.try_insert("tamis").unwrap() && seen.contains("tamis"));
        let new = seen.try_insert_all(&items).unwrap();
        assert!((2_950..=3_000).contains(&new), "{new} are new");
        assert!(seen.contains_all(&items) && !seen.is_empty());
        let hash = seen.hasher().hash_item("by hash");
        assert!(seen.try_insert_hash(hash).unwrap() && seen.contains_hash(hash));
        let mut other = seen.clone();
        other.clear();
        assert!(other.is_empty() && !other.contains("tamis") && other.estimate_items() == 0.0);
        other.try_insert_each(&["other"], &mut Answers::new()).unwrap();
        seen.merge(&other).unwrap();
        assert!(seen.contains_all(&["other", "tamis"]));
        seen
    }};
}

#[test]
fn filters_that_may_refuse_items_share_their_methods() {
    let mut seen = assert_try_methods!(Cuckoo::for_items(10_000, 0.01).unwrap());
    assert_eq!((seen.count("other"), seen.remove("other")), (1, Removed::Yes));
    assert_try_methods!(Growing::new(0.01).unwrap());
    for kind in Kind::ALL {
        let plan = Plan::for_kind(kind, 10_000, 0.01).unwrap();
        let mut seen = assert_try_methods!(AnyFilter::from_plan(&plan, Hasher::default()).unwrap());
        assert_eq!(seen.count("other").is_some(), kind.can_remove(), "{kind}");
        let removed = kind.can_remove().then_some(Removed::Yes);
        assert_eq!(seen.remove("other"), removed, "{kind}");
    }
}

#[test]
fn a_full_filter_reports_how_many_items_of_a_batch_it_inserted() {
    let mut seen = Cuckoo::for_items(2_000, 0.01).unwrap();
    let items: Vec<u64> = (0..5_000).collect();
    let mut new = Answers::new();
    let error = seen.try_insert_each(&items, &mut new).unwrap_err();
    assert!(error.inserted >= 2_000, "{error:?}");
    assert!(seen.contains_all(&items[..error.inserted]));
    // The filter stores nothing for a new item that the filter reports as present.
    assert_eq!(seen.len(), new.count_ones() as u64);
    assert!(seen.len() <= error.inserted as u64 && seen.len() > 1_980);
}

#[test]
fn a_batch_of_any_length_answers_as_single_items_do() {
    for len in [0, 1, 63, 64, 65, 255, 256, 257, 1_023, 1_024, 1_025, 2_100] {
        let items: Vec<u64> = (0..len).map(|i| i * i % 1_000).collect();
        let (mut one, mut each) =
            (Counting::for_items(2_000, 0.01).unwrap(), Counting::for_items(2_000, 0.01).unwrap());
        let mut answers = Answers::new();
        each.insert_each(&items, &mut answers);
        let expected: Vec<bool> = items.iter().map(|item| one.insert(item)).collect();
        assert_eq!(answers.iter().collect::<Vec<_>>(), expected, "{len} items");
        assert_eq!(each, one, "{len} items");
        each.remove_each(&items, &mut answers);
        let expected: Vec<bool> =
            items.iter().map(|item| one.remove(item) == Removed::Yes).collect();
        assert_eq!(answers.iter().collect::<Vec<_>>(), expected, "{len} items");
    }
}

#[test]
fn a_shared_filter_is_cleared_and_merged_by_its_owner() {
    let plan = Plan::for_kind(Kind::SplitBlock, 10_000, 0.01).unwrap();
    let mut seen = BloomFilter::<SplitBlock, _>::from_plan(&plan, Hasher::default()).unwrap();
    let items: Vec<u64> = (0..3_000).collect();
    assert!(seen.is_empty());
    assert!((2_950..=3_000).contains(&seen.insert_all(&items)));
    assert!(seen.contains_all(&items) && !seen.insert(&5_u64));
    let mut other = Bloom::for_items(10_000, 0.01).unwrap();
    other.insert("other");
    seen.merge(&other).unwrap();
    assert!(seen.contains("other") && seen.contains_all(&items));
    seen.clear();
    assert!(seen.is_empty());
}
