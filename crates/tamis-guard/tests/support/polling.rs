//! What a source must know of a table `items` that it polls, and of the ids in a table `deleted`.
//!
//! The SQL is that of MariaDB and of PostgreSQL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis_guard::IdSet;
use tamis_guard::source::Source;

use crate::checker::{
    Committed, Random, check, has, id_set, integers, knows, wait_synced, wait_until,
};

/// Writes random transactions for some seconds, and checks the promise meanwhile. The table has the
/// ids that are committed.
pub fn write_at_random(
    source: &Source,
    ids: &IdSet,
    committed: &Committed,
    run: &mut dyn FnMut(&str),
) {
    let first = committed.ids().last().map_or(1, |last| last + 1);
    let (mut random, mut next) = (Random(7), first);
    check(source, ids, committed, || {
        let end = Instant::now() + Duration::from_secs(4);
        while Instant::now() < end {
            let (mut new, mut gone) = (Vec::new(), Vec::new());
            run("START TRANSACTION");
            for _ in 0..=random.below(10) {
                match random.below(4) {
                    0 => {
                        let Some(id) = committed.pick(&mut random) else { continue };
                        committed.remove([id]);
                        gone.push(id);
                        run(&format!("DELETE FROM items WHERE id = {id}"));
                        run(&format!("INSERT INTO deleted VALUES ({id})"));
                    }
                    1 => {
                        let Some(id) = committed.pick(&mut random) else { continue };
                        run(&format!("UPDATE items SET name = 'a' WHERE id = {id}"));
                    }
                    _ => {
                        let at = if random.below(8) == 0 { "NULL" } else { "DEFAULT" };
                        run(&format!("INSERT INTO items VALUES ({next}, 'new', {at})"));
                        new.push(next);
                        next += 1;
                    }
                }
            }
            if random.below(5) == 0 {
                run("ROLLBACK");
                committed.insert(gone);
            } else {
                run("COMMIT");
                committed.insert(new);
            }
            std::thread::sleep(Duration::from_millis(random.below(10)));
        }
    });
    let live = committed.ids();
    wait_until(source, "all changes", || {
        (1..next).all(|id| live.binary_search(&id).is_ok() == knows(ids, id))
    });
}

/// Checks that a late commit is found within the overlap, and else by the next read of all ids.
/// `start` starts a source with an overlap.
pub fn late_commits(
    run: &mut dyn FnMut(&str),
    late: &mut dyn FnMut(&str),
    start: impl Fn(&Arc<IdSet>, Duration) -> Source,
) {
    let mut is_found = |overlap: u64| {
        let overlap = Duration::from_secs(overlap);
        late_commit(run, late, |ids| start(ids, overlap), 5000 + 1000 * overlap.as_secs())
    };
    assert!(!is_found(0).0);
    // A slow machine needs a longer overlap.
    let mut is_within = |overlap: u64| {
        let (is_found, taken) = is_found(overlap);
        let limit = Duration::from_secs(overlap);
        assert!(is_found || taken > limit);
        taken <= limit
    };
    assert!([2, 6, 20].into_iter().any(&mut is_within), "the machine is too slow");
}

/// Commits a row after three others that took their values later. Returns whether the polls find it,
/// and the time from its value to its commit.
fn late_commit(
    run: &mut dyn FnMut(&str),
    late: &mut dyn FnMut(&str),
    start: impl Fn(&Arc<IdSet>) -> Source,
    id: u64,
) -> (bool, Duration) {
    let ids = id_set(integers());
    let source = start(&ids);
    wait_synced(&source);
    late("START TRANSACTION");
    let taken = Instant::now();
    late(&format!("INSERT INTO items (id) VALUES ({id})"));
    // Three polls. The first may read a row that is younger than its sample, and each poll begins at a
    // sample that was taken before the last poll.
    for other in 1..=3 {
        run(&format!("INSERT INTO items (id) VALUES ({})", id + other));
        wait_until(&source, "another row", || has(&ids, id + other));
    }
    assert!(!has(&ids, id));
    late("COMMIT");
    let overlap = taken.elapsed();
    run(&format!("INSERT INTO items (id) VALUES ({})", id + 4));
    wait_until(&source, "the next row", || has(&ids, id + 4));
    assert_eq!(source.status().generations, 1);
    let is_found = has(&ids, id);
    source.rebuild();
    wait_until(&source, "a read of all ids", || has(&ids, id));
    (is_found, overlap)
}
