//! A source that starts with a snapshot goes on in the log, or reads all ids if it cannot.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tamis_guard::source::{MysqlOptions, Source, SourceOptions, SourceStatus};
use tamis_guard::{
    Generation, IdSet, IdSetOptions, SnapshotHead, SnapshotOptions, SnapshotStore, SyncState,
};

use crate::checker::{Dir, has, id_set, integers, knows, options, wait, wait_synced, wait_until};
use crate::server::{Server, start};
use crate::snapshots::{goes_on, reads_all, restart_while_rows_change};
use crate::stories::transact;

/// Returns the options with a snapshot that is written often.
pub fn with_snapshot(mysql: &MysqlOptions, path: &Path) -> MysqlOptions {
    let every = Duration::from_millis(20);
    let snapshot = SnapshotOptions { every, ..SnapshotOptions::new(path) };
    MysqlOptions { snapshot: Some(snapshot), ..mysql.clone() }
}

/// Starts a source with an empty set, and waits until it is synced.
fn restart(mysql: &MysqlOptions) -> (Arc<IdSet>, Source, SourceStatus) {
    let ids = id_set(integers());
    let source = start(&ids, mysql);
    let status = wait_synced(&source);
    (ids, source, status)
}

#[test]
fn a_restart_goes_on_in_the_log_and_does_not_read_the_table() {
    let server = Server::start();
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 5000);
    let mysql = with_snapshot(&shop.options, &dir.path("a"));
    let (ids, source, status) = restart(&mysql);
    assert_eq!((status.items_read, status.snapshots.unused), (5000, None));
    shop.session.run("INSERT INTO products VALUES ('new', 5001), ('new', 5002)");
    shop.session.run("DELETE FROM products WHERE id IN (7, 8, 5002)");
    wait_until(&source, "changed", || knows(&ids, 5001) && !has(&ids, 8) && !has(&ids, 5002));
    source.stop();
    shop.session.run("INSERT INTO products VALUES ('while it is stopped', 5003)");
    shop.session.run("INSERT INTO products VALUES ('created again', 8)");
    shop.session.run("DELETE FROM products WHERE id = 9");
    shop.session.run("FLUSH BINARY LOGS");
    shop.session.run("INSERT INTO products VALUES ('in another file', 5004)");
    for _ in 0..2 {
        let (ids, source, status) = restart(&mysql);
        goes_on(&status);
        assert!([1, 8, 5000, 5001, 5003, 5004].iter().all(|id| knows(&ids, id)));
        assert!([7, 9, 5002, 5005].iter().all(|id| !has(&ids, id)));
        source.stop();
    }
    // A read of all ids has another hash key, which the next snapshot has too.
    let (ids, source, _) = restart(&mysql);
    source.rebuild();
    wait(&source, "read again", |status| status.generations == 2);
    shop.session.run("INSERT INTO products VALUES ('new', 5005)");
    wait_until(&source, "new", || knows(&ids, 5005));
    source.stop();
    let (ids, _source, status) = restart(&mysql);
    goes_on(&status);
    assert!([1, 8, 5005].iter().all(|id| knows(&ids, id)) && !has(&ids, 7));
}

#[test]
fn the_promise_holds_over_restarts_while_rows_change() {
    let server = Server::start();
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 2000);
    let options = shop.options.clone();
    let start = |ids: &Arc<IdSet>, path: &Path| start(ids, &with_snapshot(&options, path));
    restart_while_rows_change(&dir, start, true, &mut |committed, random, next| {
        transact(&mut shop, committed, random, next);
    });
}

#[test]
fn a_snapshot_that_cannot_be_continued_costs_a_read_of_all_ids() {
    let server = Server::start();
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let path = dir.path("a");
    let mysql = with_snapshot(&shop.options, &path);
    restart(&mysql).1.stop();
    // Files have the second in which they were created.
    std::thread::sleep(Duration::from_millis(1100));
    let changes: [(&[&str], &str); 6] = [
        (&["ALTER TABLE products ADD COLUMN price INT"], "the table has other columns"),
        // The deletion of a row is not that of its id any more.
        (&["ALTER TABLE products DROP PRIMARY KEY"], "other columns or unique indexes"),
        (
            &["RESET MASTER", "INSERT INTO products (id) SELECT seq FROM seq_2000_to_9000"],
            "has started a new binary log",
        ),
        (
            &["FLUSH BINARY LOGS", "INSERT INTO products (id) VALUES (501)"],
            "the server no longer has its log",
        ),
        (&["SET GLOBAL server_id = 9"], "the server is another one"),
        (
            &["RENAME TABLE products TO old", "CREATE TABLE products AS SELECT id, name FROM old"],
            "the table has other columns",
        ),
    ];
    for (i, (statements, reason)) in changes.into_iter().enumerate() {
        for statement in statements {
            shop.session.run(statement);
        }
        if reason.contains("no longer") {
            shop.session.purge_logs();
        }
        let id = 1000 + i;
        shop.session.run(&format!("INSERT INTO products (id) VALUES ({id})"));
        let (ids, source, status) = restart(&mysql);
        reads_all(&status, reason);
        assert!(knows(&ids, id) && knows(&ids, 1) && !has(&ids, id + 1), "{reason}");
        // The next one goes on.
        source.stop();
        let (_, source, status) = restart(&mysql);
        goes_on(&status);
        source.stop();
    }
    // The log has the change of the table.
    shop.session.run("TRUNCATE products");
    shop.session.run("INSERT INTO products (id) VALUES (7)");
    let (ids, _source, status) = restart(&mysql);
    assert_eq!(status.items_read, 1);
    assert!(knows(&ids, 7) && !has(&ids, 1));
}

/// Writes the snapshot at a path with another end.
fn move_end(path: &Path, move_by: i64) {
    let snapshot = Generation::read_snapshot(fs::File::open(path).unwrap(), 1 << 30).unwrap();
    let mut end: serde_json::Value = serde_json::from_slice(&snapshot.end).unwrap();
    let offset = end["offset"].as_i64().unwrap() + move_by;
    end["offset"] = offset.into();
    let store = SnapshotStore::new(SnapshotOptions::new(path));
    let end = || end.to_string().into_bytes();
    store.save(&snapshot.head, &snapshot.generation, end).unwrap();
}

#[test]
fn a_log_that_has_lost_its_end_is_not_continued() {
    let server = Server::start();
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let path = dir.path("a");
    let mysql = with_snapshot(&shop.options, &path);
    restart(&mysql).1.stop();
    // As if the writer had applied a deletion that the server then lost in a crash.
    let head = {
        let snapshot = Generation::read_snapshot(fs::File::open(&path).unwrap(), 1 << 30).unwrap();
        snapshot.generation.delete(b"7");
        let store = SnapshotStore::new(SnapshotOptions::new(&path));
        store.save(&snapshot.head, &snapshot.generation, || snapshot.end.clone()).unwrap();
        snapshot.head
    };
    assert!(head.created <= SystemTime::now());
    move_end(&path, 300);
    shop.session.run("FLUSH BINARY LOGS");
    let (ids, source, status) = restart(&mysql);
    reads_all(&status, "does not have all changes");
    assert!(knows(&ids, 7));
    source.stop();
    // The log has more bytes than the end, and no transaction that ends there.
    move_end(&path, 1);
    shop.session.run("INSERT INTO products VALUES ('new', 101)");
    let (_, source, status) = restart(&mysql);
    reads_all(&status, "does not have all changes");
    source.stop();
    // While the log has not reached the end, the set is not synced.
    move_end(&path, 10_000_000);
    let ids = id_set(integers());
    let source = start(&ids, &mysql);
    wait_until(&source, "loaded", || ids.generation().contains(b"7"));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(ids.state(), SyncState::Warming);
    shop.session.run("FLUSH BINARY LOGS");
    reads_all(&wait_synced(&source), "does not have all changes");
}

#[test]
fn a_damaged_snapshot_costs_a_read_of_all_ids() {
    let server = Server::start();
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    shop.session.run("CREATE TABLE other (id INT PRIMARY KEY)");
    shop.session.run("INSERT INTO other VALUES (7)");
    let path = dir.path("a");
    let mysql = with_snapshot(&shop.options, &path);
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
    let (_, source, status) = restart(&MysqlOptions { table: "other".to_owned(), ..mysql.clone() });
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
    let server = Server::start();
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let folder: PathBuf = dir.path("folder");
    fs::create_dir(&folder).unwrap();
    let mysql = with_snapshot(&shop.options, &folder.join("a"));
    let (ids, source, _) = restart(&mysql);
    wait(&source, "written", |status| status.snapshots.age.is_some());
    fs::remove_dir_all(&folder).unwrap();
    shop.session.run("INSERT INTO products VALUES ('new', 101)");
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
    let server = Server::start();
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let path = dir.path("a");
    let mysql = with_snapshot(&shop.options, &path);
    restart(&mysql).1.stop();
    let snapshot = Generation::read_snapshot(fs::File::open(&path).unwrap(), 1 << 30).unwrap();
    let hour = Duration::from_secs(3600);
    let head = SnapshotHead { built: snapshot.head.built - hour, ..snapshot.head };
    let store = SnapshotStore::new(SnapshotOptions::new(&path));
    store.save(&head, &snapshot.generation, || snapshot.end.clone()).unwrap();
    let (_, source, status) = restart(&mysql);
    assert!(status.generation_age.unwrap() >= hour, "{status:?}");
    source.stop();
    // They are read again when they are too old, however often the guard is restarted.
    let times = SourceOptions { rebuild_after: Some(hour), ..options() };
    let source = Source::mysql(id_set(integers()), mysql, times);
    wait(&source, "read again", |status| status.generations == 2);
    assert_eq!(source.status().items_read, 100);
}
