//! Random transactions of a table of ids.

use crate::checker::{Committed, Random};

/// A change of one row.
#[derive(Clone, Copy)]
pub enum Change {
    Delete(u64),
    /// The row exists before and after the change, and so all the time.
    Update(u64),
    Insert(u64),
}

/// Runs a transaction that changes some rows, and records which ids exist. New ids begin at `next`. `sql`
/// returns the statements of a change.
pub fn transact(
    run: &mut dyn FnMut(&str),
    sql: impl Fn(Change) -> String,
    committed: &Committed,
    random: &mut Random,
    next: &mut u64,
) {
    run("BEGIN");
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for _ in 0..=random.below(10) {
        let change = match (random.below(4), committed.pick(random)) {
            (0 | 1, None) => continue,
            (0, Some(id)) => {
                // Before the deletion is visible.
                committed.remove([id]);
                gone.push(id);
                Change::Delete(id)
            }
            (1, Some(id)) => Change::Update(id),
            _ => {
                new.push(*next);
                *next += 1;
                Change::Insert(*next - 1)
            }
        };
        run(&sql(change));
    }
    if random.below(5) == 0 {
        run("ROLLBACK");
        committed.insert(gone);
    } else {
        run("COMMIT");
        committed.insert(new);
    }
}
