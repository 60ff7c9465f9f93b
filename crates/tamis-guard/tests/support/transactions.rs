//! Random transactions of a table `products (name, id)`.

use crate::checker::{Committed, Random};

/// Runs a transaction that inserts, replaces and deletes some rows, and records which ids exist. New
/// ids begin at `next`. `replace` returns the SQL that deletes a row and inserts it again.
pub fn transact(
    run: &mut dyn FnMut(&str),
    replace: impl Fn(u64) -> String,
    committed: &Committed,
    random: &mut Random,
    next: &mut u64,
) {
    run("START TRANSACTION");
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for _ in 0..=random.below(10) {
        match random.below(4) {
            0 => {
                let Some(id) = committed.pick(random) else { continue };
                committed.remove([id]);
                run(&format!("DELETE FROM products WHERE id = {id}"));
                gone.push(id);
            }
            // A row that a transaction deletes and inserts again exists all the time.
            1 => {
                let Some(id) = committed.pick(random) else { continue };
                run(&replace(id));
            }
            _ => {
                run(&format!("INSERT INTO products VALUES ('new', {next})"));
                new.push(*next);
                *next += 1;
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
}
