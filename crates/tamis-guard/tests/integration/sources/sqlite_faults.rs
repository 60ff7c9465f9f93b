//! Faults of an SQLite database: the set becomes stale, keeps its ids, and is synced afterwards.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis_guard::source::{Source, SourceOptions, SourceStatus, SqliteOptions};
use tamis_guard::{IdSet, SyncState};
use tamis_testing::DEADLINE;

use super::sqlite::{Shop, TABLE, connect, start};
use crate::checker::{Committed, check, id_set, integers, knows, options};
use crate::checker::{wait, wait_synced, wait_until};

/// Each way to find changes.
const COLUMNS: [Option<&str>; 3] = [None, Some("id"), Some("updated_at")];

fn is_stale(status: &SourceStatus) -> bool {
    status.state == SyncState::Stale
}

/// Waits until the set is stale with an error, and tests that it keeps its ids.
fn wait_stale(source: &Source, ids: &IdSet, error: &str) {
    let has_error = |status: &SourceStatus| {
        status.last_error.as_deref().is_some_and(|text| text.contains(error))
    };
    wait(source, error, |status| is_stale(status) && has_error(status));
    assert!((1..=100).all(|id| ids.generation().contains(id.to_string().as_bytes())));
}

#[test]
fn a_locked_database_makes_the_set_stale() {
    for column in COLUMNS {
        let shop = Shop::new("delete");
        shop.fill(100);
        let ids = id_set(integers());
        let source = start(&ids, shop.options(column, 20));
        wait_synced(&source);
        shop.run("BEGIN EXCLUSIVE; INSERT INTO products (updated_at) VALUES (101)");
        wait_stale(&source, &ids, "locked");
        shop.run("COMMIT");
        wait_synced(&source);
        wait_until(&source, "the new row", || knows(&ids, 101) && !knows(&ids, 102));
    }
}

#[test]
fn a_long_read_goes_on_between_two_locks() {
    for column in COLUMNS {
        let shop = Shop::new("delete");
        shop.fill(50_000);
        let ids = id_set(integers());
        shop.run("BEGIN EXCLUSIVE");
        let sqlite = SqliteOptions { chunk: 5, ..shop.options(column, 20) };
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
        assert!(Instant::now() < end, "{column:?}: {:?}", source.status());
        let last = 50_000 + shop.count_above(50_000);
        wait_until(&source, "all rows", || (1..=last).all(|id| knows(&ids, id)));
    }
}

#[test]
fn a_removed_database_makes_the_set_stale() {
    for column in COLUMNS {
        let shop = Shop::new("delete");
        shop.fill(100);
        let ids = id_set(integers());
        let source = start(&ids, shop.options(column, 20));
        wait_synced(&source);
        let away = shop.path.with_extension("away");
        fs::rename(&shop.path, &away).unwrap();
        wait_stale(&source, &ids, "cannot read");
        fs::create_dir(&shop.path).unwrap();
        wait_stale(&source, &ids, "not a regular file");
        fs::remove_dir(&shop.path).unwrap();
        fs::write(&shop.path, "no database at all, ".repeat(1000)).unwrap();
        wait_stale(&source, &ids, "not a database");
        fs::write(&shop.path, "").unwrap();
        wait_stale(&source, &ids, "no such table");
        fs::rename(&away, &shop.path).unwrap();
        wait_synced(&source);
        assert!((1..=100).all(|id| knows(&ids, id)) && !knows(&ids, 101), "{column:?}");
    }
}

#[test]
fn another_database_at_the_path_is_read_from_the_start() {
    for column in COLUMNS {
        let shop = Shop::new("delete");
        shop.fill(100);
        shop.run("DELETE FROM products WHERE id < 50");
        let ids = id_set(integers());
        let source = start(&ids, shop.options(column, 20));
        wait_synced(&source);
        let other = Shop::new("delete");
        other.fill(60);
        let committed = Committed::default();
        check(&source, &ids, &committed, || {
            fs::rename(&other.path, &shop.path).unwrap();
            committed.insert(1..=60);
            wait_until(&source, "the other ids", || {
                ids.generation().contains(b"7") && !ids.generation().contains(b"70")
            });
            wait_synced(&source);
            std::thread::sleep(Duration::from_millis(50));
        });
        wait_synced(&source);
        connect(&shop.path).execute_batch("INSERT INTO products (id) VALUES (61)").unwrap();
        wait_until(&source, "the new row", || knows(&ids, 61) && !knows(&ids, 62));
    }
}

#[test]
fn a_renamed_table_makes_the_set_stale() {
    for column in COLUMNS {
        let shop = Shop::new("wal");
        shop.fill(100);
        let ids = id_set(integers());
        let source = start(&ids, shop.options(column, 20));
        wait_synced(&source);
        shop.run("ALTER TABLE products RENAME TO old");
        wait_stale(&source, &ids, "no such table: products");
        shop.run("ALTER TABLE old RENAME TO products");
        wait_synced(&source);
        assert!((1..=100).all(|id| knows(&ids, id)) && !knows(&ids, 101), "{column:?}");
    }
}

#[test]
fn a_swapped_table_is_read_from_the_start() {
    for column in COLUMNS {
        let shop = Shop::new("wal");
        shop.fill(1000);
        shop.run("DELETE FROM products WHERE id < 500");
        let ids = id_set(integers());
        let source = start(&ids, shop.options(column, 20));
        wait_synced(&source);
        let committed = Committed::default();
        check(&source, &ids, &committed, || {
            let new = TABLE.replace("products", "new").replace("updated", "renewed");
            let new = new
                .replace("renewed_at", "updated_at")
                .replace("CREATE TABLE deleted", "CREATE TABLE more");
            shop.run(&new);
            shop.run("INSERT INTO new (id, updated_at) SELECT id - 499, 1 FROM products");
            shop.run(
                "BEGIN; ALTER TABLE products RENAME TO old; ALTER TABLE new RENAME TO products; COMMIT",
            );
            committed.insert(1..=501);
            wait_until(&source, "the new table", || {
                ids.generation().contains(b"1") && !ids.generation().contains(b"900")
            });
            wait_synced(&source);
            std::thread::sleep(Duration::from_millis(50));
        });
        wait_synced(&source);
        shop.run("INSERT INTO products (updated_at) VALUES (2)");
        wait_until(&source, "the new row", || knows(&ids, 502) && !knows(&ids, 503));
    }
}

#[test]
fn a_missing_column_makes_the_set_stale() {
    for quoted in ["id", "\"id\""] {
        let shop = Shop::new("wal");
        shop.fill(100);
        let ids = id_set(integers());
        let column = quoted.to_owned();
        let source =
            start(&ids, SqliteOptions { id: column, ..shop.options(Some("updated_at"), 20) });
        wait_synced(&source);
        shop.run("ALTER TABLE products RENAME COLUMN id TO product_id");
        wait_stale(&source, &ids, "no such column: ");
        shop.run("ALTER TABLE products RENAME COLUMN product_id TO id");
        wait_synced(&source);
        assert!((1..=100).all(|id| knows(&ids, id)), "{quoted}");
    }
    let shop = Shop::new("wal");
    let ids = id_set(integers());
    let source = start(&ids, shop.options(Some("\"none\""), 20));
    let status = wait(&source, "an error", |status| status.failures > 1);
    assert_eq!(status.state, SyncState::Warming);
}
