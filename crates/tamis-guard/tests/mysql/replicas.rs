//! Replicas as sources: their lag counts.

use std::time::Duration;

use tamis_guard::SyncState;
use tamis_guard::source::{MysqlOptions, PollOptions};

use crate::checker::{id_set, integers, knows, wait, wait_synced, wait_until};
use crate::server::{Server, Session, Shop, start};

/// Starts a primary with a table of products, and a replica of it. Returns the options for the replica.
fn replicated(primary: &Server) -> (Shop, Server, MysqlOptions) {
    let replica = Server::start_with(&["--server-id=2", "--log-slave-updates=ON"]);
    let mut session = Session::open(&replica.url(""));
    session.run(&format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='root', \
         MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, MASTER_CONNECT_RETRY=1",
        primary.address().port()
    ));
    session.run("START SLAVE");
    let mut shop = primary.shop();
    shop.fill(1, 10);
    let end = std::time::Instant::now() + Duration::from_secs(30);
    let count = format!("SELECT id FROM {}.products", shop.name);
    while session.try_run(&count).is_err() || session.texts(&count).len() < 10 {
        assert!(std::time::Instant::now() < end, "the replica does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
    let options = MysqlOptions { url: replica.url(&shop.name), ..shop.options.clone() };
    (shop, replica, options)
}

#[test]
fn a_replica_that_has_stopped_makes_the_set_stale() {
    let primary = Server::start();
    let (mut shop, replica, options) = replicated(&primary);
    let mut session = Session::open(&replica.url(""));
    let poll = Some(PollOptions::default());
    for options in [options.clone(), MysqlOptions { poll, ..options.clone() }] {
        let ids = id_set(integers());
        let source = start(&ids, &options);
        wait_synced(&source);
        for (statement, id) in
            [("STOP SLAVE", 50), ("STOP SLAVE IO_THREAD", 51), ("STOP SLAVE SQL_THREAD", 52)]
        {
            session.run(statement);
            shop.session.run(&format!("INSERT INTO products VALUES ('new', {id})"));
            wait(&source, statement, |status| {
                let error = status.last_error.as_deref().unwrap_or_default();
                status.state == SyncState::Stale && error.contains("replication has stopped")
            });
            assert!(knows(&ids, id), "{statement}");
            session.run("START SLAVE");
            wait_synced(&source);
            wait_until(&source, "the row", || knows(&ids, id));
            shop.session.run(&format!("DELETE FROM products WHERE id = {id}"));
        }
    }
    session.run("STOP SLAVE");
    let ids = id_set(integers());
    let source = start(&ids, &options);
    wait(&source, "refused", |status| status.failures > 0);
    assert_eq!(ids.state(), SyncState::Warming);
}

#[test]
fn the_lag_of_a_replica_counts() {
    let primary = Server::start();
    let (mut shop, replica, options) = replicated(&primary);
    let ids = id_set(integers());
    let source = start(&ids, &options);
    wait_synced(&source);
    // The replica applies a row only when this transaction ends.
    let mut session = Session::open(&options.url);
    session.run("BEGIN");
    session.run("SELECT id FROM products WHERE id = 5 FOR UPDATE");
    shop.session.run("UPDATE products SET name = 'waits' WHERE id = 5");
    shop.session.run("INSERT INTO products VALUES ('new', 60)");
    wait(&source, "stale", |status| status.state == SyncState::Stale);
    assert!(knows(&ids, 60));
    session.run("COMMIT");
    wait_synced(&source);
    wait_until(&source, "applied", || knows(&ids, 60));
    drop(replica);
}

#[test]
fn a_user_who_may_not_ask_a_replica_for_its_lag_is_refused() {
    let primary = Server::start();
    let (_shop, replica, options) = replicated(&primary);
    let mut session = Session::open(&replica.url(""));
    session.run("CREATE USER watcher IDENTIFIED BY 'geheim'");
    session.run("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO watcher");
    let url = options.url.replace("root@", "watcher:geheim@");
    let watcher = MysqlOptions { url, ..options };
    let poll = Some(PollOptions::default());
    for running in [true, false] {
        if !running {
            session.run("STOP SLAVE");
        }
        for options in [watcher.clone(), MysqlOptions { poll: poll.clone(), ..watcher.clone() }] {
            let source = start(&id_set(integers()), &options);
            wait(&source, "refused", |status| {
                let error = status.last_error.as_deref().unwrap_or_default();
                error.contains("GRANT SLAVE MONITOR ON *.* TO 'watcher'@'%'")
            });
        }
    }
    session.run("START SLAVE");
    session.run("GRANT SLAVE MONITOR ON *.* TO watcher");
    wait_synced(&start(&id_set(integers()), &watcher));
}
