//! What happens to the rows, and what the source must know of it.

use std::time::{Duration, Instant};

use super::database::Database;
use super::follow::{
    answer_404, audited, follow_patiently, follow_with_404s, is_404, own_shop, shop_with, start,
    transact,
};
use tamis_sources::SyncState;
use tamis_testing::DEADLINE;

use crate::checker::*;
use crate::server::Server;

#[test]
fn rows_of_the_table_are_ids() {
    let mut shop = shop_with(5000);
    let (ids, source) = follow_patiently(integers(), &shop.options);
    let status = source.status();
    assert_eq!((status.items_read, status.generations), (5000, 1), "{status:?}");
    assert!((1..=5000).all(|id| knows(&ids, id)) && !has(&ids, 5001));
    shop.run("INSERT INTO products VALUES ('new', 5001), ('new', 5002)");
    wait_until(&source, "inserted", || knows(&ids, 5002));
    shop.after(&ids, &source, "DELETE FROM products WHERE id = 5001", &[], &[5001]);
    shop.after(&ids, &source, "UPDATE products SET id = 6000 WHERE id = 5002", &[6000], &[5002]);
    shop.run("UPDATE products SET name = 'other' WHERE id = 6000");
    shop.run("BEGIN; INSERT INTO products VALUES ('never', 7000); ROLLBACK");
    shop.run(
        "BEGIN; INSERT INTO products VALUES ('kept', 7001); SAVEPOINT a;
        INSERT INTO products VALUES ('never', 7002); DELETE FROM products WHERE id = 6000;
        ROLLBACK TO a; DELETE FROM products WHERE id = 1; COMMIT",
    );
    wait_until(&source, "after the savepoint", || knows(&ids, 7001) && !has(&ids, 1));
    assert!(knows(&ids, 6000) && !has(&ids, 7000) && !has(&ids, 7002));
    let status = wait(&source, "no lag", |status| status.lag_bytes == Some(0));
    assert_eq!(status.generations, 1, "{status:?}");
    source.stop();
    assert_eq!(ids.state(), SyncState::Stale);
}

#[test]
fn each_row_event_of_an_id_ends_the_refusal_of_a_request() {
    // On a shared server, a two-phase transaction of another test makes the set stale.
    let (_server, mut shop) = own_shop(&[], 10);
    let (ids, source) = follow_with_404s(&shop.options, integers());
    answer_404(&ids, "6");
    for (id, statement) in [
        // The service hid the row, such as by a column `deleted`.
        ("5", "UPDATE products SET name = 'visible' WHERE id = 5"),
        ("5", "UPDATE products SET name = 'hidden' WHERE id <= 5"),
        ("4", "UPDATE products SET id = 40 WHERE id = 4"),
        ("3", "DELETE FROM products WHERE id = 3"),
        ("3", "INSERT INTO products VALUES ('again', 3)"),
    ] {
        answer_404(&ids, id);
        assert!(is_404(&ids, id), "{statement}");
        shop.run(statement);
        // The row 6 does not change, so its refusal shows that the set is still synced.
        wait_until(&source, statement, || !is_404(&ids, id) && is_404(&ids, "6"));
    }
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn the_promise_holds_while_rows_change() {
    let mut shop = shop_with(20_000);
    let (ids, committed) = (id_set(integers()), Committed::of(1..=20_000));
    let source = start(&ids, &shop.options);
    let (mut random, mut next) = (Random(7), 20_001);
    check(&source, &ids, &committed, || {
        let begun = Instant::now();
        // A busy machine reads the ids late.
        while begun.elapsed() < Duration::from_secs(4) || source.status().generations < 2 {
            assert!(begun.elapsed() < DEADLINE, "a second generation: {:?}", source.status());
            transact(&mut shop, &committed, &mut random, &mut next);
            if random.below(20) == 0 {
                source.rebuild();
            }
        }
    });
    let last = committed.ids();
    wait_until(&source, "all are known", || last.iter().all(|id| has(&ids, id)));
    source.rebuild();
    wait(&source, "read again", |status| status.generations > 1);
    assert!(last.iter().all(|id| has(&ids, id)));
}

#[test]
fn a_table_that_is_replaced_or_emptied_is_read_again() {
    let mut shop = shop_with(100);
    shop.run(&Server::create_new("products"));
    shop.run(&format!("INSERT INTO new SELECT 'a', id FROM ({}) n", Server::numbers(1000, 1100)));
    let (ids, source) = shop.follow();
    shop.run(&Server::swap("products"));
    shop.after(&ids, &source, "INSERT INTO products VALUES ('after', 2000)", &[1000, 2000], &[100]);
    wait_synced(&source);
    let before = source.status().generations;
    shop.run("INSERT INTO old VALUES ('other table', 3000)");
    shop.run("TRUNCATE products");
    shop.after(&ids, &source, "INSERT INTO products VALUES ('after', 1001)", &[1001], &[1000]);
    assert!(source.status().generations > before && !has(&ids, 3000));
    wait_synced(&source);
}

#[test]
fn several_sources_and_audits_may_read_one_table() {
    let shop = shop_with(10);
    let followers = [(); 2].map(|()| shop.follow());
    shop.open().run("INSERT INTO products VALUES ('b', 11)");
    for (ids, source) in &followers {
        wait_until(source, "inserted", || has(ids, 11));
    }
    assert_eq!(audited(&shop.options), (1..=11).collect::<Vec<_>>());
}
