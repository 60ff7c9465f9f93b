//! Looks up inserted items a billion times, over all kinds of filter, while the filter is filled,
//! emptied and grown. Every lookup must answer yes. `cargo xtask soak` runs this test.

use std::collections::VecDeque;

use tamis::{Answers, AnyFilter, Hasher, Kind, Plan, Removed};

/// The number of lookups of inserted items, over all kinds.
const CHECKS: u64 = 1_000_000_000;

/// The number of items, called members, that the filter holds at once.
const MEMBERS: u64 = 400_000;

#[test]
#[ignore = "minutes: cargo xtask soak"]
fn a_thousand_million_members_are_found() {
    for kind in Kind::ALL {
        long_run(kind, CHECKS / Kind::ALL.len() as u64 + 1);
    }
}

/// Inserts blocks of items, removes the oldest block if the kind supports it, and tests all members
/// after each step.
fn long_run(kind: Kind, checks: u64) {
    let plan = Plan::for_kind(kind, MEMBERS + BLOCK, 0.01).unwrap();
    let mut filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
    // The members: one block for each call that inserted items.
    let mut members: VecDeque<Vec<u64>> = VecDeque::new();
    let (mut end, mut checked) = (0_u64, 0_u64);
    let mut answers = Answers::new();
    while checked < checks {
        let mut block: Vec<u64> = (end..end + BLOCK).collect();
        filter.try_insert_each(&block, &mut answers).unwrap();
        end += BLOCK;
        if kind.forgets() {
            // A window filter does not store the items that the filter reports as already present.
            block = answers.ones().map(|i| block[i]).collect();
        }
        members.push_back(block);
        if members.len() as u64 * BLOCK > MEMBERS {
            leave(&mut filter, &plan, &mut members);
        }
        // Tests all members from time to time, and the latest members after each step.
        let latest = if end % (16 * BLOCK) == 0 { members.len() } else { 4.min(members.len()) };
        for block in members.iter().rev().take(latest) {
            for _ in 0..8 {
                filter.contains_each(block, &mut answers);
                assert_eq!(answers.count_ones(), block.len(), "{kind}: a false negative");
                checked += block.len() as u64;
            }
        }
    }
}

/// Removes the oldest block of members, in the way that the filter's kind supports.
fn leave(filter: &mut AnyFilter, plan: &Plan, members: &mut VecDeque<Vec<u64>>) {
    let kind = plan.kind();
    if kind.grows() {
        // A growing filter removes nothing. A new filter replaces the growing filter at ten times
        // the number of members.
        if members.len() as u64 * BLOCK < 10 * MEMBERS {
            return;
        }
        members.clear();
        *filter = AnyFilter::from_plan(plan, Hasher::default()).unwrap();
        return;
    }
    let gone = members.pop_front().expect("there are blocks");
    if kind.can_remove() {
        for item in gone {
            let removed = filter.remove_hash(filter.hasher().hash_item(&item));
            let is_sound = matches!(removed, Some(Removed::Yes | Removed::Saturated));
            assert!(is_sound, "{kind}: member {item} cannot be deleted");
        }
    } else if !kind.forgets() && filter.estimate_items() > 3.0 * MEMBERS as f64 {
        // The filter is full, so an empty filter replaces the full filter.
        *filter = AnyFilter::from_plan(plan, Hasher::default()).unwrap();
        for block in &*members {
            filter.try_insert_each(block, &mut Answers::new()).unwrap();
        }
    }
}

/// The number of items that one step inserts or removes.
const BLOCK: u64 = 10_000;
