//! A source that starts with a snapshot polls what was committed since, or reads all ids.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::sqlite::{follow, start, write};
use tamis_sources::{IdSet, SnapshotOptions, Source, SourceStatus, SqliteOptions};

use crate::checker::{Committed, Random, check, has, id_set, integers, knows};
use crate::checker::{wait, wait_synced, wait_until};
use crate::lasting::Lasting;
use crate::sqlite_shop::Shop;

/// Returns options with a snapshot beside the database.
fn with_snapshot(shop: &Shop, column: Option<&str>, overlap_ms: u64) -> Lasting<SqliteOptions> {
    let every = Duration::from_millis(20);
    let path = shop.path.with_extension("snapshot");
    let options = SqliteOptions {
        deletions: Some("SELECT id FROM deleted".to_owned()),
        ..shop.options(column, overlap_ms)
    };
    Lasting { options, snapshot: SnapshotOptions { every, ..SnapshotOptions::new(path) } }
}

fn restart(sqlite: &Lasting<SqliteOptions>) -> (Arc<IdSet>, Source, SourceStatus) {
    let (ids, source) = follow(sqlite.clone());
    let status = source.status();
    (ids, source, status)
}

/// Tests that a restart has read all ids of a database with a thousand, and says why.
fn reads_all(status: &SourceStatus, reason: &str) {
    assert!(status.items_read >= 900, "{reason}: {status:?}");
    let unused = status.snapshots.unused.as_ref().unwrap_or_else(|| panic!("{reason}"));
    assert!(unused.contains(reason) && !unused.contains('\n'), "{reason}: {unused}");
}

/// Returns false on a system that does not show which file it is: then all ids are read.
fn has_identity(path: &Path) -> bool {
    fs::metadata(path).unwrap().created().is_ok() && Path::new("/proc/sys/kernel/random").exists()
}

#[test]
fn a_restart_reads_only_rows_that_are_new() {
    for column in ["id", "updated_at"] {
        let shop = Shop::filled("wal", 1000);
        if !has_identity(&shop.path) {
            return;
        }
        let sqlite = with_snapshot(&shop, Some(column), 50);
        let (ids, source, _) = restart(&sqlite);
        shop.run("INSERT INTO products VALUES (1001, 1001, '')");
        shop.run("DELETE FROM products WHERE id IN (7, 8); INSERT INTO deleted VALUES (7), (8)");
        wait_until(&source, "changed", || knows(&ids, 1001) && !knows(&ids, 8));
        wait(&source, "written", |status| status.snapshots.age.is_some());
        source.stop();
        shop.run("INSERT INTO products VALUES (1002, 1002, ''), (8, 1003, '')");
        shop.run("DELETE FROM products WHERE id = 9; INSERT INTO deleted VALUES (9)");
        let (ids, source, status) = restart(&sqlite);
        assert!(status.items_read < 100, "{status:?}");
        assert_eq!((status.generations, status.snapshots.unused), (1, None));
        assert!([1, 8, 1000, 1001, 1002].iter().all(|id| knows(&ids, id)), "{column}");
        assert!([7, 9, 1003].iter().all(|id| !knows(&ids, id)), "{column}");
        // It goes on as before.
        shop.run("INSERT INTO products VALUES (1004, 1004, '')");
        wait_until(&source, "new", || knows(&ids, 1004) && !knows(&ids, 1005));
        source.stop();
    }
}

#[test]
fn the_promise_holds_over_restarts_while_rows_change() {
    for (journal, column, seed) in [("wal", "updated_at", 5), ("delete", "id", 6)] {
        let shop = Shop::filled(journal, 1000);
        let committed = Committed::of(1..=1000);
        let mut random = Random(seed);
        let snapshot = shop.path.with_extension("snapshot");
        let killed = shop.path.with_extension("killed");
        for round in 0..6 {
            let sqlite = with_snapshot(&shop, Some(column), 200);
            let ids = id_set(integers());
            let source = start(&ids, sqlite);
            check(&source, &ids, &committed, || {
                write(&shop, &committed, &mut random, Duration::from_millis(300));
                wait_synced(&source);
                wait(&source, "written", |status| status.snapshots.age.is_some());
                // As a process that is killed leaves it.
                fs::copy(&snapshot, &killed).unwrap();
                write(&shop, &committed, &mut random, Duration::from_millis(300));
                if round % 3 == 2 {
                    source.rebuild();
                }
            });
            assert_eq!(source.status().snapshots.unused, None, "{:?}", source.status());
            source.stop();
            if round % 2 == 1 {
                fs::rename(&killed, &snapshot).unwrap();
            }
            write(&shop, &committed, &mut random, Duration::from_millis(100));
        }
        let (ids, source, _) = restart(&with_snapshot(&shop, Some(column), 200));
        let live = committed.ids();
        let last = live.last().copied().unwrap_or_default();
        wait_until(&source, "all changes", || {
            (1..=last).all(|id| live.binary_search(&id).is_ok() == knows(&ids, id))
        });
    }
}

/// Tests that a row is found that is committed after rows with larger values, and after a restart.
/// Returns false without a test if the machine was too slow to commit it within the overlap.
fn finds_late_commit(overlap: Duration) -> bool {
    let shop = Shop::filled("wal", 1000);
    let sqlite = with_snapshot(&shop, Some("updated_at"), overlap.as_millis() as u64);
    let (ids, source, _) = restart(&sqlite);
    // The moment in which the late row takes the value 1001.
    let taken = Instant::now();
    shop.run("INSERT INTO products VALUES (2000, 2000, '')");
    wait_until(&source, "a row", || has(&ids, 2000));
    source.stop();
    let (ids, source, _) = restart(&sqlite);
    shop.run("INSERT INTO products VALUES (1001, 1001, '')");
    if taken.elapsed() > overlap {
        return false;
    }
    wait_until(&source, "the late row", || has(&ids, 1001) && !has(&ids, 1002));
    assert_eq!(source.status().generations, 1);
    true
}

#[test]
fn a_late_commit_during_the_restart_is_found() {
    let overlaps = [1, 4, 20].map(Duration::from_secs);
    assert!(overlaps.into_iter().any(finds_late_commit), "the machine is too slow");
}

#[test]
fn another_file_or_schema_costs_a_read_of_all_ids() {
    let shop = Shop::filled("delete", 1000);
    let sqlite = with_snapshot(&shop, Some("id"), 10);
    let (_, source, _) = restart(&sqlite);
    wait_until(&source, "a bound", || source.status().lag.is_some());
    std::thread::sleep(Duration::from_millis(50));
    source.stop();
    if !has_identity(&shop.path) {
        assert_eq!(restart(&sqlite).2.snapshots.age, None);
        return;
    }
    shop.run("CREATE INDEX another ON products (name)");
    let (_, source, status) = restart(&sqlite);
    reads_all(&status, "the schema of the database has changed");
    std::thread::sleep(Duration::from_millis(50));
    source.stop();
    // A new file at the same path, perhaps with the same inode.
    let content = fs::read(&shop.path).unwrap();
    fs::remove_file(&shop.path).unwrap();
    fs::write(&shop.path, content).unwrap();
    reads_all(&restart(&sqlite).2, "the database is another one");
    let mut other = sqlite;
    other.options.condition = Some("id > 0".to_owned());
    reads_all(&restart(&other).2, "another source");
}

#[test]
fn without_a_change_column_all_ids_are_read() {
    let shop = Shop::filled("wal", 1000);
    let sqlite = with_snapshot(&shop, None, 0);
    for _ in 0..2 {
        let (_, source, status) = restart(&sqlite);
        assert_eq!((status.items_read, status.snapshots.age), (1000, None));
        source.stop();
    }
    assert!(!shop.path.with_extension("snapshot").exists());
}

#[test]
fn the_time_of_the_next_read_of_all_ids_is_kept() {
    let shop = Shop::filled("wal", 1000);
    if !has_identity(&shop.path) {
        return;
    }
    let reread = Duration::from_secs(1);
    let mut sqlite = with_snapshot(&shop, Some("id"), 10);
    (sqlite.options.deletions, sqlite.options.reread) = (None, reread);
    let (_, source, _) = restart(&sqlite);
    wait(&source, "written", |status| status.snapshots.age.is_some());
    source.stop();
    shop.run("DELETE FROM products WHERE id = 7");
    // Each start is shorter than the time of the next read.
    for _ in 0..8 {
        let (ids, source, status) = restart(&sqlite);
        std::thread::sleep(Duration::from_millis(250));
        source.stop();
        if status.items_read >= 900 || !ids.generations().contains(b"7") {
            return;
        }
    }
    panic!("the deleted row passes for ever");
}
