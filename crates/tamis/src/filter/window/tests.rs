//! Tests of the window filter.

use crate::filter::window::*;

fn by_time(slices: u32) -> Window {
    let plan = Plan::window(1000, 0.01, slices).unwrap();
    Window::from_plan(&plan, Hasher::default(), Span::Millis(1000)).unwrap()
}

#[test]
fn an_item_is_remembered_for_the_span_and_forgotten_soon_after() {
    for slices in [1, 2, 3, 4, 7] {
        let slice = 1000_u64.div_ceil(u64::from(slices));
        for start in [0, 1, 249, 250, 999, 1_700_000_000_123] {
            let mut seen = by_time(slices);
            seen.advance(start);
            assert!(seen.insert("tamis"));
            for later in [0, 1, 500, 999, 1000] {
                seen.advance(start + later);
                assert!(seen.contains("tamis"), "{slices} slices, {later} after {start}");
            }
            seen.advance(start + 1000 + slice + u64::from(slices));
            assert!(!seen.contains("tamis"), "{slices} slices, from {start}");
            assert!(seen.insert("tamis"), "as if it had never been there");
        }
    }
}

#[test]
fn items_before_the_first_time_count_as_inserted_at_the_first_time() {
    for slices in [1, 2, 3, 4, 7] {
        for first in [0, 1, 250, 999, 1000, 4000, 1_700_000_000_123] {
            for is_read_back in [false, true] {
                let mut seen = by_time(slices);
                assert!(seen.insert("early"));
                if is_read_back {
                    seen = read_back(&seen);
                }
                seen.advance(first);
                assert!(seen.contains("early") && !seen.insert("early"), "{slices} {first}");
                assert!(seen.insert("late"));
                seen.advance(first + 1000);
                assert!(seen.contains_all(&["early", "late"]), "{slices} slices from {first}");
                let slice = 1000_u64.div_ceil(u64::from(slices));
                seen.advance(first + 1000 + slice + u64::from(slices));
                assert!(!seen.contains("early") && !seen.contains("late"), "{slices} {first}");
                assert!(seen.insert("new"));
                seen = read_back(&seen);
                seen.advance(first + 2000 + slice + u64::from(slices));
                assert!(seen.contains("new"), "{slices} slices from {first}");
            }
        }
    }
    let mut seen = by_time(3);
    seen.insert("early");
    seen.advance(u64::MAX);
    assert!(seen.contains("early") && seen.insert("late") && seen.contains("late"));
}

#[test]
fn a_merge_keeps_the_items_from_before_the_first_time() {
    for slices in [1, 2, 3, 4, 7] {
        for start in [0, 333, 4_000, 5_000, 1_700_000_000_123] {
            let early = || {
                let mut seen = by_time(slices);
                assert!(seen.insert("early"));
                seen
            };
            // The two items of this window are in different slices, if a span has several slices.
            let mut timed = by_time(slices);
            timed.advance(start);
            assert!(timed.insert("first"));
            timed.advance(start + 500);
            assert!(timed.insert("second"));
            let (mut one, mut two, mut three) = (early(), timed.clone(), early());
            one.merge(&read_back(&timed)).unwrap();
            two.merge(&read_back(&early())).unwrap();
            three.merge(&early()).unwrap();
            three.merge(&timed).unwrap();
            let all = ["early", "first", "second"];
            for mut seen in [one, two, three] {
                assert!(seen.contains_all(&all), "{slices} slices from {start}");
                seen.advance(start + 1_000);
                assert!(seen.contains_all(&all), "{slices} slices from {start}");
                seen.advance(start + 1_500);
                assert!(seen.contains_all(&["early", "second"]), "{slices} slices from {start}");
                seen.advance(start + 3_000);
                assert!(all.iter().all(|item| !seen.contains(*item)), "{slices} from {start}");
            }
        }
    }
    let mut latest = by_time(4);
    latest.advance(u64::MAX);
    latest.insert("late");
    let mut early = by_time(4);
    early.insert("early");
    early.merge(&latest).unwrap();
    assert!(early.contains("early") && early.contains("late"));
}

#[test]
fn a_span_is_a_duration_rounded_up() {
    for (duration, millis) in [
        (Duration::from_secs(3_600), 3_600_000),
        (Duration::from_nanos(1), 1),
        (Duration::ZERO, 1),
        (Duration::MAX, u64::MAX),
    ] {
        let seen = Window::for_time(duration, 10, 0.01).unwrap();
        assert_eq!(seen.span(), Span::Millis(millis));
    }
}

#[test]
fn a_window_of_items_remembers_the_last_ones() {
    for (span, slices) in [(1, 4), (4, 4), (10, 3), (1000, 4), (1001, 8)] {
        let plan = Plan::window(span, 1e-9, slices).unwrap();
        let mut seen = Window::from_plan(&plan, Hasher::default(), Span::Items(span)).unwrap();
        let most = (span.div_ceil(u64::from(slices)) * (u64::from(slices) + 1)).max(span + 1);
        for item in 0..5000_u64 {
            assert!(seen.insert(&item));
            for age in [0, 1, span / 2, span - 1, span] {
                assert!(item < age || seen.contains(&(item - age)), "{age} of {span}");
            }
            assert!(item < most || !seen.contains(&(item - most)), "{most} of {span}");
        }
    }
}

#[test]
fn a_repeat_keeps_its_time_unless_it_refreshes() {
    for refreshes in [false, true] {
        let mut seen = if refreshes { by_time(4).refreshing() } else { by_time(4) };
        seen.advance(0);
        assert!(seen.insert("tamis"));
        seen.advance(900);
        assert!(!seen.insert("tamis"), "a repeat is not new");
        seen.advance(1300);
        assert_eq!(seen.contains("tamis"), refreshes);
    }
}

#[test]
fn time_never_goes_back() {
    let mut seen = by_time(4);
    seen.advance(10_000);
    seen.insert("tamis");
    seen.advance(3);
    assert!(seen.contains("tamis"));
    seen.advance(u64::MAX);
    assert!(!seen.contains("tamis"));
    assert!(seen.insert("tamis") && seen.contains("tamis"));
}

#[test]
fn a_merge_remembers_the_items_of_both_windows_as_long_as_they_do() {
    let (mut one, mut other) = (by_time(4), by_time(4));
    one.advance(200);
    one.insert("early");
    other.advance(900);
    other.insert("late");
    let mut back = other.clone();
    one.merge(&other).unwrap();
    back.merge(&by_time(4)).unwrap();
    assert_eq!(back, other, "an empty window adds nothing");
    assert!(one.contains("early") && one.contains("late"));
    one.advance(1600);
    assert!(!one.contains("early") && one.contains("late"));
    let refreshing = by_time(4).refreshing();
    assert_eq!(one.merge(&refreshing), Err(MergeError::Span));
}

#[test]
fn windows_of_items_merge_by_age() {
    let plan = Plan::window(100, 1e-9, 4).unwrap();
    let window = || Window::from_plan(&plan, Hasher::default(), Span::Items(100)).unwrap();
    let (mut one, mut other) = (window(), window());
    (0..1000_u64).for_each(|item| assert!(one.insert(&item)));
    (5000..5080_u64).for_each(|item| assert!(other.insert(&item)));
    one.merge(&other).unwrap();
    assert!((900..1000_u64).chain(5000..5080).all(|item| one.contains(&item)));
    let mut answers = crate::Answers::new();
    one.insert_each(&(10_000..10_200_u64).collect::<Vec<_>>(), &mut answers);
    assert!((900..1000_u64).chain(5000..5080).all(|item| !one.contains(&item)), "forgotten");
}

#[test]
fn a_merged_window_of_items_can_be_merged_again() {
    for slices in 1..=7 {
        let plan = Plan::window(30, 1e-9, slices).unwrap();
        let window = || Window::from_plan(&plan, Hasher::default(), Span::Items(30)).unwrap();
        let (mut shard, mut total, mut all) = (window(), window(), window());
        (0..30_u64).for_each(|item| assert!(shard.insert(&item)));
        total.merge(&shard).unwrap();
        all.merge(&total).unwrap();
        assert!((0..30_u64).all(|item| all.contains(&item)), "{slices} slices");
    }
}

#[test]
fn a_merge_with_an_empty_window_does_not_lengthen_the_span() {
    let plan = Plan::window(30, 1e-9, 3).unwrap();
    let window = || Window::from_plan(&plan, Hasher::default(), Span::Items(30)).unwrap();
    let (mut seen, empty) = (window(), window());
    for item in 0..1_000_u64 {
        assert!(seen.insert(&item));
        seen.merge(&empty).unwrap();
    }
    assert!((970..1_000_u64).all(|item| seen.contains(&item)));
    assert!((0..950_u64).all(|item| !seen.contains(&item)));
}

#[test]
fn merges_of_any_ages_forget_nothing_too_early() {
    for slices in 1..=16_u32 {
        let span = 12 * u64::from(slices);
        let plan = Plan::window(span, 1e-9, slices).unwrap();
        let window = || Window::from_plan(&plan, Hasher::default(), Span::Items(span)).unwrap();
        for (before, peer) in
            [(0, span), (span, 0), (3, 5 * span), (7 * span + 5, span / 2), (1, 1)]
        {
            let (mut one, mut other) = (window(), window());
            (0..before).for_each(|item| assert!(one.insert(&item)));
            (1_000_000..1_000_000 + peer).for_each(|item| assert!(other.insert(&item)));
            let items = (0..before).rev().take(span as usize).collect::<Vec<_>>();
            let peers = (1_000_000..1_000_000 + peer).rev().take(span as usize).collect::<Vec<_>>();
            // Merges the same window four times, with an insert after each merge.
            for round in 0..4 {
                one.merge(&other).unwrap();
                assert!(one.insert(&(2_000_000 + round)));
            }
            for stored in 4..span {
                let kept = |items: &[u64]| {
                    let len = items.len() as u64;
                    items[..len.min(span - stored) as usize].iter().all(|item| one.contains(item))
                };
                assert!(
                    kept(&items) && kept(&peers),
                    "{slices} slices, {before}, {peer}, {stored}"
                );
                assert!(one.insert(&(3_000_000 + stored)));
            }
        }
    }
}

/// Returns the filter that is read from the words of another filter.
fn read_back(seen: &Window) -> Window {
    let mut words = Vec::new();
    seen.each_words_from(0, |part| {
        words.extend_from_slice(part);
        Ok::<_, ()>(())
    })
    .unwrap();
    let mut bits = Bitmap::zeroed(seen.plan.bits()).unwrap();
    bits.words_mut().copy_from_slice(&words);
    Window::restore(&seen.plan, seen.hasher, bits).unwrap()
}

#[test]
fn a_window_keeps_its_clock_in_its_words() {
    for slices in [1, 4] {
        let mut seen = by_time(slices);
        seen.advance(10_000);
        assert!(seen.insert("early"));
        // No insert follows, so the memory stays older than the clock.
        for later in [10_000, 10_900, 11_000, 12_500, 90_000] {
            seen.advance(later);
            let mut back = read_back(&seen);
            assert_eq!(back, seen, "{slices} slices at {later}");
            assert_eq!(back.began_millis(), seen.began_millis());
            assert!(back.insert("late"));
            back.advance(later + 1000);
            assert!(back.contains("late"), "{slices} slices: forgotten within its span");
        }
    }
    let plan = Plan::window(100, 0.01, 4).unwrap();
    let mut seen = Window::from_plan(&plan, Hasher::default(), Span::Items(100)).unwrap();
    for item in 0..200_u64 {
        seen.insert(&item);
        assert_eq!(read_back(&seen), seen, "{item}");
    }
}

#[test]
fn hostile_clocks_are_refused() {
    let plan = Plan::window(100, 0.01, 4).unwrap();
    let words = vec![0; plan.bits() as usize / 64];
    let with = |place: usize, value: u64| {
        let mut words = words.clone();
        words[1] = 100;
        words[place] = value;
        Window::restore(&plan, Hasher::default(), crate::BitView::new(&words)).is_ok()
    };
    assert!(with(0, 0) && with(0, 1 << 62) && !with(0, u64::MAX) && with(2, 3) && with(3, 25));
    assert!(with(4, 0) && with(4, u64::MAX / 2) && !with(4, 1 << 63) && !with(4, u64::MAX));
    assert!(!with(1, 0) && !with(2, 8) && !with(3, 26) && !with(5, 1) && !with(7, 1));
    assert!(!with(2, 4), "a window of items awaits no time");
    let with_time = |flags: u64, latest: u64, stored: u64, phase: u64| {
        let mut words = words.clone();
        (words[0], words[1], words[2], words[3], words[5]) = (latest, 100, flags, stored, phase);
        Window::restore(&plan, Hasher::default(), crate::BitView::new(&words)).is_ok()
    };
    assert!(with_time(1, 9, 0, 4) && with_time(5, 0, 1, 0) && with_time(5, 0, 0, 0));
    assert!(!with_time(1, 9, 0, 5) && !with_time(1, 9, 1, 0) && !with_time(5, 0, 2, 0));
    assert!(!with_time(5, 9, 0, 0) && !with_time(5, 0, 0, 1));
}
