//! What a source must know of a table `items` that it polls, and of the ids in a table `deleted`.

use std::time::{Duration, Instant};

use tamis_guard::IdSet;
use tamis_guard::source::Source;

use super::database::Database as _;
use super::follow::{Options, at, audited, follow, follow_patiently, own_shop, polled, shop, with};
use crate::checker::*;
use crate::server::{Server, Session, Shop};
use crate::tcp_proxy::TcpProxy;
use crate::transactions::{Change, transact};

/// Creates a table with ids up to `last`, and returns options that poll it.
pub fn items(shop: &mut Shop, last: u64, column: &str, overlap_ms: u64) -> Options {
    shop.run(Server::ITEMS);
    shop.run(&format!("INSERT INTO items (id) {}", Server::numbers(1, last)));
    polled(&shop.table("items"), column, overlap_ms)
}

#[test]
fn the_promise_holds_while_a_table_without_a_log_is_polled() {
    let (_server, mut shop) = own_shop(Server::WITHOUT_LOG, 0);
    let options = with(&items(&mut shop, 1000, "updated_at", 300), |poll| {
        poll.deletions = Some("SELECT id FROM deleted".to_owned());
        poll.reread = Duration::from_millis(500);
    });
    let (ids, source) = follow(&options);
    let committed = Committed::of(1..=1000);
    write_at_random(&mut shop, &source, &ids, &committed);
    assert!(source.status().generations > 2, "{:?}", source.status());
    assert_eq!(audited(&options), committed.ids());
}

/// Writes random transactions for some seconds, and checks the promise meanwhile. The table has the
/// ids that are committed.
fn write_at_random(shop: &mut Shop, source: &Source, ids: &IdSet, committed: &Committed) {
    let first = committed.ids().last().map_or(1, |last| last + 1);
    let (mut random, mut next) = (Random(7), first);
    let sql = |change| match change {
        Change::Delete(id) => {
            format!("DELETE FROM items WHERE id = {id}; INSERT INTO deleted VALUES ({id})")
        }
        Change::Update(id) => format!("UPDATE items SET name = 'a' WHERE id = {id}"),
        // Some programs leave the column empty.
        Change::Insert(id) if id % 8 == 0 => {
            format!("INSERT INTO items VALUES ({id}, 'new', NULL)")
        }
        Change::Insert(id) => format!("INSERT INTO items VALUES ({id}, 'new', DEFAULT)"),
    };
    check(source, ids, committed, || {
        let end = Instant::now() + Duration::from_secs(4);
        while Instant::now() < end {
            transact(&mut |sql| shop.run(sql), sql, committed, &mut random, &mut next);
            std::thread::sleep(Duration::from_millis(random.below(10)));
        }
    });
    let live = committed.ids();
    wait_until(source, "all changes", || {
        (1..next).all(|id| live.binary_search(&id).is_ok() == knows(ids, id))
    });
}

#[test]
fn a_late_commit_is_found_within_the_overlap_and_else_by_the_next_read_of_all_ids() {
    let mut shop = shop();
    let options = items(&mut shop, 100, "updated_at", 0);
    let mut late = shop.open();
    let mut is_found = |overlap: u64| {
        let id = 5000 + 1000 * overlap;
        let overlap = Duration::from_secs(overlap);
        let options = with(&options, |poll| poll.changes.as_mut().unwrap().overlap = overlap);
        late_commit(&mut shop, &mut late, &options, id)
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
    shop: &mut Shop,
    late: &mut Session,
    options: &Options,
    id: u64,
) -> (bool, Duration) {
    let (ids, source) = follow_patiently(integers(), options);
    late.run("START TRANSACTION");
    let taken = Instant::now();
    late.run(&format!("INSERT INTO items (id) VALUES ({id})"));
    // Three polls. The first may read a row that is younger than its sample, and each poll begins at a
    // sample that was taken before the last poll.
    for other in 1..=3 {
        shop.run(&format!("INSERT INTO items (id) VALUES ({})", id + other));
        wait_until(&source, "another row", || has(&ids, id + other));
    }
    assert!(!has(&ids, id));
    late.run("COMMIT");
    let overlap = taken.elapsed();
    shop.run(&format!("INSERT INTO items (id) VALUES ({})", id + 4));
    wait_until(&source, "the next row", || has(&ids, id + 4));
    assert_eq!(source.status().generations, 1);
    let is_found = has(&ids, id);
    source.rebuild();
    wait_until(&source, "a read of all ids", || has(&ids, id));
    (is_found, overlap)
}

#[test]
fn deleted_ids_are_refused_at_once_or_by_the_next_read() {
    let mut shop = shop();
    let options = items(&mut shop, 1000, "id", 10);
    // A `;` at the end is allowed.
    let queried =
        with(&options, |poll| poll.deletions = Some("SELECT id FROM deleted;".to_owned()));
    let reread = with(&options, |poll| poll.reread = Duration::from_millis(300));
    let (ids, source) = follow_patiently(integers(), &queried);
    let (other, reader) = follow_patiently(integers(), &reread);
    shop.run("DELETE FROM items WHERE id = 7");
    // A row has the id 8. The others are none.
    shop.run(Server::DELETED_TEXTS);
    shop.run("INSERT INTO deleted VALUES (' 7'), ('8'), ('x'), ('1e3'), (NULL)");
    wait_until(&source, "the deletion", || !has(&ids, 7));
    wait_until(&reader, "the read of all ids", || !has(&other, 7));
    assert!(knows(&ids, 8) && source.status().generations == 1);
    // Created again, below the bound.
    shop.after(&ids, &source, "INSERT INTO items (id) VALUES (7)", &[7], &[]);
    shop.run("DROP TABLE deleted");
    let status = wait_error(&source, "the query `deletions` failed: ");
    assert!(status.last_error.unwrap().contains("deleted"), "the message of the server");
}

#[test]
fn a_broken_connection_and_another_table_are_found() {
    let (server, mut shop) = own_shop(&[], 0);
    let proxy = TcpProxy::start(server.address());
    let options = at(&items(&mut shop, 100, "updated_at", 100), proxy.address);
    let (ids, source) = follow(&options);
    let committed = Committed::of(1..=100);
    check(&source, &ids, &committed, || {
        for id in 101..=104 {
            shop.run(&format!("INSERT INTO items (id) VALUES ({id})"));
            committed.insert([id]);
            if id % 2 == 0 {
                proxy.cut();
            } else {
                proxy.partition();
                wait_stale(&source);
                proxy.heal();
            }
            wait_synced(&source);
        }
    });
    wait_until(&source, "the last row", || knows(&ids, 104) && !has(&ids, 105));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
    // A row with a value below the bound.
    shop.run(&Server::create_new("items"));
    shop.run("ALTER TABLE new ADD COLUMN price INT");
    shop.run("INSERT INTO new (id, updated_at) VALUES (900, '2001-01-01')");
    shop.run(&Server::swap("items"));
    wait(&source, "swapped", |status| status.generations == 2);
    wait_synced(&source);
    assert!(knows(&ids, 900) && !has(&ids, 1));
    proxy.partition();
    let stop = Instant::now();
    source.stop();
    assert!(stop.elapsed() < Duration::from_secs(3), "{:?}", stop.elapsed());
}

#[test]
fn a_view_selects_the_rows_that_count() {
    let mut shop = shop();
    items(&mut shop, 10, "updated_at", 10);
    shop.run("CREATE VIEW named AS SELECT * FROM items WHERE name IS NOT NULL");
    shop.run("UPDATE items SET name = 'a' WHERE id > 5");
    let options = polled(&shop.table("named"), "updated_at", 10);
    let (ids, source) = follow_patiently(integers(), &options);
    assert!((6..=10).all(|id| knows(&ids, id)) && !has(&ids, 5));
    shop.run("UPDATE items SET name = 'a', updated_at = CURRENT_TIMESTAMP(6) WHERE id = 5");
    wait_until(&source, "named", || knows(&ids, 5) && !has(&ids, 4));
    assert_eq!(audited(&options), [5, 6, 7, 8, 9, 10]);
}
