//! Rows that the log and the read show in an unusual way. None of them is lost.

use std::thread;
use std::time::{Duration, Instant};

use tamis_guard::IdType;
use tamis_guard::source::MysqlOptions;
use tamis_testing::join;

use crate::checker::{has, knows, text, wait, wait_synced, wait_until};
use crate::server::{Server, Session};
use crate::stories::follow::{at, follow, follow_as, own_shop, refused, shop, shop_with};
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_uuid_that_ends_in_zeros_is_an_id() {
    // On a server of its own: no transaction of another test causes a further read.
    let (_server, mut shop) = own_shop(&[], 0);
    shop.run("CREATE TABLE uuids (id BINARY(16) PRIMARY KEY)");
    shop.run("CREATE TABLE longer (id VARBINARY(16) PRIMARY KEY)");
    let (fixed, source) = follow_as(IdType::Uuid, &shop.table("uuids"));
    let (longer, other) = follow_as(IdType::Uuid, &shop.table("longer"));
    let short = "cc".repeat(15);
    let [zero, full] = [format!("{}00", "bb".repeat(15)), format!("{short}00")];
    let none = "0".repeat(32);
    shop.run(&format!("INSERT INTO uuids VALUES (x'{zero}'), (x'{none}')"));
    wait_until(&source, "inserted", || knows(&fixed, &zero) && knows(&fixed, &none));
    shop.run("DELETE FROM uuids");
    wait_until(&source, "deleted", || !has(&fixed, &zero) && !has(&fixed, &none));
    // The log has all bytes of a VARBINARY: 15 bytes are another value, which is no UUID.
    shop.run(&format!("INSERT INTO longer VALUES (x'{full}'), (x'{short}')"));
    shop.run(&format!("DELETE FROM longer WHERE id = x'{short}'"));
    let last = "d".repeat(32);
    shop.run(&format!("INSERT INTO longer VALUES (x'{last}')"));
    wait_until(&other, "the last row", || knows(&longer, &last));
    assert!(knows(&longer, &full));
    assert_eq!((source.status().generations, other.status().generations), (1, 1));
}

/// Creates a database with a table of products.
fn database(server: &Server, name: &str) -> MysqlOptions {
    let mut session = server.session();
    session.run(&format!("CREATE DATABASE {name}"));
    session.run(&format!("CREATE TABLE {name}.products (id BIGINT PRIMARY KEY)"));
    MysqlOptions::new(&server.url(name), "products", "id")
}

#[test]
fn databases_that_the_log_leaves_out_are_refused() {
    let server = Server::start_with(&["--binlog-ignore-db=hidden", "--binlog-ignore-db=secret"]);
    refused(&database(&server, "secret"), "binlog_ignore_db");
    follow(&database(&server, "seen"));
    let server = Server::start_with(&["--binlog-do-db=seen"]);
    refused(&database(&server, "hidden"), "binlog_do_db");
    follow(&database(&server, "seen"));
}

#[test]
fn a_replica_that_does_not_log_what_it_replicates_is_refused() {
    let primary = Server::start();
    let replica = Server::start_with(&["--server-id=2"]);
    let options = database(&replica, "mirror");
    follow(&options);
    let mut session = Session::open(&options.url);
    session.create_follower("watcher", "mirror.*");
    session.run(&format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='root'",
        primary.address().port()
    ));
    refused(&options, "log_slave_updates = ON");
    // Without the privilege to ask for the primary.
    session.run("START SLAVE SQL_THREAD");
    let url = options.url.replace("root@", "watcher:geheim@");
    refused(&MysqlOptions { url, ..options }, "log_slave_updates = ON");
}

#[test]
fn an_id_of_several_rows_passes_after_one_is_deleted() {
    let mut shop = shop();
    shop.run("CREATE TABLE offers (n INT PRIMARY KEY, id BIGINT, KEY (id))");
    shop.run("INSERT INTO offers VALUES (1, 5), (2, 5), (3, 6), (4, 6)");
    let (ids, source) = follow(&shop.table("offers"));
    shop.run("DELETE FROM offers WHERE n = 1");
    shop.after(&ids, &source, "UPDATE offers SET id = 7 WHERE n = 3", &[7], &[]);
    assert!(knows(&ids, 5) && knows(&ids, 6));
    shop.run("DELETE FROM offers WHERE id = 5");
    source.rebuild();
    wait_until(&source, "read again", || !has(&ids, 5));
    assert!(knows(&ids, 6) && knows(&ids, 7));
    // With a unique index, a deletion is known at once.
    shop.run("ALTER TABLE offers ADD UNIQUE (id)");
    shop.after(&ids, &source, "INSERT INTO offers VALUES (8, 8)", &[8], &[]);
    wait_synced(&source);
    shop.after(&ids, &source, "DELETE FROM offers WHERE id = 7", &[], &[7]);
}

#[test]
fn a_deletion_that_is_rolled_back_in_the_log_deletes_nothing() {
    let mut shop = shop_with(10);
    shop.run("CREATE TABLE notes (a INT) ENGINE=MyISAM");
    let (ids, source) = shop.follow();
    for (last, statements) in (100..).zip([
        "DELETE FROM products WHERE id = 5; CREATE TEMPORARY TABLE x (a INT); ROLLBACK",
        "DELETE FROM products WHERE id = 6; INSERT INTO notes VALUES (1); ROLLBACK",
        "SAVEPOINT a; DELETE FROM products WHERE id = 7; INSERT INTO notes VALUES (1);
        ROLLBACK TO a; COMMIT",
    ]) {
        shop.run(&format!("BEGIN; {statements}"));
        shop.run(&format!("INSERT INTO products VALUES ('last', {last})"));
        wait_until(&source, "a later row", || knows(&ids, last));
        for id in 5..8 {
            assert!(knows(&ids, id), "{id} after {statements:?}");
        }
    }
    shop.after(&ids, &source, "DELETE FROM products WHERE id = 5", &[], &[5]);
}

/// Inserts an id in a transaction in two phases, and ends the first phase.
fn prepare(session: &mut Session, id: u64) {
    session.run(&format!(
        "XA START 'before{id}'; INSERT INTO products VALUES ('prepared', {id});
        XA END 'before{id}'; XA PREPARE 'before{id}'"
    ));
}

#[test]
fn a_transaction_that_was_prepared_before_the_read_is_not_lost() {
    let mut shop = shop_with(10);
    prepare(&mut shop.session, 50);
    let (ids, source) = shop.follow();
    assert!(!has(&ids, 50));
    shop.after(&ids, &source, "XA COMMIT 'before50'", &[50], &[]);
    wait_synced(&source);
    // A further read between the two phases.
    prepare(&mut shop.session, 60);
    wait_until(&source, "prepared", || knows(&ids, 60));
    let generations = source.status().generations;
    source.rebuild();
    wait(&source, "read again", |status| status.generations > generations);
    shop.run("XA COMMIT 'before60'");
    shop.after(&ids, &source, "INSERT INTO products VALUES ('last', 61)", &[60, 61], &[]);
    // The source has seen both phases, so it need not read all ids.
    wait_synced(&source);
    let generations = source.status().generations;
    prepare(&mut shop.session, 70);
    shop.run("XA COMMIT 'before70'");
    shop.after(&ids, &source, "INSERT INTO products VALUES ('last', 71)", &[70, 71], &[]);
    assert_eq!(source.status().generations, generations);
}

#[test]
fn the_first_read_waits_for_a_commit_that_may_not_be_visible_yet() {
    let mut shop = shop();
    prepare(&mut shop.session, 80);
    shop.run("XA COMMIT 'before80'");
    let begun = Instant::now();
    shop.follow();
    // The storage engine has a second for the commit after the log has it.
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn a_connection_that_reaches_another_server_is_refused() {
    let servers = [Server::start(), Server::start()];
    let options = servers.each_ref().map(|server| database(server, "shop"));
    // As a load balancer does: the server that is checked is not the one that is followed.
    let proxy = TcpProxy::in_turn(servers.each_ref().map(Server::address).to_vec());
    refused(&at(&options[0], proxy.address), "another server");
}

#[test]
fn a_transaction_that_is_in_the_log_before_it_is_visible_is_not_lost() {
    let (_server, mut shop) = own_shop(
        &[
            "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
            "--rpl-semi-sync-master-timeout=3000",
            "--rpl-semi-sync-master-wait-no-slave=ON",
        ],
        10,
    );
    // Commits a row, and returns when the server has waited for a replica in vain.
    let url = shop.options.url.clone();
    let hang = |id: u64| {
        let url = url.clone();
        thread::spawn(move || {
            let mut session = Session::open(&url);
            session.run("SET GLOBAL rpl_semi_sync_master_enabled = ON");
            session.run(&format!("INSERT INTO products VALUES ('late', {id})"));
        })
    };
    let late = hang(9001);
    thread::sleep(Duration::from_millis(500));
    let (ids, source) = shop.follow();
    join("the session that waits for a replica", late);
    shop.after(&ids, &source, "INSERT INTO products VALUES ('last', 9002)", &[9002], &[]);
    assert!(knows(&ids, 9001), "in the log before the read");
    shop.run("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
    // The log shows it to the generation before.
    let late = hang(9003);
    wait_until(&source, "logged", || knows(&ids, 9003));
    source.rebuild();
    wait(&source, "read again", |status| status.generations == 2);
    join("the session that waits for a replica", late);
    shop.after(&ids, &source, "INSERT INTO products VALUES ('last', 9004)", &[9004], &[]);
    assert!(knows(&ids, 9003), "in the log before the rebuild");
}

#[test]
fn settings_of_the_server_do_not_change_the_ids() {
    let (_server, mut shop) = own_shop(
        &[
            "--transaction-isolation=READ-UNCOMMITTED",
            "--skip-character-set-client-handshake",
            "--character-set-server=latin1",
            "--sql-mode=STRICT_ALL_TABLES,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES",
        ],
        0,
    );
    shop.run("SET NAMES utf8mb4");
    shop.run("CREATE TABLE words (id CHAR(10) CHARACTER SET utf8mb4 PRIMARY KEY)");
    shop.run("INSERT INTO words VALUES ('产品'), ('short'), ('kept')");
    let mut other = shop.open();
    other.run("BEGIN");
    other.run("DELETE FROM words WHERE id = 'kept'");
    let (ids, source) = follow_as(text(), &shop.table("words"));
    other.run("ROLLBACK");
    shop.run("INSERT INTO words VALUES ('last')");
    wait_until(&source, "a later row", || knows(&ids, "last"));
    for id in ["产品", "short", "kept"] {
        assert!(knows(&ids, id), "{id}");
    }
}
