//! A thousand million questions to members of every kind of filter while it is filled, emptied and grown: none is
//! answered no. `cargo xtask soak` runs it.

use tamis::{Answers, AnyFilter, Filter, Hasher, Kind, Plan, Removed, TryInsert};

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
    let (mut first, mut end, mut checked) = (0_u64, 0_u64, 0_u64);
    let mut answers = Answers::new();
    while checked < checks {
        let block: Vec<u64> = (end..end + BLOCK).collect();
        filter.try_insert_each(&block, &mut answers).unwrap();
        end += BLOCK;
        if end - first > MEMBERS {
            for item in first..first + BLOCK {
                let removed = filter.remove_hash(filter.hasher().hash_item(&item));
                let is_sound = matches!(removed, None | Some(Removed::Yes | Removed::Saturated));
                assert!(is_sound, "{kind}: member {item} cannot be deleted");
            }
            first += BLOCK;
            if !kind.can_remove() && !kind.forgets() && !grows(kind) && end > 3 * MEMBERS {
                // As full as it may be, and more: it starts anew.
                filter = AnyFilter::new(&plan, Hasher::default()).unwrap();
                filter.try_insert_each(&(first..end).collect::<Vec<_>>(), &mut answers).unwrap();
            }
        }
        // All members now and then, the latest ones always.
        let from =
            if end % (16 * BLOCK) == 0 { first } else { end.saturating_sub(4 * BLOCK).max(first) };
        let members: Vec<u64> = (from..end).collect();
        for _ in 0..8 {
            filter.contains_each(&members, &mut answers);
            assert_eq!(answers.count_ones(), members.len(), "{kind}: a false negative");
            checked += members.len() as u64;
        }
    }
}

/// Items that come and go at a time.
const BLOCK: u64 = 10_000;

fn grows(kind: Kind) -> bool {
    kind == Kind::Growing
}
