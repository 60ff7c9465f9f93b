//! Servers that are killed, and networks that break.

use std::time::Duration;

use tamis_guard::SyncState;
use tamis_guard::source::{MysqlOptions, Source};

use crate::checker::{
    Committed, check, has, id_set, integers, knows, wait, wait_synced, wait_until,
};
use crate::server::{Server, Session, start};
use crate::silent_server::stop_while_it_waits;
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_killed_server_loses_no_id() {
    let mut server = Server::start_with(&["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]);
    let mut shop = server.shop();
    shop.fill(1, 1000);
    let (ids, committed) = (id_set(integers()), Committed::default());
    committed.insert(1..=1000);
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    check(&source, &ids, &committed, || {
        for round in 0..3 {
            let first = 2000 + 100 * round;
            for id in first..first + 50 {
                shop.session.run(&format!("INSERT INTO products VALUES ('new', {id})"));
                committed.insert([id]);
            }
            server.kill();
            wait(&source, "stale", |status| status.state == SyncState::Stale);
            assert!(knows(&ids, 1), "the ids stay");
            server.run();
            shop.session = Session::open(&shop.options.url);
            wait_synced(&source);
        }
    });
    assert!(knows(&ids, 2249) && !has(&ids, 2250));
    // The log went on where it was.
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_broken_network_delays_the_knowledge_and_loses_nothing() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 1000);
    let proxy = TcpProxy::start(server.address());
    let url = shop.options.url.replace(&server.address().to_string(), &proxy.address.to_string());
    let (ids, committed) = (id_set(integers()), Committed::default());
    committed.insert(1..=1000);
    let source = start(&ids, &MysqlOptions { url, ..shop.options.clone() });
    wait_synced(&source);
    let mut next = 2000;
    check(&source, &ids, &committed, || {
        for round in 0..6 {
            for _ in 0..30 {
                shop.session.run(&format!("INSERT INTO products VALUES ('new', {next})"));
                committed.insert([next]);
                next += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            if round % 2 == 0 {
                proxy.cut();
            } else {
                proxy.partition();
                wait(&source, "stale", |status| status.state == SyncState::Stale);
                proxy.heal();
            }
            wait_synced(&source);
        }
    });
    wait_until(&source, "all are known", || (2000..next).all(|id| knows(&ids, id)));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_log_that_was_deleted_costs_a_read_of_all_ids() {
    let mut server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 100);
    let proxy = TcpProxy::start(server.address());
    let url = shop.options.url.replace(&server.address().to_string(), &proxy.address.to_string());
    let ids = id_set(integers());
    let source = start(&ids, &MysqlOptions { url, ..shop.options.clone() });
    wait_synced(&source);
    proxy.partition();
    shop.session.run("INSERT INTO products VALUES ('lost', 500)");
    shop.session.run("FLUSH BINARY LOGS");
    shop.session.run("INSERT INTO products VALUES ('lost', 501)");
    server.kill();
    server.run();
    let mut session = Session::open(&shop.options.url);
    session.run("PURGE BINARY LOGS TO 'binlog.000003'");
    proxy.heal();
    wait(&source, "read again", |status| status.generations == 2);
    wait_synced(&source);
    assert!(knows(&ids, 500) && knows(&ids, 501) && !has(&ids, 502));
    // Another server behind the address: its log is another one.
    session.run("SET GLOBAL server_id = 9");
    session.run("RESET MASTER");
    session.run("INSERT INTO products VALUES ('other', 600)");
    proxy.cut();
    wait(&source, "the other server", |status| status.generations == 3);
    wait_synced(&source);
    assert!(knows(&ids, 600) && !has(&ids, 601));
}

#[test]
fn a_source_that_waits_for_an_answer_can_be_stopped() {
    stop_while_it_waits(|address, options| {
        let mysql = MysqlOptions::new(&format!("mysql://a@{address}/shop"), "products", "id");
        Source::mysql(id_set(integers()), mysql, options)
    });
}

#[test]
fn rows_before_a_change_of_the_columns_are_not_read_with_the_columns_after_it() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.session.run("CREATE TABLE moved (other BIGINT, id BIGINT PRIMARY KEY)");
    shop.session.run("INSERT INTO moved SELECT seq + 500000, seq FROM seq_1_to_100000");
    let proxy = TcpProxy::start(server.address());
    let url = shop.options.url.replace(&server.address().to_string(), &proxy.address.to_string());
    let ids = id_set(integers());
    let table = "moved".to_owned();
    let source = start(&ids, &MysqlOptions { url, table, ..shop.options.clone() });
    wait_synced(&source);
    proxy.partition();
    proxy.cut();
    let before = source.status().generations;
    // The log has a deleted row with 7 in the place that the id will have.
    shop.session.run("UPDATE moved SET other = 7 WHERE id = 8");
    shop.session.run("DELETE FROM moved WHERE id = 8");
    shop.session.run("ALTER TABLE moved MODIFY other BIGINT AFTER id");
    proxy.heal();
    wait_until(&source, "read again", || {
        assert!(has(&ids, 7), "{:?}", source.status());
        source.status().generations > before
    });
    wait_synced(&source);
    assert!(has(&ids, 7) && !has(&ids, 8));
}

#[test]
fn a_log_that_is_begun_again_costs_a_read_of_all_ids() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 100);
    // The position is behind the beginning of the next log.
    shop.session.run("FLUSH BINARY LOGS");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("RESET MASTER");
    shop.session.run("INSERT INTO products VALUES ('new', 500)");
    wait_until(&source, "read again", || source.status().generations > 1 && knows(&ids, 500));
    wait_synced(&source);
    shop.session.run("INSERT INTO products VALUES ('new', 501)");
    wait_until(&source, "followed", || knows(&ids, 501) && !has(&ids, 502));
}
