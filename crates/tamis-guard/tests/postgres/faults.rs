//! Servers that are killed, networks that break, and slots that are lost.

use std::path::Path;

use tamis_guard::source::PostgresOptions;

use crate::checker::{Dir, has, id_set, integers, wait, wait_synced, wait_until};
use crate::server::{Server, Session};
use crate::stories::database::Database as _;
use crate::stories::follow::{continued, follow, own_shop, start};
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_lost_slot_costs_a_read_of_all_ids() {
    let (_server, mut shop) = own_shop(&[], 100);
    let (ids, source) = shop.follow();
    let slots = "SELECT count(*) FROM pg_replication_slots";
    assert_eq!(shop.session.value(slots), "1");
    let drop = shop
        .session
        .try_run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
    assert!(drop.is_err(), "the server keeps slots that are in use");
    // Each kind of connection.
    for filter in ["backend_type = 'walsender'", "backend_type = 'client backend'"] {
        let before = source.status().generations;
        shop.run(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE {filter} AND application_name = 'tamis-guard'"
        ));
        shop.run(&format!("INSERT INTO products VALUES ('new', {})", 1000 + before));
        wait(&source, "read again", |status| status.generations > before);
        wait_synced(&source);
        wait_until(&source, "the new id", || has(&ids, 1000 + before));
    }
}

#[test]
fn a_stopped_source_keeps_no_log_and_a_running_one_confirms_it() {
    let (_server, mut shop) = own_shop(&[], 0);
    shop.run("CREATE TABLE other (text text)");
    let (_, source) = shop.follow();
    // Nothing of the table changes.
    let place = shop.session.value("SELECT pg_current_wal_insert_lsn()");
    shop.run("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 1000)");
    let confirmed =
        format!("SELECT bool_and(confirmed_flush_lsn > '{place}') FROM pg_replication_slots");
    shop.session.wait_for(&confirmed, "t");
    source.stop();
    shop.session.wait_for("SELECT count(*) FROM pg_replication_slots", "0");
    let connections =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tamis-guard'";
    shop.session.wait_for(connections, "0");
}

#[test]
fn a_slot_that_the_server_is_still_creating_ends_with_the_source() {
    let (server, mut shop) = own_shop(&[], 0);
    let mut admin = Session::open(&server.url("postgres"));
    let slots = "SELECT count(*) FROM pg_replication_slots";
    let open = "BEGIN; INSERT INTO products VALUES ('open', 5)";
    // The first slot of a source.
    shop.run(open);
    let source = start(&id_set(integers()), &shop.options);
    admin.wait_for(slots, "1");
    source.stop();
    admin.wait_for(slots, "0");
    shop.run("COMMIT");
    // A later one.
    let source = start(&id_set(integers()), &shop.options);
    wait_synced(&source);
    shop.run(&open.replace('5', "6"));
    source.rebuild();
    admin.wait_for(slots, "2");
    source.stop();
    admin.wait_for(slots, "0");
}

#[test]
fn a_slot_that_the_server_is_still_creating_ends_with_its_connection() {
    let (server, mut shop) = own_shop(&[], 0);
    let mut admin = Session::open(&server.url("postgres"));
    let proxy = TcpProxy::start(server.address());
    shop.run("BEGIN; INSERT INTO products VALUES ('open', 5)");
    let ids = id_set(integers());
    let source = start(&ids, &shop.at(proxy.address));
    admin.wait_for("SELECT count(*) FROM pg_replication_slots", "1");
    let name = admin.value("SELECT slot_name FROM pg_replication_slots");
    proxy.cut();
    let old = format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{name}'");
    admin.wait_for(&old, "0");
    shop.run("COMMIT");
    wait_synced(&source);
    assert!(has(&ids, 5));
}

#[test]
fn after_a_failover_all_ids_of_the_other_server_are_read() {
    failover(|options, _| options.clone());
    failover(continued);
}

fn failover(set: impl Fn(&PostgresOptions, &Path) -> PostgresOptions) {
    let mut primary = Server::start_with(Server::CONTINUED);
    let (mut shop, dir) = (primary.shop(), Dir::new());
    shop.fill(1, 100);
    let standby = primary.standby();
    let hosts = format!("{},{}", primary.address(), standby.address());
    let (ids, source) = follow(&set(&shop.at(hosts), &dir.path("a")));
    assert!(has(&ids, 100));
    let mut session = Session::open(&standby.url(&shop.name));
    session.wait_for("SELECT count(*) FROM products", "100");
    primary.kill();
    session.run("SELECT pg_promote()");
    session.run("DELETE FROM products WHERE id = 1; INSERT INTO products VALUES ('new', 101)");
    wait_until(&source, "the other server", || has(&ids, 101) && !has(&ids, 1));
    wait_synced(&source);
    session.run("INSERT INTO products VALUES ('new', 102)");
    wait_until(&source, "the other stream", || has(&ids, 102));
}
