//! A source that starts with a snapshot goes on in the log, or reads all ids if it cannot.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tamis_sources::{IdSet, IdSetOptions, Source, SourceOptions, SyncState};

use crate::checker::{has, id_set, integers, knows, options, wait, wait_synced, wait_until};
use crate::stories::follow::{continued, lasting_shop, restart, start};
use crate::stories::restarts::{costs_a_read, goes_on, reads_all, rewrite};

#[test]
fn a_snapshot_that_cannot_be_continued_costs_a_read_of_all_ids() {
    let (_server, mut shop, _dir, mysql) = lasting_shop(100);
    restart(&mysql).1.stop();
    // Files have the second in which they were created.
    std::thread::sleep(Duration::from_millis(1100));
    let changes = [
        ("ALTER TABLE products ADD COLUMN price INT", "the table has other columns"),
        // From now on, a deleted row does not imply a deleted id.
        ("ALTER TABLE products DROP PRIMARY KEY", "other columns or unique indexes"),
        (
            "RESET MASTER; INSERT INTO products (id) SELECT seq FROM seq_2000_to_9000",
            "has started a new binary log",
        ),
        (
            "FLUSH BINARY LOGS; INSERT INTO products (id) VALUES (501)",
            "the server no longer has its log",
        ),
        ("SET GLOBAL server_id = 9", "the server is another one"),
        (
            "RENAME TABLE products TO old; CREATE TABLE products AS SELECT id, name FROM old",
            "the table has other columns",
        ),
    ];
    for (id, (statements, reason)) in (1000..).zip(changes) {
        shop.run(statements);
        if reason.contains("no longer") {
            shop.session.purge_logs();
        }
        costs_a_read(&mut shop, &mysql, id, reason);
    }
    // The log has the change of the table.
    shop.run("TRUNCATE products");
    shop.run("INSERT INTO products (id) VALUES (7)");
    let (ids, _source, status) = restart(&mysql);
    assert_eq!(status.items_read, 1);
    assert!(knows(&ids, 7) && !has(&ids, 1));
}

/// Writes the snapshot at a path with another end.
fn move_end(path: &Path, move_by: i64) {
    rewrite(path, |snapshot| {
        let mut end: serde_json::Value = serde_json::from_slice(&snapshot.end).unwrap();
        end["offset"] = (end["offset"].as_i64().unwrap() + move_by).into();
        snapshot.end = end.to_string().into_bytes();
    });
}

#[test]
fn a_log_that_has_lost_its_end_is_not_continued() {
    let (_server, mut shop, dir, mysql) = lasting_shop(100);
    let path = dir.path("a");
    restart(&mysql).1.stop();
    // As if the writer had applied a deletion that the server then lost in a crash.
    rewrite(&path, |snapshot| {
        snapshot.generation.delete_key(b"7");
        assert!(snapshot.head.created <= SystemTime::now());
    });
    move_end(&path, 300);
    shop.run("FLUSH BINARY LOGS");
    let (ids, source, status) = restart(&mysql);
    reads_all(&status, "does not have all changes");
    assert!(knows(&ids, 7));
    source.stop();
    // The log has more bytes than the end, and no transaction that ends there.
    move_end(&path, 1);
    shop.run("INSERT INTO products VALUES ('new', 101)");
    let (_, source, status) = restart(&mysql);
    reads_all(&status, "does not have all changes");
    source.stop();
    // While the log has not reached the end, the set is not synced.
    move_end(&path, 10_000_000);
    let ids = id_set(integers());
    let source = start(&ids, &mysql);
    wait_until(&source, "loaded", || ids.generations().contains(b"7"));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(ids.state(), SyncState::Warming);
    shop.run("FLUSH BINARY LOGS");
    reads_all(&wait_synced(&source), "does not have all changes");
}

#[test]
fn a_damaged_snapshot_costs_a_read_of_all_ids() {
    let (_server, mut shop, dir, mysql) = lasting_shop(100);
    shop.run("CREATE TABLE other (id INT PRIMARY KEY)");
    shop.run("INSERT INTO other VALUES (7)");
    let path = dir.path("a");
    restart(&mysql).1.stop();
    let whole = fs::read(&path).unwrap();
    let damaged = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let middle = whole.len() / 2;
    let cases: [(Vec<u8>, &str); 8] = [
        (Vec::new(), "is incomplete"),
        (whole[..middle].to_vec(), "truncated"),
        (whole[..whole.len() - 1].to_vec(), "is incomplete"),
        (damaged(0), "is not a snapshot of a guard"),
        (damaged(8), "has version"),
        (damaged(middle), "damaged"),
        (damaged(whole.len() - 1), "its checksum differs"),
        ([&whole[..], b"x"].concat(), "bytes follow its end"),
    ];
    for (bytes, reason) in cases {
        fs::write(&path, bytes).unwrap();
        let (ids, source, status) = restart(&mysql);
        reads_all(&status, reason);
        assert!(knows(&ids, 100) && !has(&ids, 101), "{reason}");
        source.stop();
    }
    // A whole one, of something else.
    let mut other = mysql.clone();
    other.options.table = "other".to_owned();
    let (_, source, status) = restart(&other);
    reads_all(&status, "another source");
    source.stop();
    let ids = IdSet::new(IdSetOptions { rate: 0.01, ..IdSetOptions::new(integers()) });
    let source = start(&Arc::new(ids.unwrap()), &mysql);
    reads_all(&wait_synced(&source), "another source");
    source.stop();
    reads_all(&restart(&mysql).2, "another rate");
}

#[test]
fn a_folder_without_space_costs_no_id() {
    let (_server, mut shop, dir, _) = lasting_shop(100);
    let folder = dir.path("folder");
    fs::create_dir(&folder).unwrap();
    let mysql = continued(&shop.options, &folder.join("a"));
    let (ids, source, _) = restart(&mysql);
    wait(&source, "written", |status| status.snapshots.age.is_some());
    fs::remove_dir_all(&folder).unwrap();
    shop.run("INSERT INTO products VALUES ('new', 101)");
    let status = wait(&source, "failed", |status| status.snapshots.failures > 1);
    let error = status.snapshots.last_error.unwrap();
    assert!(error.contains("folder/a: No such file") && !error.contains("os error"), "{error}");
    assert!(knows(&ids, 101) && !has(&ids, 102));
    assert_eq!((ids.state(), status.failures), (SyncState::Synced, 0));
    fs::create_dir(&folder).unwrap();
    wait(&source, "written again", |status| status.snapshots.last_error.is_none());
    source.stop();
    goes_on(&restart(&mysql).2);
}

#[test]
fn the_age_of_the_ids_counts_from_their_read() {
    let (_server, _shop, dir, mysql) = lasting_shop(100);
    let path = dir.path("a");
    restart(&mysql).1.stop();
    let hour = Duration::from_secs(3600);
    rewrite(&path, |snapshot| snapshot.head.built -= hour);
    let (_, source, status) = restart(&mysql);
    assert!(status.generation_age.unwrap() >= hour, "{status:?}");
    source.stop();
    // They are read again when they are too old, however often the guard is restarted.
    let times = SourceOptions { rebuild_after: Some(hour), ..options() };
    let source = Source::start(id_set(integers()), mysql.clone(), times);
    wait(&source, "read again", |status| status.generations == 2);
    assert_eq!(source.status().items_read, 100);
}
