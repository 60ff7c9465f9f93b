//! Words that a filter accepts stay readable: after some inserts, the words of the filter are
//! accepted again.

use crate::support::{filled, words_of};
use tamis::{AnyFilter, Bitmap, BitsMut as _, Hasher, Kind, Plan};

/// Numbers at which a counter overflows, and numbers just below an overflow.
const EDGES: [u64; 9] =
    [0, 1, (1 << 62) - 1, i64::MAX as u64 - 1, i64::MAX as u64, 1 << 63, !63, !1, !0];

fn restored(plan: &Plan, words: &[u64]) -> Option<AnyFilter> {
    let mut bits = Bitmap::zeroed(words.len() as u64 * 64).unwrap();
    bits.words_mut().copy_from_slice(words);
    AnyFilter::restore(plan, Hasher::default(), bits).ok()
}

/// Panics if a filter accepts `words`, but does not accept its own words after some inserts.
/// Returns true if the filter accepts `words`.
fn stays_readable(plan: &Plan, words: &[u64]) -> bool {
    let Some(mut filter) = restored(plan, words) else { return false };
    for item in 1000..1060_u64 {
        if filter.try_insert(&item).is_err() {
            continue;
        }
        let Some(again) = restored(plan, &words_of(&filter)) else {
            panic!("{plan:?}: unreadable after {item}, from {:?}", &words[..words.len().min(8)]);
        };
        assert!(again.contains(&item), "{plan:?}: {item} is lost");
    }
    true
}

#[test]
fn words_with_numbers_at_their_limits_stay_readable() {
    for kind in Kind::ALL {
        let plan = Plan::for_kind(kind, 40, 0.01).unwrap();
        let items: Vec<u64> = (0..20).collect();
        let words = words_of(&filled(&plan, Hasher::default(), &items));
        assert!(stays_readable(&plan, &words));
        for at in 0..words.len().min(16) {
            for edge in EDGES {
                let mut crafted = words.clone();
                crafted[at] = edge;
                stays_readable(&plan, &crafted);
            }
        }
    }
}

#[test]
fn a_window_at_any_slice_stays_readable() {
    let mut accepted = 0;
    for slices in [1, 3, 4] {
        let plan = Plan::window(40, 0.01, slices).unwrap();
        let words = words_of(&AnyFilter::from_plan(&plan, Hasher::default()).unwrap());
        for memory in EDGES {
            for (span, passed) in [(1, 0), (1, 1), (7, 0), (40, 5), (!0, 0), (9, i64::MAX as u64)] {
                for (flags, stored) in [(0, 0), (0, 1), (0, 10), (1, 0), (2, 0), (3, 0)] {
                    let mut crafted = words.clone();
                    crafted[..5].copy_from_slice(&[memory, span, flags, stored, passed]);
                    accepted += u32::from(stays_readable(&plan, &crafted));
                }
            }
        }
    }
    assert!(accepted > 100, "{accepted}");
}
