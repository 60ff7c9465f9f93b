//! Faults of an SQLite database: the set becomes stale, keeps its ids, and is synced afterwards.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis_guard::source::{Source, SourceOptions, SqliteOptions};
use tamis_guard::{IdSet, SyncState};
use tamis_testing::DEADLINE;

use super::sqlite::{Shop, connect, follow, start};
use crate::checker::*;

/// Each way to find changes.
const COLUMNS: [Option<&str>; 3] = [None, Some("id"), Some("updated_at")];

/// Waits until the set is stale with an error, and tests that it keeps its ids.
fn wait_error_of(source: &Source, ids: &IdSet, error: &str) {
    wait_broken(source, error);
    assert!((1..=100).all(|id| has(ids, id)));
}

/// Runs a test with a database of `count` rows, for each way to find changes.
fn each_way(journal: &str, count: u32, test: impl Fn(Shop, &str, SqliteOptions)) {
    for column in COLUMNS {
        let shop = Shop::filled(journal, count);
        let options = shop.options(column, 20);
        test(shop, &format!("{column:?}"), options);
    }
}

/// Tests that a change makes the set stale with an error, and that after another change the set has the ids
/// from 1 to `last`.
fn breaks(
    journal: &str,
    [change, error, repair]: [&str; 3],
    last: u64,
    set: impl Fn(&mut SqliteOptions),
) {
    each_way(journal, 100, |shop, case, mut sqlite| {
        set(&mut sqlite);
        let (ids, source) = follow(sqlite);
        shop.run(change);
        wait_error_of(&source, &ids, error);
        shop.run(repair);
        wait_synced(&source);
        wait_until(&source, case, || {
            (1..=last).all(|id| knows(&ids, id)) && !knows(&ids, last + 1)
        });
    });
}

#[test]
fn a_locked_database_makes_the_set_stale() {
    let lock = "BEGIN EXCLUSIVE; INSERT INTO products (updated_at) VALUES (101)";
    breaks("delete", [lock, "locked", "COMMIT"], 101, |_| {});
}

#[test]
fn a_renamed_table_or_column_makes_the_set_stale() {
    let rename = [
        "ALTER TABLE products RENAME TO old",
        "no such table: products",
        "ALTER TABLE old RENAME TO products",
    ];
    breaks("wal", rename, 100, |_| {});
    let rename = [
        "ALTER TABLE products RENAME COLUMN id TO product_id",
        "no such column: ",
        "ALTER TABLE products RENAME COLUMN product_id TO id",
    ];
    for quoted in ["id", "\"id\""] {
        breaks("wal", rename, 100, |sqlite| quoted.clone_into(&mut sqlite.id));
    }
    let shop = Shop::new("wal");
    let source = start(&id_set(integers()), shop.options(Some("\"none\""), 20));
    let status = wait(&source, "an error", |status| status.failures > 1);
    assert_eq!(status.state, SyncState::Warming);
}

#[test]
fn a_long_read_goes_on_between_two_locks() {
    each_way("delete", 50_000, |shop, case, sqlite| {
        let ids = id_set(integers());
        shop.run("BEGIN EXCLUSIVE");
        let sqlite = SqliteOptions { chunk: 5, ..sqlite };
        // Longer than a read, also on a busy machine, where a read took 20 s.
        let times = SourceOptions { stale_after: Duration::from_secs(90), ..options() };
        let source = Source::sqlite(Arc::clone(&ids), sqlite, times);
        // Each lock is longer than a query waits, and the chunks need several pauses.
        let end = Instant::now() + DEADLINE;
        while source.status().state != SyncState::Synced && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(150));
            shop.run("COMMIT");
            std::thread::sleep(Duration::from_millis(60));
            shop.run("BEGIN EXCLUSIVE; INSERT INTO products (updated_at) VALUES (50001)");
        }
        shop.run("COMMIT");
        assert!(Instant::now() < end, "{case}: {:?}", source.status());
        let last = 50_000 + shop.count_above(50_000);
        wait_until(&source, "all rows", || (1..=last).all(|id| knows(&ids, id)));
    });
}

#[test]
fn a_removed_database_makes_the_set_stale() {
    each_way("delete", 100, |shop, case, sqlite| {
        let (ids, source) = follow(sqlite);
        let away = shop.path.with_extension("away");
        fs::rename(&shop.path, &away).unwrap();
        wait_error_of(&source, &ids, "cannot read");
        fs::create_dir(&shop.path).unwrap();
        wait_error_of(&source, &ids, "not a regular file");
        fs::remove_dir(&shop.path).unwrap();
        fs::write(&shop.path, "no database at all, ".repeat(1000)).unwrap();
        wait_error_of(&source, &ids, "not a database");
        fs::write(&shop.path, "").unwrap();
        wait_error_of(&source, &ids, "no such table");
        fs::rename(&away, &shop.path).unwrap();
        wait_synced(&source);
        assert!((1..=100).all(|id| knows(&ids, id)) && !knows(&ids, 101), "{case}");
    });
}

/// Waits until a source has read other rows with the ids from 1 to `last`, and checks the promise meanwhile.
fn replace(source: &Source, ids: &IdSet, gone: u64, last: u64, change: impl FnOnce()) {
    let committed = Committed::default();
    check(source, ids, &committed, || {
        change();
        committed.insert(1..=last);
        wait_until(source, "the other ids", || has(ids, 7) && !has(ids, gone));
        wait_synced(source);
        std::thread::sleep(Duration::from_millis(50));
    });
    wait_synced(source);
}

#[test]
fn another_database_at_the_path_is_read_from_the_start() {
    each_way("delete", 100, |shop, _, sqlite| {
        shop.run("DELETE FROM products WHERE id < 50");
        let (ids, source) = follow(sqlite);
        let other = Shop::filled("delete", 60);
        replace(&source, &ids, 70, 60, || fs::rename(&other.path, &shop.path).unwrap());
        connect(&shop.path).execute_batch("INSERT INTO products (id) VALUES (61)").unwrap();
        wait_until(&source, "the new row", || knows(&ids, 61) && !knows(&ids, 62));
    });
}

#[test]
fn a_swapped_table_is_read_from_the_start() {
    each_way("wal", 1000, |shop, _, sqlite| {
        shop.run("DELETE FROM products WHERE id < 500");
        let (ids, source) = follow(sqlite);
        replace(&source, &ids, 900, 501, || {
            shop.run(
                "CREATE TABLE new (
                    id INTEGER PRIMARY KEY AUTOINCREMENT, updated_at INTEGER, name TEXT);
                CREATE INDEX renewed ON new (updated_at);
                INSERT INTO new (id, updated_at) SELECT id - 499, 1 FROM products;
                BEGIN; ALTER TABLE products RENAME TO old; ALTER TABLE new RENAME TO products;
                COMMIT",
            );
        });
        shop.run("INSERT INTO products (updated_at) VALUES (2)");
        wait_until(&source, "the new row", || knows(&ids, 502) && !knows(&ids, 503));
    });
}
