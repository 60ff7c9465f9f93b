//! Rows that the log and the read show in an unusual way. None of them is lost.

use std::thread;
use std::time::{Duration, Instant};

use tamis_guard::source::MysqlOptions;
use tamis_guard::{IdType, SyncState};
use tamis_testing::join;

use crate::checker::{has, id_set, integers, knows, wait, wait_synced, wait_until};
use crate::server::{Server, Session, start, text};
use crate::stories::shop;
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_uuid_that_ends_in_zeros_is_an_id() {
    // On a server of its own: no transaction of another test causes a further read.
    let server = Server::start();
    let mut shop = server.shop();
    shop.session.run("CREATE TABLE uuids (id BINARY(16) PRIMARY KEY)");
    shop.session.run("CREATE TABLE longer (id VARBINARY(16) PRIMARY KEY)");
    let of = |table: &str| MysqlOptions { table: table.to_owned(), ..shop.options.clone() };
    let (fixed, longer) = (id_set(IdType::Uuid), id_set(IdType::Uuid));
    let sources = [start(&fixed, &of("uuids")), start(&longer, &of("longer"))];
    sources.iter().for_each(|source| _ = wait_synced(source));
    let short = "cc".repeat(15);
    let [zero, full] = [format!("{}00", "bb".repeat(15)), format!("{short}00")];
    let none = "0".repeat(32);
    shop.session.run(&format!("INSERT INTO uuids VALUES (x'{zero}'), (x'{none}')"));
    wait_until(&sources[0], "inserted", || knows(&fixed, &zero) && knows(&fixed, &none));
    shop.session.run("DELETE FROM uuids");
    wait_until(&sources[0], "deleted", || !has(&fixed, &zero) && !has(&fixed, &none));
    // The log has all bytes of a VARBINARY: 15 bytes are another value, which is no UUID.
    shop.session.run(&format!("INSERT INTO longer VALUES (x'{full}'), (x'{short}')"));
    shop.session.run(&format!("DELETE FROM longer WHERE id = x'{short}'"));
    let last = "d".repeat(32);
    shop.session.run(&format!("INSERT INTO longer VALUES (x'{last}')"));
    wait_until(&sources[1], "the last row", || knows(&longer, &last));
    assert!(knows(&longer, &full));
    sources.iter().for_each(|source| assert_eq!(source.status().generations, 1));
}

/// Tests that a source refuses a database, with a text in its error.
pub fn refuses(mysql: &MysqlOptions, expected: &str) {
    let ids = id_set(integers());
    let source = start(&ids, mysql);
    let status = wait(&source, expected, |status| status.failures > 0);
    let error = status.last_error.unwrap();
    assert!(error.contains(expected) && !error.contains('\n'), "{expected}: {error}");
    assert_eq!(ids.state(), SyncState::Warming);
}

/// Creates a database with a table of products.
fn database(server: &Server, name: &str) -> MysqlOptions {
    let mut session = Session::open(&server.url(""));
    session.run(&format!("CREATE DATABASE {name}"));
    session.run(&format!("CREATE TABLE {name}.products (id BIGINT PRIMARY KEY)"));
    MysqlOptions::new(&server.url(name), "products", "id")
}

#[test]
fn databases_that_the_log_leaves_out_are_refused() {
    let server = Server::start_with(&["--binlog-ignore-db=hidden", "--binlog-ignore-db=secret"]);
    refuses(&database(&server, "secret"), "binlog_ignore_db");
    wait_synced(&start(&id_set(integers()), &database(&server, "seen")));
    let server = Server::start_with(&["--binlog-do-db=seen"]);
    refuses(&database(&server, "hidden"), "binlog_do_db");
    wait_synced(&start(&id_set(integers()), &database(&server, "seen")));
}

#[test]
fn a_replica_that_does_not_log_what_it_replicates_is_refused() {
    let primary = Server::start();
    let replica = Server::start_with(&["--server-id=2"]);
    let options = database(&replica, "mirror");
    wait_synced(&start(&id_set(integers()), &options));
    let mut session = Session::open(&options.url);
    session.run("CREATE USER watcher IDENTIFIED BY 'geheim'");
    session.run("GRANT SELECT ON mirror.* TO watcher");
    session.run("GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO watcher");
    session.run(&format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='root'",
        primary.address().port()
    ));
    refuses(&options, "log_slave_updates = ON");
    // Without the privilege to ask for the primary.
    session.run("START SLAVE SQL_THREAD");
    let url = options.url.replace("root@", "watcher:geheim@");
    refuses(&MysqlOptions { url, ..options }, "log_slave_updates = ON");
}

#[test]
fn a_view_is_refused() {
    let mut shop = shop();
    shop.session.run("CREATE VIEW shown AS SELECT * FROM products");
    let view = MysqlOptions { table: "shown".to_owned(), ..shop.options.clone() };
    refuses(&view, "is a VIEW");
}

#[test]
fn an_id_of_several_rows_passes_after_one_is_deleted() {
    let mut shop = shop();
    shop.session.run("CREATE TABLE offers (n INT PRIMARY KEY, id BIGINT, KEY (id))");
    shop.session.run("INSERT INTO offers VALUES (1, 5), (2, 5), (3, 6), (4, 6)");
    let ids = id_set(integers());
    let offers = MysqlOptions { table: "offers".to_owned(), ..shop.options.clone() };
    let source = start(&ids, &offers);
    wait_synced(&source);
    shop.session.run("DELETE FROM offers WHERE n = 1");
    shop.session.run("UPDATE offers SET id = 7 WHERE n = 3");
    wait_until(&source, "changed", || knows(&ids, 7));
    assert!(knows(&ids, 5) && knows(&ids, 6));
    shop.session.run("DELETE FROM offers WHERE id = 5");
    source.rebuild();
    wait_until(&source, "read again", || !has(&ids, 5));
    assert!(knows(&ids, 6) && knows(&ids, 7));
    // With a unique index, a deletion is known at once.
    shop.session.run("ALTER TABLE offers ADD UNIQUE (id)");
    shop.session.run("INSERT INTO offers VALUES (8, 8)");
    wait_until(&source, "read after the change", || knows(&ids, 8));
    wait_synced(&source);
    shop.session.run("DELETE FROM offers WHERE id = 7");
    wait_until(&source, "deleted", || !has(&ids, 7));
}

#[test]
fn a_deletion_that_is_rolled_back_in_the_log_deletes_nothing() {
    let mut shop = shop();
    shop.fill(1, 10);
    shop.session.run("CREATE TABLE notes (a INT) ENGINE=MyISAM");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    let transactions: [&[&str]; 3] = [
        &["DELETE FROM products WHERE id = 5", "CREATE TEMPORARY TABLE x (a INT)", "ROLLBACK"],
        &["DELETE FROM products WHERE id = 6", "INSERT INTO notes VALUES (1)", "ROLLBACK"],
        &[
            "SAVEPOINT a",
            "DELETE FROM products WHERE id = 7",
            "INSERT INTO notes VALUES (1)",
            "ROLLBACK TO a",
            "COMMIT",
        ],
    ];
    for (last, statements) in (100..).zip(transactions) {
        shop.session.run("BEGIN");
        statements.iter().for_each(|statement| shop.session.run(statement));
        shop.session.run(&format!("INSERT INTO products VALUES ('last', {last})"));
        wait_until(&source, "a later row", || knows(&ids, last));
        for id in 5..8 {
            assert!(knows(&ids, id), "{id} after {statements:?}");
        }
    }
    shop.session.run("DELETE FROM products WHERE id = 5");
    wait_until(&source, "deleted", || !has(&ids, 5));
}

/// Inserts an id in a transaction in two phases, and ends the first phase.
fn prepare(session: &mut Session, id: u64) {
    session.run(&format!("XA START 'before{id}'"));
    session.run(&format!("INSERT INTO products VALUES ('prepared', {id})"));
    session.run(&format!("XA END 'before{id}'"));
    session.run(&format!("XA PREPARE 'before{id}'"));
}

#[test]
fn a_transaction_that_was_prepared_before_the_read_is_not_lost() {
    let mut shop = shop();
    shop.fill(1, 10);
    prepare(&mut shop.session, 50);
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    assert!(!has(&ids, 50));
    shop.session.run("XA COMMIT 'before50'");
    wait_until(&source, "committed after the read", || knows(&ids, 50));
    wait_synced(&source);
    // A further read between the two phases.
    prepare(&mut shop.session, 60);
    wait_until(&source, "prepared", || knows(&ids, 60));
    let generations = source.status().generations;
    source.rebuild();
    wait(&source, "read again", |status| status.generations > generations);
    shop.session.run("XA COMMIT 'before60'");
    shop.session.run("INSERT INTO products VALUES ('last', 61)");
    wait_until(&source, "committed after the rebuild", || knows(&ids, 60) && knows(&ids, 61));
    // The source has seen both phases, so it need not read all ids.
    wait_synced(&source);
    let generations = source.status().generations;
    prepare(&mut shop.session, 70);
    shop.session.run("XA COMMIT 'before70'");
    shop.session.run("INSERT INTO products VALUES ('last', 71)");
    wait_until(&source, "both phases", || knows(&ids, 70) && knows(&ids, 71));
    assert_eq!(source.status().generations, generations);
}

#[test]
fn the_first_read_waits_for_a_commit_that_may_not_be_visible_yet() {
    let mut shop = shop();
    prepare(&mut shop.session, 80);
    shop.session.run("XA COMMIT 'before80'");
    let begun = Instant::now();
    let ids = id_set(integers());
    wait_synced(&start(&ids, &shop.options));
    // The storage engine has a second for the commit after the log has it.
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn a_connection_that_reaches_another_server_is_refused() {
    let servers = [Server::start(), Server::start()];
    let options = servers.each_ref().map(|server| database(server, "shop"));
    // As a load balancer does: the server that is checked is not the one that is followed.
    let proxy = TcpProxy::in_turn(servers.each_ref().map(Server::address).to_vec());
    let address = servers[0].address().to_string();
    let url = options[0].url.replace(&address, &proxy.address.to_string());
    let ids = id_set(integers());
    let source = start(&ids, &MysqlOptions { url, ..options[0].clone() });
    wait(&source, "refused", |status| {
        status.last_error.as_ref().is_some_and(|error| error.contains("another server"))
    });
    assert_eq!((ids.state(), source.status().generations), (SyncState::Warming, 0));
}

#[test]
fn a_transaction_that_is_in_the_log_before_it_is_visible_is_not_lost() {
    let server = Server::start_with(&[
        "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
        "--rpl-semi-sync-master-timeout=3000",
        "--rpl-semi-sync-master-wait-no-slave=ON",
    ]);
    let mut shop = server.shop();
    shop.fill(1, 10);
    // Commits a row, and returns when the server has waited for a replica in vain.
    let hang = |id: u64| {
        let url = shop.options.url.clone();
        thread::spawn(move || {
            let mut session = Session::open(&url);
            session.run("SET GLOBAL rpl_semi_sync_master_enabled = ON");
            session.run(&format!("INSERT INTO products VALUES ('late', {id})"));
        })
    };
    let late = hang(9001);
    thread::sleep(Duration::from_millis(500));
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    join("the session that waits for a replica", late);
    shop.session.run("INSERT INTO products VALUES ('last', 9002)");
    wait_until(&source, "a later row", || knows(&ids, 9002));
    assert!(knows(&ids, 9001), "in the log before the read");
    shop.session.run("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
    // The log shows it to the generation before.
    let late = hang(9003);
    wait_until(&source, "logged", || knows(&ids, 9003));
    source.rebuild();
    wait(&source, "read again", |status| status.generations == 2);
    join("the session that waits for a replica", late);
    shop.session.run("INSERT INTO products VALUES ('last', 9004)");
    wait_until(&source, "a later row", || knows(&ids, 9004));
    assert!(knows(&ids, 9003), "in the log before the rebuild");
}

#[test]
fn settings_of_the_server_do_not_change_the_ids() {
    let server = Server::start_with(&[
        "--transaction-isolation=READ-UNCOMMITTED",
        "--skip-character-set-client-handshake",
        "--character-set-server=latin1",
        "--sql-mode=STRICT_ALL_TABLES,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES",
    ]);
    let mut shop = server.shop();
    shop.session.run("SET NAMES utf8mb4");
    shop.session.run("CREATE TABLE words (id CHAR(10) CHARACTER SET utf8mb4 PRIMARY KEY)");
    shop.session.run("INSERT INTO words VALUES ('产品'), ('short'), ('kept')");
    let mut other = Session::open(&shop.options.url);
    other.run("BEGIN");
    other.run("DELETE FROM words WHERE id = 'kept'");
    let ids = id_set(text());
    let words = MysqlOptions { table: "words".to_owned(), ..shop.options.clone() };
    let source = start(&ids, &words);
    wait_synced(&source);
    other.run("ROLLBACK");
    shop.session.run("INSERT INTO words VALUES ('last')");
    wait_until(&source, "a later row", || knows(&ids, "last"));
    for id in ["产品", "short", "kept"] {
        assert!(knows(&ids, id), "{id}");
    }
}
