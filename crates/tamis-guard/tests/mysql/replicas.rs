//! Replicas as sources: a set knows only what the replica has applied.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tamis_guard::SyncState;
use tamis_guard::source::MysqlOptions;
use tamis_testing::wait_until as wait_for_server;

use crate::checker::{has, knows, wait_broken, wait_stale, wait_synced, wait_until};
use crate::server::{Server, Session, Shop};
use crate::stories::follow::{follow, polled, refused, reread};
use crate::tcp_proxy::TcpProxy;

/// Lets a server follow the log of the server at an address, from the begin of a file on.
fn replicate(session: &mut Session, primary: SocketAddr, file: &str) {
    session.run(&format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='root', \
         MASTER_LOG_FILE='{file}', MASTER_LOG_POS=4, MASTER_CONNECT_RETRY=1; START SLAVE",
        primary.port()
    ));
}

/// Starts a primary with a table of products, and a replica that reaches it at `address`. Returns the options for the
/// replica.
fn replicated_at(primary: &Server, address: SocketAddr) -> (Shop, Server, Session, MysqlOptions) {
    let replica = Server::start_with(&["--server-id=2", "--log-slave-updates=ON"]);
    let mut session = replica.session();
    replicate(&mut session, address, "binlog.000001");
    let mut shop = primary.shop();
    shop.fill(1, 10);
    let count = format!("SELECT id FROM {}.products", shop.name);
    wait_for_server("the replica has the rows", || {
        session.try_run(&count).is_ok() && session.texts(&count).len() == 10
    });
    let url = replica.url(&shop.name);
    let options = MysqlOptions { url, primary: Some(primary.url("")), ..shop.options.clone() };
    (shop, replica, session, options)
}

/// Returns options that follow the log, and options that read all ids again and again.
fn both(options: &MysqlOptions) -> [MysqlOptions; 2] {
    [options.clone(), reread(options)]
}

fn replicated(primary: &Server) -> (Shop, Server, Session, MysqlOptions) {
    replicated_at(primary, primary.address())
}

#[test]
fn a_receiver_that_is_behind_makes_the_set_stale() {
    let primary = Server::start();
    let proxy = TcpProxy::start(primary.address());
    let (mut shop, _replica, mut session, options) = replicated_at(&primary, proxy.address);
    let sets = both(&options).map(|options| follow(&options));
    // The replica waits for bytes, and says that it runs and is 0 seconds behind.
    proxy.partition();
    shop.run("INSERT INTO products VALUES ('new', 60)");
    // Beyond the sync delay.
    sleep(Duration::from_millis(1500));
    assert!(session.try_run("SELECT * FROM information_schema.TABLES LIMIT 1").is_ok());
    for (ids, source) in &sets {
        assert!(knows(ids, 60), "{:?}", source.status());
        assert_eq!(source.status().state, SyncState::Stale);
    }
    proxy.heal();
    for (ids, source) in &sets {
        wait_synced(source);
        wait_until(source, "the row", || has(ids, 60));
    }
}

#[test]
fn a_row_that_a_replica_gets_after_the_overlap_is_found_by_a_poll() {
    let primary = Server::start();
    let proxy = TcpProxy::start(primary.address());
    let (mut shop, _replica, _, options) = replicated_at(&primary, proxy.address);
    shop.run(
        "CREATE TABLE items (id BIGINT PRIMARY KEY, at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), INDEX (at))",
    );
    shop.run("INSERT INTO items (id) VALUES (1)");
    let mut session = Session::open(&options.url);
    wait_for_server("the replica has the table", || {
        session.try_run("SELECT * FROM items").is_ok()
            && !session.texts("SELECT id FROM items").is_empty()
    });
    let overlap = Duration::from_secs(2);
    let items = MysqlOptions { table: "items".to_owned(), ..options };
    let (ids, source) = follow(&polled(&items, "at", 2000));
    let mut late = shop.open();
    late.run("START TRANSACTION");
    let taken = Instant::now();
    late.run("INSERT INTO items (id) VALUES (2)");
    shop.after(&ids, &source, "INSERT INTO items (id) VALUES (3)", &[3], &[]);
    proxy.partition();
    late.run("COMMIT");
    assert!(taken.elapsed() < overlap, "the machine is too slow for this test");
    // All samples of the change column within the overlap have the larger value.
    sleep(overlap + Duration::from_millis(500));
    proxy.heal();
    shop.after(&ids, &source, "INSERT INTO items (id) VALUES (4)", &[4], &[]);
    assert!(has(&ids, 2), "{:?}", source.status());
    assert_eq!(source.status().generations, 1);
}

#[test]
fn a_replica_whose_primary_the_guard_cannot_ask_is_refused() {
    let primary = Server::start();
    let (_shop, replica, _, options) = replicated(&primary);
    let second = Server::start_with(&["--server-id=3"]);
    for (asked, expected) in [
        (None, "primary = \"mysql://user:password@host:3306\""),
        (Some(second.url("")), "has the server_id 3, and the primary of the replica has 1"),
        (Some(replica.url("")), "has the server_id 2"),
        (Some("mysql://root@127.0.0.1:1/".to_owned()), "the server in `primary`: "),
    ] {
        let options = MysqlOptions { primary: asked, ..options.clone() };
        for options in both(&options) {
            refused(&options, expected);
        }
    }
}

/// Lets a server follow the log of another one from a new file on.
fn follow_log(session: &mut Session, server: &Server) {
    let mut primary = server.session();
    primary.run("FLUSH BINARY LOGS");
    let file = primary.logs().pop().unwrap();
    replicate(session, server.address(), &file);
}

#[test]
fn two_servers_may_be_replicas_of_each_other_and_a_third_one_is_refused() {
    let first = Server::start_with(&["--log-slave-updates=ON"]);
    let (mut shop, second, _, options) = replicated(&first);
    follow_log(&mut first.session(), &second);
    for (server, other, id) in [(&first, &second, 60), (&second, &first, 61)] {
        let url = server.url(&shop.name);
        let primary = Some(other.url(""));
        let (ids, source) = follow(&MysqlOptions { url, primary, ..options.clone() });
        shop.run(&format!("INSERT INTO products VALUES ('new', {id})"));
        wait_until(&source, "the row", || has(&ids, id));
        wait_synced(&source);
    }
    let third = Server::start_with(&["--server-id=3", "--log-slave-updates=ON"]);
    let mut session = third.session();
    session.run(&format!("CREATE DATABASE {}", shop.name));
    session.run(&format!(
        "CREATE TABLE {}.products (name VARCHAR(50), id BIGINT PRIMARY KEY)",
        shop.name
    ));
    follow_log(&mut session, &second);
    let (url, primary) = (third.url(&shop.name), Some(second.url("")));
    refused(&MysqlOptions { url, primary, ..options }, "is a replica itself");
}

#[test]
fn a_primary_that_becomes_a_replica_makes_the_set_stale() {
    let primary = Server::start_with(&["--log-slave-updates=ON"]);
    let (mut shop, _replica, _, options) = replicated(&primary);
    let (_, source) = follow(&options);
    let third = Server::start_with(&["--server-id=3"]);
    follow_log(&mut shop.session, &third);
    wait_broken(&source, "is a replica itself");
    shop.run("STOP SLAVE");
    shop.run("RESET SLAVE ALL");
    wait_synced(&source);
}

#[test]
fn a_replica_that_applies_several_domains_out_of_order_is_refused() {
    let primary = Server::start();
    let (mut shop, _replica, mut session, options) = replicated(&primary);
    session.run("STOP SLAVE");
    session.run("SET GLOBAL slave_parallel_threads = 2");
    session.run("CHANGE MASTER TO MASTER_USE_GTID = slave_pos");
    session.run("START SLAVE");
    let (ids, source) = follow(&options);
    shop.run("SET SESSION gtid_domain_id = 7");
    shop.run("INSERT INTO products VALUES ('new', 60)");
    wait_broken(&source, "transactions of 2 GTID domains");
    session.run("STOP SLAVE");
    session.run("SET GLOBAL slave_parallel_threads = 0");
    session.run("START SLAVE");
    wait_synced(&source);
    wait_until(&source, "the row", || has(&ids, 60));
}

#[test]
fn a_replica_that_has_stopped_makes_the_set_stale() {
    let primary = Server::start();
    let (mut shop, _replica, mut session, options) = replicated(&primary);
    for options in both(&options) {
        let (ids, source) = follow(&options);
        for (statement, id) in
            [("STOP SLAVE", 50), ("STOP SLAVE IO_THREAD", 51), ("STOP SLAVE SQL_THREAD", 52)]
        {
            session.run(statement);
            shop.run(&format!("INSERT INTO products VALUES ('new', {id})"));
            wait_broken(&source, "replication has stopped");
            assert!(knows(&ids, id), "{statement}");
            session.run("START SLAVE");
            wait_synced(&source);
            wait_until(&source, "the row", || knows(&ids, id));
            shop.run(&format!("DELETE FROM products WHERE id = {id}"));
        }
    }
    session.run("STOP SLAVE");
    refused(&options, "replication has stopped");
}

#[test]
fn the_lag_of_a_replica_counts() {
    let primary = Server::start();
    let (mut shop, _replica, _, options) = replicated(&primary);
    let (ids, source) = follow(&options);
    // The replica applies a row only when this transaction ends.
    let mut session = Session::open(&options.url);
    session.run("BEGIN");
    session.run("SELECT id FROM products WHERE id = 5 FOR UPDATE");
    shop.run("UPDATE products SET name = 'waits' WHERE id = 5");
    shop.run("INSERT INTO products VALUES ('new', 60)");
    wait_stale(&source);
    assert!(knows(&ids, 60));
    session.run("COMMIT");
    wait_synced(&source);
    wait_until(&source, "applied", || knows(&ids, 60));
}

#[test]
fn a_user_who_may_not_ask_a_replica_for_its_lag_is_refused() {
    let primary = Server::start();
    let (_shop, _replica, mut session, options) = replicated(&primary);
    session.create_follower("watcher", "*.*");
    let url = options.url.replace("root@", "watcher:geheim@");
    let watcher = MysqlOptions { url, ..options };
    for running in [true, false] {
        if !running {
            session.run("STOP SLAVE");
        }
        for options in both(&watcher) {
            refused(&options, "GRANT SLAVE MONITOR ON *.* TO 'watcher'@'%'");
        }
    }
    session.run("START SLAVE");
    session.run("GRANT SLAVE MONITOR ON *.* TO watcher");
    follow(&watcher);
}

#[test]
fn a_replica_with_a_filter_that_leaves_out_the_table_is_refused() {
    let primary = Server::start();
    let (mut shop, _replica, mut session, options) = replicated(&primary);
    let (ids, source) = follow(&options);
    let mut filter = |pattern: &str| {
        session.run("STOP SLAVE");
        session.run(&format!("SET GLOBAL replicate_wild_ignore_table = '{pattern}'"));
        session.run("START SLAVE");
    };
    filter("mysql.%");
    wait_synced(&source);
    filter("mysql.%,%.prod%");
    shop.run("INSERT INTO products VALUES ('new', 60)");
    wait_broken(&source, "Replicate_Wild_Ignore_Table");
    assert!(knows(&ids, 60));
    refused(&options, "Replicate_Wild_Ignore_Table");
}
