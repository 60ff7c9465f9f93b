//! A source with a permanent slot goes on in the log, or reads all ids if it cannot.

use std::fs;
use std::time::{Duration, Instant};

use crate::checker::{Dir, has, id_set, integers, knows, wait, wait_synced, wait_until};
use crate::server::{Server, Session};
use crate::stories::follow::{at, continued, lasting_shop, own_shop, refused, restart, start};
use crate::stories::restarts::{costs_a_read, goes_on, reads_all, rewrite};
use crate::tcp_proxy::TcpProxy;

const SLOTS: &str = "SELECT count(*) FROM pg_replication_slots";

const USED_SLOTS: &str = "SELECT count(*) FROM pg_replication_slots WHERE active";

#[test]
fn the_server_keeps_the_log_after_the_snapshot_and_no_more() {
    let (_server, mut shop, dir, mut postgres) = lasting_shop(100);
    let (path, old) = (dir.path("a"), dir.path("old"));
    postgres.snapshot.every = Duration::from_secs(3600);
    let source = restart(&postgres).1;
    source.stop();
    // The temporary slots end with their connections.
    shop.session.wait_for(SLOTS, "1");
    // A process that is killed leaves the snapshot from its start.
    fs::copy(&path, &old).unwrap();
    let confirmed = "SELECT confirmed_flush_lsn FROM pg_replication_slots";
    let (ids, source, _) = restart(&postgres);
    shop.run("INSERT INTO products VALUES ('new', 101); DELETE FROM products WHERE id = 7");
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
    postgres.snapshot.every = Duration::from_millis(20);
    let (_, _source, _) = restart(&postgres);
    shop.run("INSERT INTO products VALUES ('new', 102)");
    let moved = format!("SELECT confirmed_flush_lsn > '{kept}' FROM pg_replication_slots");
    shop.session.wait_for(&moved, "t");
}

#[test]
fn a_server_shuts_down_although_its_log_is_not_in_a_snapshot() {
    let (mut server, mut shop, _dir, mut postgres) = lasting_shop(100);
    postgres.snapshot.every = Duration::from_secs(3600);
    let (ids, source, _) = restart(&postgres);
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 101)", &[101], &[]);
    let begun = Instant::now();
    drop(shop);
    server.shut_down();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    server.run();
    let mut session = Session::open(&postgres.options.url);
    session.run("INSERT INTO products VALUES ('after', 102)");
    wait_until(&source, "after", || has(&ids, 102));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_snapshot_that_cannot_be_continued_costs_a_read_of_all_ids() {
    let (_server, mut shop, dir, postgres) = lasting_shop(100);
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
    for (id, (sql, reason)) in (1000..).zip(changes) {
        shop.session.wait_for(USED_SLOTS, "0");
        shop.run(sql);
        costs_a_read(&mut shop, &postgres, id, reason);
    }
    // The log has this change.
    shop.run("TRUNCATE products; INSERT INTO products VALUES ('only', 7)");
    let (ids, source, _) = restart(&postgres);
    wait_until(&source, "emptied", || !has(&ids, 1) && has(&ids, 7));
    source.stop();
    // As if the server had lost the end of its log.
    let path = dir.path("a");
    rewrite(&path, |snapshot| {
        let mut end: serde_json::Value = serde_json::from_slice(&snapshot.end).unwrap();
        end["position"] = "FFFF/0".into();
        snapshot.end = end.to_string().into_bytes();
    });
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
    let postgres = continued(&shop.options, &dir.path("a"));
    restart(&postgres).1.stop();
    let status = "SELECT wal_status FROM pg_replication_slots";
    for _ in 0..20 {
        shop.run("SELECT pg_switch_wal(); CREATE TABLE t (); DROP TABLE t; CHECKPOINT");
        if shop.session.value(status) == "lost" {
            break;
        }
    }
    assert_eq!(shop.session.value(status), "lost");
    shop.run("INSERT INTO products VALUES ('new', 101); DELETE FROM products WHERE id = 7");
    let (ids, source, status) = restart(&postgres);
    reads_all(&status, "the replication slot no longer has the changes after it");
    assert!(knows(&ids, 101) && !has(&ids, 7));
    source.stop();
    goes_on(&restart(&postgres).2);
}

#[test]
fn a_slot_that_the_source_must_not_use_is_refused() {
    let (_server, mut shop, dir, postgres) = lasting_shop(100);
    // Another source has the slot.
    let (ids, source, _) = restart(&postgres);
    refused(&postgres, "another process uses the replication slot tamis_guard");
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 101)", &[101], &[]);
    source.stop();
    shop.session.wait_for(USED_SLOTS, "0");
    shop.run("SELECT pg_drop_replication_slot('tamis_guard')");
    for create in [
        "pg_create_physical_replication_slot('tamis_guard')",
        "pg_create_logical_replication_slot('tamis_guard', 'test_decoding')",
        "pg_create_logical_replication_slot('tamis_guard', 'pgoutput', false, true)",
    ] {
        shop.run(&format!("SELECT {create}"));
        refused(&postgres, "choose another name for `slot`");
        assert_eq!(shop.session.value(SLOTS), "1", "the slot stays");
        shop.run("SELECT pg_drop_replication_slot('tamis_guard')");
    }
    // A server that would keep its whole log.
    let (_server, mut shop) = own_shop(&[], 0);
    let postgres = continued(&shop.options, &dir.path("b"));
    let source = start(&id_set(integers()), &postgres);
    let status = wait(&source, "refused", |status| status.last_error.is_some());
    let error = status.last_error.unwrap();
    let sql = error.split_once("run: ").unwrap_or_else(|| panic!("{error}")).1;
    for statement in sql.split("; ") {
        shop.run(statement);
    }
    wait_synced(&source);
}

#[test]
fn a_user_with_the_documented_privileges_can_have_a_permanent_slot() {
    let (server, mut shop, dir, _) = lasting_shop(100);
    shop.run("CREATE USER guard REPLICATION PASSWORD 'geheim'; GRANT SELECT ON products TO guard");
    // Two ways to the server.
    let (proxy, other) = (TcpProxy::start(server.address()), TcpProxy::start(server.address()));
    let hosts = format!("{},{}", proxy.address, other.address);
    let options = at(&shop.as_user("guard:geheim"), hosts);
    let postgres = continued(&options, &dir.path("a"));
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
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 101)", &[101], &[]);
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {process}");
    shop.session.wait_for(&count, "0");
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
    proxy.heal();
    source.stop();
    // It also drops a slot that it cannot use, and creates it.
    shop.session.wait_for(USED_SLOTS, "0");
    shop.run("INSERT INTO products VALUES ('new', 102)");
    shop.run("SELECT pg_replication_slot_advance('tamis_guard', pg_current_wal_insert_lsn())");
    let (_, _source, status) = restart(&postgres);
    reads_all(&status, "no longer has the changes after it");
}

#[test]
fn a_snapshot_that_is_refused_is_not_used_later() {
    let (_server, mut shop, dir, postgres) = lasting_shop(100);
    let path = dir.path("a");
    restart(&postgres).1.stop();
    shop.session.wait_for(USED_SLOTS, "0");
    shop.run("SELECT pg_drop_replication_slot('tamis_guard')");
    shop.run("INSERT INTO products VALUES ('unseen', 101)");
    // The read of all ids waits for this transaction.
    let mut other = shop.open();
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
    let (_server, mut shop, _dir, postgres) = lasting_shop(100);
    shop.run(
        "CREATE SCHEMA other; DROP PUBLICATION tamis_guard;
        CREATE PUBLICATION tamis_guard FOR TABLES IN SCHEMA public",
    );
    restart(&postgres).1.stop();
    for (before, after) in [
        ("ALTER TABLE products SET SCHEMA other", "ALTER TABLE other.products SET SCHEMA public"),
        ("ALTER TABLE products SET UNLOGGED", "ALTER TABLE products SET LOGGED"),
    ] {
        let products = if before.contains("SCHEMA") { "other.products" } else { "products" };
        let id = shop.session.value(&format!(
            "{before}; INSERT INTO {products} SELECT 'unseen', max(id) + 1 FROM {products}
            RETURNING id"
        ));
        shop.run(after);
        let (ids, source, status) = restart(&postgres);
        reads_all(&status, "the table or its publication is another one");
        assert!(knows(&ids, id), "{before}");
        source.stop();
    }
}
