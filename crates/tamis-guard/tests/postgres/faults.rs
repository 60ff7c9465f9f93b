//! Servers that are killed, networks that break, and slots that are lost.

use std::time::Duration;

use tamis_guard::SyncState;
use tamis_guard::source::{PostgresOptions, Source};

use crate::checker::{Committed, check, id_set, integers, options, wait, wait_synced, wait_until};
use crate::server::{Server, Session, has, start};
use crate::silent_server::stop_while_it_waits;
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_killed_server_loses_no_id() {
    let mut server = Server::start();
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
            assert!(has(&ids, 1), "the ids stay");
            server.run();
            shop.session = Session::open(&shop.options.url);
            wait_synced(&source);
        }
    });
    assert!(has(&ids, 2249) && !has(&ids, 2250));
}

#[test]
fn a_broken_network_delays_the_knowledge_and_loses_nothing() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 1000);
    let proxy = TcpProxy::start(server.address());
    let options = shop.at(proxy.address);
    let (ids, committed) = (id_set(integers()), Committed::default());
    committed.insert(1..=1000);
    let source = start(&ids, &options);
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
    wait_until(&source, "all are known", || (2000..next).all(|id| has(&ids, id)));
}

#[test]
fn a_lost_slot_costs_a_read_of_all_ids() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 100);
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    let slots = "SELECT count(*) FROM pg_replication_slots";
    assert_eq!(shop.session.value(slots), "1");
    let drop = shop
        .session
        .try_run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
    assert!(drop.is_err(), "the server keeps slots that are in use");
    // Each kind of connection.
    for filter in ["backend_type = 'walsender'", "backend_type = 'client backend'"] {
        let before = source.status().generations;
        shop.session.run(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE {filter} AND application_name = 'tamis-guard'"
        ));
        shop.session.run(&format!("INSERT INTO products VALUES ('new', {})", 1000 + before));
        wait(&source, "read again", |status| status.generations > before);
        wait_synced(&source);
        wait_until(&source, "the new id", || has(&ids, 1000 + before));
    }
}

#[test]
fn a_stopped_source_keeps_no_log_and_a_running_one_confirms_it() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.session.run("CREATE TABLE other (text text)");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    // Nothing of the table changes.
    let place = shop.session.value("SELECT pg_current_wal_insert_lsn()");
    shop.session.run("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 1000)");
    let confirmed =
        format!("SELECT bool_and(confirmed_flush_lsn > '{place}') FROM pg_replication_slots");
    wait_until_value(&mut shop.session, &confirmed, "t");
    source.stop();
    wait_until_value(&mut shop.session, "SELECT count(*) FROM pg_replication_slots", "0");
    let connections =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tamis-guard'";
    wait_until_value(&mut shop.session, connections, "0");
}

#[test]
fn a_slot_that_the_server_is_still_creating_ends_with_the_source() {
    let server = Server::start();
    let mut shop = server.shop();
    let mut admin = Session::open(&server.url("postgres"));
    let slots = "SELECT count(*) FROM pg_replication_slots";
    let open = "BEGIN; INSERT INTO products VALUES ('open', 5)";
    // The first slot of a source.
    shop.session.run(open);
    let source = start(&id_set(integers()), &shop.options);
    wait_until_value(&mut admin, slots, "1");
    source.stop();
    wait_until_value(&mut admin, slots, "0");
    shop.session.run("COMMIT");
    // A later one.
    let source = start(&id_set(integers()), &shop.options);
    wait_synced(&source);
    shop.session.run(&open.replace('5', "6"));
    source.rebuild();
    wait_until_value(&mut admin, slots, "2");
    source.stop();
    wait_until_value(&mut admin, slots, "0");
}

#[test]
fn a_slot_that_the_server_is_still_creating_ends_with_its_connection() {
    let server = Server::start();
    let mut shop = server.shop();
    let mut admin = Session::open(&server.url("postgres"));
    let proxy = TcpProxy::start(server.address());
    let options = shop.at(proxy.address);
    shop.session.run("BEGIN; INSERT INTO products VALUES ('open', 5)");
    let ids = id_set(integers());
    let source = start(&ids, &options);
    wait_until_value(&mut admin, "SELECT count(*) FROM pg_replication_slots", "1");
    let name = admin.value("SELECT slot_name FROM pg_replication_slots");
    proxy.cut();
    let old = format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}'");
    wait_until_value(&mut admin, &old, "0");
    shop.session.run("COMMIT");
    wait_synced(&source);
    assert!(has(&ids, 5));
}

#[test]
fn a_source_that_waits_for_an_answer_can_be_stopped() {
    stop_while_it_waits(|address, options| {
        let url = format!("postgres://a@{address}/shop");
        let postgres = PostgresOptions::new(&url, "products", "id");
        Source::postgres(id_set(integers()), postgres, options)
    });
}

/// Waits until a query returns a value.
pub fn wait_until_value(session: &mut Session, sql: &str, expected: &str) {
    tamis_testing::wait_until(format_args!("{sql} gives {expected}"), || {
        session.value(sql) == expected
    });
}

#[test]
fn after_a_failover_all_ids_of_the_other_server_are_read() {
    let mut primary = Server::start();
    let mut shop = primary.shop();
    shop.fill(1, 100);
    let standby = primary.standby();
    let hosts = format!("{},{}", primary.address(), standby.address());
    let ids = id_set(integers());
    let source = start(&ids, &shop.at(hosts));
    wait_synced(&source);
    assert!(has(&ids, 100));
    wait_until_value(
        &mut Session::open(&standby.url(&shop.name)),
        "SELECT count(*) FROM products",
        "100",
    );
    primary.kill();
    let mut session = Session::open(&standby.url(&shop.name));
    session.run("SELECT pg_promote()");
    session.run("DELETE FROM products WHERE id = 1; INSERT INTO products VALUES ('new', 101)");
    wait_until(&source, "the other server", || has(&ids, 101) && !has(&ids, 1));
    wait_synced(&source);
    session.run("INSERT INTO products VALUES ('new', 102)");
    wait_until(&source, "the other stream", || has(&ids, 102));
}

#[test]
fn a_source_that_cannot_be_reached_becomes_stale_in_time() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 10);
    let proxy = TcpProxy::start(server.address());
    let ids = id_set(integers());
    let source = start(&ids, &shop.at(proxy.address));
    wait_synced(&source);
    proxy.partition();
    let status = wait(&source, "stale", |status| status.state == SyncState::Stale);
    assert!(status.lag.is_none_or(|lag| lag >= options().stale_after), "{status:?}");
    // The source ends although no answer arrives.
    source.stop();
    proxy.heal();
}
