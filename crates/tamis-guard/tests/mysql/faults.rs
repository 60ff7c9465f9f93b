//! Servers that are killed, and networks that break.

use crate::checker::{has, knows, wait, wait_synced, wait_until};
use crate::stories::follow::{at, follow, own_shop};
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_log_that_was_deleted_costs_a_read_of_all_ids() {
    let (mut server, mut shop) = own_shop(&[], 100);
    let proxy = TcpProxy::start(server.address());
    let (ids, source) = follow(&shop.at(proxy.address));
    proxy.partition();
    shop.run("INSERT INTO products VALUES ('lost', 500)");
    shop.run("FLUSH BINARY LOGS");
    shop.run("INSERT INTO products VALUES ('lost', 501)");
    server.kill();
    server.run();
    let mut session = shop.open();
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
fn rows_before_a_change_of_the_columns_are_not_read_with_the_columns_after_it() {
    let (server, mut shop) = own_shop(&[], 0);
    shop.run("CREATE TABLE moved (other BIGINT, id BIGINT PRIMARY KEY)");
    shop.run("INSERT INTO moved SELECT seq + 500000, seq FROM seq_1_to_100000");
    let proxy = TcpProxy::start(server.address());
    let (ids, source) = follow(&at(&shop.table("moved"), proxy.address));
    proxy.partition();
    proxy.cut();
    let before = source.status().generations;
    // The log has a deleted row with 7 in the place that the id will have.
    shop.run("UPDATE moved SET other = 7 WHERE id = 8");
    shop.run("DELETE FROM moved WHERE id = 8");
    shop.run("ALTER TABLE moved MODIFY other BIGINT AFTER id");
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
    let (_server, mut shop) = own_shop(&[], 100);
    // The position is behind the beginning of the next log.
    shop.run("FLUSH BINARY LOGS");
    let (ids, source) = shop.follow();
    shop.run("RESET MASTER");
    shop.run("INSERT INTO products VALUES ('new', 500)");
    wait_until(&source, "read again", || source.status().generations > 1 && knows(&ids, 500));
    wait_synced(&source);
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 501)", &[501], &[502]);
}
