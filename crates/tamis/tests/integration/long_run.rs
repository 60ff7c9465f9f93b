//! A thousand million questions to members of every kind of filter while it is filled, emptied and grown: none is
//! answered no. `cargo xtask soak` runs it.

use std::collections::VecDeque;

use tamis::{Answers, AnyFilter, Hasher, Kind, Plan, Removed};

/// Members that are asked for, over all kinds.
const CHECKS: u64 = 1_000_000_000;

/// Members at a time.
const MEMBERS: u64 = 400_000;

#[test]
#[ignore = "minutes: cargo xtask soak"]
fn a_thousand_million_members_are_found() {
    for kind in Kind::ALL {
        long_run(kind, CHECKS / Kind::ALL.len() as u64 + 1);
    }
}

/// Items come in and, where they can, leave again in the order they came; all members are asked for, over and over.
fn long_run(kind: Kind, checks: u64) {
    let plan = Plan::for_kind(kind, MEMBERS + BLOCK, 0.01).unwrap();
    let mut filter = AnyFilter::new(&plan, Hasher::default()).unwrap();
    // The members, a block for each time that items came.
    let mut members: VecDeque<Vec<u64>> = VecDeque::new();
    let (mut end, mut checked) = (0_u64, 0_u64);
    let mut answers = Answers::new();
    while checked < checks {
        let mut block: Vec<u64> = (end..end + BLOCK).collect();
        filter.try_insert_each(&block, &mut answers).unwrap();
        end += BLOCK;
        if kind.forgets() {
            // What it took for remembered it has not stored, and said so.
            block = answers.ones().map(|i| block[i]).collect();
        }
        members.push_back(block);
        if members.len() as u64 * BLOCK > MEMBERS {
            leave(&mut filter, &plan, &mut members);
        }
        // All members now and then, the latest ones always.
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

/// Removes the oldest block, in the way of this kind.
fn leave(filter: &mut AnyFilter, plan: &Plan, members: &mut VecDeque<Vec<u64>>) {
    let kind = plan.kind();
    if kind.grows() {
        // Up to ten times as many: all of them stay.
        if members.len() as u64 * BLOCK < 10 * MEMBERS {
            return;
        }
        members.clear();
        *filter = AnyFilter::new(plan, Hasher::default()).unwrap();
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
        // Full: it is cleared.
        *filter = AnyFilter::new(plan, Hasher::default()).unwrap();
        for block in &*members {
            filter.try_insert_each(block, &mut Answers::new()).unwrap();
        }
    }
}

/// Items that come and go at a time.
const BLOCK: u64 = 10_000;
