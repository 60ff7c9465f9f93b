//! A source with a permanent slot goes on in the log, or reads all ids if it cannot.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis_guard::source::{PostgresOptions, Source, SourceStatus};
use tamis_guard::{Generation, IdSet, SnapshotOptions, SnapshotStore, SyncState};

use crate::checker::{
    Committed, Dir, check, has, id_set, integers, knows, wait, wait_synced, wait_until,
};
use crate::faults::wait_until_value;
use crate::server::{Server, Session, start, start_patient};
use crate::snapshots::{goes_on, reads_all, restart_while_rows_change};
use crate::stories::transact;
use crate::tcp_proxy::TcpProxy;

/// What a server must have for permanent slots.
pub const LIMIT: &str = "max_slot_wal_keep_size=1GB";

const SLOTS: &str = "SELECT count(*) FROM pg_replication_slots";

const USED_SLOTS: &str = "SELECT count(*) FROM pg_replication_slots WHERE active";

/// Returns the options with a permanent slot, and a snapshot that is written often.
pub fn with_slot(postgres: &PostgresOptions, path: &Path) -> PostgresOptions {
    let every = Duration::from_millis(20);
    let snapshot = SnapshotOptions { every, ..SnapshotOptions::new(path) };
    let slot = Some("tamis_guard".to_owned());
    PostgresOptions { slot, snapshot: Some(snapshot), ..postgres.clone() }
}

/// Starts a source with an empty set, and waits until it is synced.
fn restart(postgres: &PostgresOptions) -> (Arc<IdSet>, Source, SourceStatus) {
    let ids = id_set(integers());
    let source = start_patient(&ids, postgres);
    let status = wait_synced(&source);
    (ids, source, status)
}

#[test]
fn a_restart_goes_on_in_the_log_and_does_not_read_the_table() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 5000);
    let postgres = with_slot(&shop.options, &dir.path("a"));
    let (ids, source, status) = restart(&postgres);
    assert_eq!((status.items_read, status.snapshots.unused), (5000, None));
    shop.session.run("INSERT INTO products VALUES ('new', 5001), ('new', 5002)");
    shop.session.run("DELETE FROM products WHERE id IN (7, 8, 5002)");
    wait_until(&source, "changed", || knows(&ids, 5001) && !has(&ids, 8) && !has(&ids, 5002));
    source.stop();
    shop.session.run("INSERT INTO products VALUES ('while it is stopped', 5003)");
    shop.session.run("INSERT INTO products VALUES ('created again', 8)");
    shop.session.run("DELETE FROM products WHERE id = 9");
    for _ in 0..2 {
        let (ids, source, status) = restart(&postgres);
        goes_on(&status);
        assert!([1, 8, 5000, 5001, 5003].iter().all(|id| knows(&ids, id)));
        assert!([7, 9, 5002, 5005].iter().all(|id| !has(&ids, id)));
        source.stop();
    }
    // A read of all ids has another hash key, which the next snapshot has too.
    let (ids, source, _) = restart(&postgres);
    source.rebuild();
    wait(&source, "read again", |status| status.generations == 2);
    shop.session.run("INSERT INTO products VALUES ('new', 5005)");
    wait_until(&source, "new", || knows(&ids, 5005));
    source.stop();
    let (ids, source, status) = restart(&postgres);
    goes_on(&status);
    assert!([1, 8, 5005].iter().all(|id| knows(&ids, id)) && !has(&ids, 7));
    source.stop();
    wait_until_value(&mut shop.session, SLOTS, "1");
}

#[test]
fn a_broken_connection_costs_no_read() {
    let mut server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 1000);
    let proxy = TcpProxy::start(server.address());
    let options = shop.at(proxy.address);
    let (ids, committed) = (id_set(integers()), Committed::default());
    committed.insert(1..=1000);
    let source = start(&ids, &with_slot(&options, &dir.path("a")));
    wait_synced(&source);
    let mut next = 2000;
    check(&source, &ids, &committed, || {
        for round in 0..9 {
            for _ in 0..30 {
                shop.session.run(&format!("INSERT INTO products VALUES ('new', {next})"));
                committed.insert([next]);
                next += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            match round % 3 {
                0 => proxy.cut(),
                // The server does not notice it, and the former process still has the slot.
                1 => {
                    proxy.partition();
                    wait(&source, "stale", |status| status.state == SyncState::Stale);
                    proxy.heal();
                }
                _ => {
                    server.kill();
                    server.run();
                    shop.session = Session::open(&shop.options.url);
                }
            }
            wait_synced(&source);
        }
    });
    wait_until(&source, "all are known", || (2000..next).all(|id| has(&ids, id)));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn the_promise_holds_over_restarts_while_rows_change() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 2000);
    let options = shop.options.clone();
    let start = |ids: &Arc<IdSet>, path: &Path| start(ids, &with_slot(&options, path));
    // The slot may no longer have the log since an older snapshot.
    restart_while_rows_change(&dir, start, false, &mut |committed, random, next| {
        transact(&mut shop, committed, random, next);
    });
}

#[test]
fn the_server_keeps_the_log_after_the_snapshot_and_no_more() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let (path, old) = (dir.path("a"), dir.path("old"));
    let mut postgres = with_slot(&shop.options, &path);
    postgres.snapshot.as_mut().unwrap().every = Duration::from_secs(3600);
    let source = restart(&postgres).1;
    source.stop();
    // A process that is killed leaves the snapshot from its start.
    fs::copy(&path, &old).unwrap();
    let confirmed = "SELECT confirmed_flush_lsn FROM pg_replication_slots";
    let (ids, source, _) = restart(&postgres);
    shop.session.run("INSERT INTO products VALUES ('new', 101); DELETE FROM products WHERE id = 7");
    wait_until(&source, "changed", || has(&ids, 101) && !has(&ids, 7));
    // Longer than from one confirmation to the next.
    std::thread::sleep(Duration::from_millis(2500));
    let kept = shop.session.value(confirmed);
    source.stop();
    fs::rename(&old, &path).unwrap();
    let (ids, source, status) = restart(&postgres);
    goes_on(&status);
    assert!(has(&ids, 101) && !has(&ids, 7));
    source.stop();
    // With snapshots, the server may delete its log.
    postgres.snapshot.as_mut().unwrap().every = Duration::from_millis(20);
    let (_, _source, _) = restart(&postgres);
    shop.session.run("INSERT INTO products VALUES ('new', 102)");
    let moved = format!("SELECT confirmed_flush_lsn > '{kept}' FROM pg_replication_slots");
    wait_until_value(&mut shop.session, &moved, "t");
}

#[test]
fn a_server_shuts_down_although_its_log_is_not_in_a_snapshot() {
    let mut server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let mut postgres = with_slot(&shop.options, &dir.path("a"));
    postgres.snapshot.as_mut().unwrap().every = Duration::from_secs(3600);
    let (ids, source, _) = restart(&postgres);
    shop.session.run("INSERT INTO products VALUES ('new', 101)");
    wait_until(&source, "new", || has(&ids, 101));
    let begun = Instant::now();
    drop(shop);
    server.shut_down();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    server.run();
    let mut session = Session::open(&postgres.url);
    session.run("INSERT INTO products VALUES ('after', 102)");
    wait_until(&source, "after", || has(&ids, 102));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_snapshot_that_cannot_be_continued_costs_a_read_of_all_ids() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let postgres = with_slot(&shop.options, &dir.path("a"));
    restart(&postgres).1.stop();
    let table = "the table or its publication is another one";
    let slot = "the replication slot no longer has the changes after it";
    let changes = [
        (
            "ALTER PUBLICATION tamis_guard DROP TABLE products;
            INSERT INTO products VALUES ('unseen', 500);
            ALTER PUBLICATION tamis_guard ADD TABLE products (id)",
            table,
        ),
        (
            "ALTER TABLE products RENAME TO old; CREATE TABLE products (LIKE old INCLUDING ALL);
            ALTER PUBLICATION tamis_guard ADD TABLE products (id);
            INSERT INTO products SELECT * FROM old",
            table,
        ),
        ("SELECT pg_drop_replication_slot('tamis_guard')", slot),
        (
            "INSERT INTO products VALUES ('skipped', 501); COMMIT;
            SELECT pg_replication_slot_advance('tamis_guard', pg_current_wal_insert_lsn())",
            slot,
        ),
    ];
    for (i, (sql, reason)) in changes.into_iter().enumerate() {
        wait_until_value(&mut shop.session, USED_SLOTS, "0");
        shop.session.run(sql);
        let id = 1000 + i;
        shop.session.run(&format!("INSERT INTO products VALUES ('new', {id})"));
        let (ids, source, status) = restart(&postgres);
        reads_all(&status, reason);
        let all = shop.session.value("SELECT string_agg(id::text, ' ') FROM products");
        assert!(all.split(' ').all(|id| knows(&ids, id)) && !has(&ids, id + 1), "{reason}");
        // The next one goes on.
        source.stop();
        let (_, source, status) = restart(&postgres);
        goes_on(&status);
        source.stop();
    }
    // The log has this change.
    shop.session.run("TRUNCATE products; INSERT INTO products VALUES ('only', 7)");
    let (ids, source, _) = restart(&postgres);
    wait_until(&source, "emptied", || !has(&ids, 1) && has(&ids, 7));
    source.stop();
    // As if the server had lost the end of its log.
    let path = dir.path("a");
    let snapshot = Generation::read_snapshot(fs::File::open(&path).unwrap(), 1 << 30).unwrap();
    let mut end: serde_json::Value = serde_json::from_slice(&snapshot.end).unwrap();
    end["position"] = "FFFF/0".into();
    let store = SnapshotStore::new(SnapshotOptions::new(&path));
    let end = end.to_string().into_bytes();
    store.save(&snapshot.head, &snapshot.generation, || end).unwrap();
    let (_, source, status) = restart(&postgres);
    reads_all(&status, "the log of the server does not have all changes that it has");
    source.stop();
    fs::write(&path, b"damaged").unwrap();
    let (_, _source, status) = restart(&postgres);
    reads_all(&status, "the snapshot is incomplete");
}

#[test]
fn a_slot_that_has_lost_its_log_is_replaced() {
    let settings = ["max_slot_wal_keep_size=16MB", "max_wal_size=32MB", "min_wal_size=32MB"];
    let server = Server::start_with(&settings);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let postgres = with_slot(&shop.options, &dir.path("a"));
    restart(&postgres).1.stop();
    let status = "SELECT wal_status FROM pg_replication_slots";
    for _ in 0..20 {
        shop.session.run("SELECT pg_switch_wal(); CREATE TABLE t (); DROP TABLE t; CHECKPOINT");
        if shop.session.value(status) == "lost" {
            break;
        }
    }
    assert_eq!(shop.session.value(status), "lost");
    shop.session.run("INSERT INTO products VALUES ('new', 101); DELETE FROM products WHERE id = 7");
    let (ids, source, status) = restart(&postgres);
    reads_all(&status, "the replication slot no longer has the changes after it");
    assert!(knows(&ids, 101) && !has(&ids, 7));
    source.stop();
    goes_on(&restart(&postgres).2);
}

#[test]
fn a_slot_that_the_source_must_not_use_is_refused() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let postgres = with_slot(&shop.options, &dir.path("a"));
    let refused = |expected: &str| {
        let source = start(&id_set(integers()), &postgres);
        let status = wait(&source, expected, |status| status.last_error.is_some());
        let error = status.last_error.unwrap();
        assert!(error.contains(expected), "{error}");
        assert_eq!(status.state, SyncState::Warming);
    };
    // Another source has the slot.
    let (ids, source, _) = restart(&postgres);
    refused("another process uses the replication slot tamis_guard");
    shop.session.run("INSERT INTO products VALUES ('new', 101)");
    wait_until(&source, "the other one goes on", || has(&ids, 101));
    source.stop();
    wait_until_value(&mut shop.session, USED_SLOTS, "0");
    shop.session.run("SELECT pg_drop_replication_slot('tamis_guard')");
    for create in [
        "pg_create_physical_replication_slot('tamis_guard')",
        "pg_create_logical_replication_slot('tamis_guard', 'test_decoding')",
        "pg_create_logical_replication_slot('tamis_guard', 'pgoutput', false, true)",
    ] {
        shop.session.run(&format!("SELECT {create}"));
        refused("choose another name for `slot`");
        assert_eq!(shop.session.value(SLOTS), "1", "the slot stays");
        shop.session.run("SELECT pg_drop_replication_slot('tamis_guard')");
    }
    // A server that would keep its whole log.
    let server = Server::start();
    let mut shop = server.shop();
    let postgres = with_slot(&shop.options, &dir.path("b"));
    let ids = id_set(integers());
    let source = start(&ids, &postgres);
    let status = wait(&source, "refused", |status| status.last_error.is_some());
    let error = status.last_error.unwrap();
    let sql = error.split_once("run: ").unwrap_or_else(|| panic!("{error}")).1;
    for statement in sql.split("; ") {
        shop.session.run(statement);
    }
    wait_synced(&source);
}

#[test]
fn a_user_with_the_documented_privileges_can_have_a_permanent_slot() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    shop.session
        .run("CREATE USER guard REPLICATION PASSWORD 'geheim'; GRANT SELECT ON products TO guard");
    // Two ways to the server.
    let (proxy, other) = (TcpProxy::start(server.address()), TcpProxy::start(server.address()));
    let url = shop.options.url.replace("postgres@", "guard:geheim@");
    let hosts = format!("{},{}", proxy.address, other.address);
    let url = url.replace(&server.address().to_string(), &hosts);
    let options = PostgresOptions { url, ..shop.options.clone() };
    let postgres = with_slot(&options, &dir.path("a"));
    restart(&postgres).1.stop();
    let ids = id_set(integers());
    // The source must connect through `proxy`. On a busy machine it may try `other` as well.
    other.partition();
    let source = start(&ids, &postgres);
    goes_on(&wait_synced(&source));
    other.heal();
    // The former process of the server does not end, and has the slot. The source ends it.
    let process = shop.session.value("SELECT active_pid FROM pg_replication_slots");
    proxy.partition();
    shop.session.run("INSERT INTO products VALUES ('new', 101)");
    wait_until(&source, "the other way", || has(&ids, 101));
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {process}");
    wait_until_value(&mut shop.session, &count, "0");
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
    proxy.heal();
    source.stop();
    // It also drops a slot that it cannot use, and creates it.
    wait_until_value(&mut shop.session, USED_SLOTS, "0");
    shop.session.run("INSERT INTO products VALUES ('new', 102)");
    shop.session
        .run("SELECT pg_replication_slot_advance('tamis_guard', pg_current_wal_insert_lsn())");
    let (_, _source, status) = restart(&postgres);
    reads_all(&status, "no longer has the changes after it");
}

#[test]
fn a_snapshot_that_is_refused_is_not_used_later() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    let path = dir.path("a");
    let postgres = with_slot(&shop.options, &path);
    restart(&postgres).1.stop();
    wait_until_value(&mut shop.session, USED_SLOTS, "0");
    shop.session.run("SELECT pg_drop_replication_slot('tamis_guard')");
    shop.session.run("INSERT INTO products VALUES ('unseen', 101)");
    // The read of all ids waits for this transaction.
    let mut other = Session::open(&shop.options.url);
    other.run("BEGIN; CREATE TABLE other ()");
    let source = start(&id_set(integers()), &postgres);
    wait(&source, "a read", |status| status.last_error.is_some());
    source.stop();
    assert!(!path.exists());
    other.run("COMMIT");
    let (ids, _source, status) = restart(&postgres);
    assert!(knows(&ids, 101) && status.items_read == 101, "{status:?}");
}

#[test]
fn what_happens_without_the_source_and_leaves_no_trace_in_the_log_is_noticed() {
    let server = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 100);
    shop.session.run(
        "CREATE SCHEMA other; DROP PUBLICATION tamis_guard;
        CREATE PUBLICATION tamis_guard FOR TABLES IN SCHEMA public",
    );
    let postgres = with_slot(&shop.options, &dir.path("a"));
    restart(&postgres).1.stop();
    for (before, after) in [
        ("ALTER TABLE products SET SCHEMA other", "ALTER TABLE other.products SET SCHEMA public"),
        ("ALTER TABLE products SET UNLOGGED", "ALTER TABLE products SET LOGGED"),
    ] {
        let id = shop.session.value(&format!(
            "{before}; INSERT INTO {}products SELECT 'unseen', max(id) + 1 FROM {}products
            RETURNING id",
            if before.contains("SCHEMA") { "other." } else { "" },
            if before.contains("SCHEMA") { "other." } else { "" },
        ));
        shop.session.run(after);
        let (ids, source, status) = restart(&postgres);
        reads_all(&status, "the table or its publication is another one");
        assert!(knows(&ids, id), "{before}");
        source.stop();
    }
}

#[test]
fn a_promoted_standby_is_read_again() {
    let mut primary = Server::start_with(&[LIMIT]);
    let (mut shop, dir) = (primary.shop(), Dir::new());
    shop.fill(1, 100);
    let standby = primary.standby();
    let hosts = format!("{},{}", primary.address(), standby.address());
    let ids = id_set(integers());
    let source = start(&ids, &with_slot(&shop.at(hosts), &dir.path("a")));
    wait_synced(&source);
    let mut session = Session::open(&standby.url(&shop.name));
    wait_until_value(&mut session, "SELECT count(*) FROM products", "100");
    primary.kill();
    session.run("SELECT pg_promote()");
    session.run("DELETE FROM products WHERE id = 1; INSERT INTO products VALUES ('new', 101)");
    wait_until(&source, "the other server", || has(&ids, 101) && !has(&ids, 1));
    wait_synced(&source);
    session.run("INSERT INTO products VALUES ('new', 102)");
    wait_until(&source, "the other stream", || has(&ids, 102));
}
