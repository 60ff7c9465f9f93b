//! Changes that the binary log does not contain, and events that a guard does not need.

use std::time::Duration;

use tamis_guard::SyncState;
use tamis_guard::source::{MysqlOptions, PollOptions};

use crate::checker::{has, id_set, integers, knows, wait, wait_synced, wait_until};
use crate::lost_rows::refuses;
use crate::server::{Server, Session, start};
use crate::stories::shop;
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_column_that_a_foreign_key_changes_is_refused() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 10);
    shop.session.run("CREATE TABLE plain (id BIGINT PRIMARY KEY, FOREIGN KEY (id) REFERENCES products (id) ON DELETE CASCADE)");
    shop.session.run("CREATE TABLE children (id BIGINT PRIMARY KEY, n INT)");
    shop.session.run("INSERT INTO children SELECT id, 1 FROM products");
    // The information schema shows such a user no foreign keys.
    shop.session.run("CREATE USER guard IDENTIFIED BY 'geheim'");
    shop.session.run("GRANT SELECT ON *.* TO guard");
    shop.session.run("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO guard");
    let url = shop.options.url.replace("root@", "guard:geheim@");
    let of = |table: &str| MysqlOptions {
        url: url.clone(),
        table: table.to_owned(),
        ..shop.options.clone()
    };
    wait_synced(&start(&id_set(integers()), &of("plain")));
    let ids = id_set(integers());
    let source = start(&ids, &of("children"));
    wait_synced(&source);
    // A key that is added later is found, too.
    shop.session.run("ALTER TABLE children ADD CONSTRAINT c FOREIGN KEY (id) REFERENCES products (id) ON UPDATE CASCADE");
    wait(&source, "refused", |status| {
        status.last_error.as_ref().is_some_and(|error| error.contains("ON UPDATE CASCADE"))
    });
    assert_eq!(ids.state(), SyncState::Stale);
    shop.session.run("UPDATE products SET id = 500 WHERE id = 5");
    assert!(knows(&ids, 500));
    refuses(&of("children"), "name the column id of the table");
    let poll = Some(PollOptions::default());
    let ids = id_set(integers());
    wait_synced(&start(&ids, &MysqlOptions { poll, ..of("children") }));
    assert!(has(&ids, 500) && !has(&ids, 5));
}

#[test]
fn a_table_whose_rows_live_elsewhere_is_refused() {
    let mut shop = shop();
    shop.session.run("CREATE TABLE part (id BIGINT PRIMARY KEY) ENGINE=MyISAM");
    shop.session.run(
        "CREATE TABLE whole (id BIGINT PRIMARY KEY) ENGINE=MERGE UNION=(part) INSERT_METHOD=LAST",
    );
    let of = |table: &str| MysqlOptions { table: table.to_owned(), ..shop.options.clone() };
    refuses(&of("whole"), "the storage engine MRG_MyISAM");
    let ids = id_set(integers());
    let source = start(&ids, &of("part"));
    wait_synced(&source);
    // The table itself is followed. `docs/guard.md` says that rows through the other table are not seen.
    shop.session.run("INSERT INTO part VALUES (1)");
    wait_until(&source, "inserted", || knows(&ids, 1) && !has(&ids, 2));
}

#[test]
fn a_generated_column_is_followed_if_it_is_stored() {
    let mut shop = shop();
    shop.session
        .run("CREATE TABLE virt (a BIGINT PRIMARY KEY, id BIGINT AS (a + 100) VIRTUAL UNIQUE)");
    shop.session.run("CREATE TABLE stored (v BIGINT AS (a * 2) VIRTUAL, a BIGINT PRIMARY KEY, id BIGINT AS (a + 100) STORED UNIQUE)");
    let of = |table: &str| MysqlOptions { table: table.to_owned(), ..shop.options.clone() };
    refuses(&of("virt"), "is a virtual generated column");
    let ids = id_set(integers());
    let source = start(&ids, &of("stored"));
    wait_synced(&source);
    shop.session.run("INSERT INTO stored (a) VALUES (1), (2)");
    shop.session.run("UPDATE stored SET a = 3 WHERE a = 2");
    wait_until(&source, "inserted", || knows(&ids, 101) && knows(&ids, 103) && !has(&ids, 102));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_server_that_shows_old_rows_by_default_shows_the_guard_the_present_ones() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.session.run("CREATE TABLE versioned (id BIGINT PRIMARY KEY) WITH SYSTEM VERSIONING");
    shop.session.run("INSERT INTO versioned VALUES (1), (2)");
    shop.session.run("SET GLOBAL system_versioning_asof = '2020-01-01 00:00:00'");
    let ids = id_set(integers());
    let versioned = MysqlOptions { table: "versioned".to_owned(), ..shop.options.clone() };
    wait_synced(&start(&ids, &versioned));
    assert!(has(&ids, 1) && has(&ids, 2) && !has(&ids, 3));
}

#[test]
fn a_change_without_the_log_is_found_by_a_read_of_all_ids() {
    let mut shop = shop();
    shop.fill(1, 10);
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("SET sql_log_bin = 0");
    shop.session.run("INSERT INTO products VALUES ('hidden', 50)");
    shop.session.run("SET sql_log_bin = 1");
    source.rebuild();
    wait_until(&source, "read again", || has(&ids, 50));
}

#[test]
fn rows_of_one_statement_in_many_events_are_read() {
    let server = Server::start_with(&["--binlog-row-event-max-size=256"]);
    let mut shop = server.shop();
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.fill(1, 5000);
    shop.session.run("UPDATE products SET id = id + 10000");
    wait_until(&source, "moved", || knows(&ids, 15_000) && !has(&ids, 5000));
    assert!((10_001..=15_000).all(|id| knows(&ids, id)));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn columns_of_every_type_may_stand_beside_the_id() {
    let server = Server::start();
    let mut shop = server.shop();
    let columns = |suffix: &str| {
        let types = [
            "TINYINT",
            "SMALLINT",
            "MEDIUMINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(30,10)",
            "DECIMAL(9,0)",
            "YEAR",
            "DATE",
            "TIME",
            "TIME(3)",
            "DATETIME",
            "DATETIME(6)",
            "TIMESTAMP NULL",
            "TIMESTAMP(5) NULL",
            "BIT(13)",
            "BIT(8)",
            "ENUM('a','b')",
            "SET('a','b')",
            "CHAR(10)",
            "CHAR(255)",
            "VARCHAR(20)",
            "VARCHAR(300)",
            "VARCHAR(300) COMPRESSED",
            "TEXT COMPRESSED",
            "TINYTEXT",
            "MEDIUMBLOB",
            "LONGTEXT",
            "JSON",
            "POINT",
            "UUID",
            "INET6",
            "INET4",
            "BINARY(5)",
            "VARBINARY(70)",
        ];
        let named = types.iter().enumerate().map(|(n, it)| format!("{suffix}{n} {it}"));
        named.collect::<Vec<_>>().join(", ")
    };
    let values = "-1, -1, -1, -1, -1, 1.5, -2.5, 12345678901234567890.5, -5, 2026, '2026-11-27', '-12:30:00', \
        '12:30:00.123', '2026-11-27 12:00:00', '2026-11-27 12:00:00.5', '2026-11-27 12:00:00', \
        '2026-11-27 12:00:00.25', b'1010101010101', b'11', 'b', 'a,b', 'tea', REPEAT('茶', 200), 'tea', \
        REPEAT('tea', 90), REPEAT('tea', 90), REPEAT('tea', 5000), 'tea', REPEAT('b', 70000), 'tea', '{\"a\": 1}', \
        POINT(1, 2), UUID(), '::1', '10.0.0.1', x'0102', x'03'";
    shop.session.run("SET NAMES utf8mb4, sql_mode = ''");
    shop.session.run(&format!(
        "CREATE TABLE wide ({}, id BIGINT PRIMARY KEY, {}) CHARACTER SET utf8mb4",
        columns("a"),
        columns("b")
    ));
    let ids = id_set(integers());
    let source = start(&ids, &MysqlOptions { table: "wide".to_owned(), ..shop.options.clone() });
    wait_synced(&source);
    shop.session
        .run(&format!("INSERT INTO wide VALUES ({values}, 7, {values}), ({values}, 8, {values})"));
    shop.session.run("INSERT INTO wide (a3, a25, b26, id) VALUES (1, 'tea', 'tea', 9)");
    shop.session.run("UPDATE wide SET a25 = 'coffee', b30 = '{}', id = 10 WHERE id = 8");
    shop.session.run("DELETE FROM wide WHERE id = 9");
    shop.session.run("INSERT INTO wide (id) VALUES (11)");
    wait_until(&source, "the last row", || knows(&ids, 11));
    wait_until(&source, "all changes", || {
        knows(&ids, 7) && knows(&ids, 10) && !has(&ids, 8) && !has(&ids, 9)
    });
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
    let compressed = MysqlOptions {
        table: "squeezed".to_owned(),
        column: "id".to_owned(),
        ..shop.options.clone()
    };
    shop.session.run("CREATE TABLE squeezed (id VARCHAR(40) COMPRESSED CHARACTER SET utf8mb4)");
    let refused = start(&id_set(crate::server::text()), &compressed);
    wait(&refused, "refused", |status| {
        status.last_error.as_ref().is_some_and(|error| error.contains("is COMPRESSED"))
    });
}

#[test]
fn a_commit_that_the_log_lost_in_a_crash_is_found() {
    let mut server = Server::start_with(&["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=0"]);
    let mut shop = server.shop();
    shop.fill(1, 10);
    let proxy = TcpProxy::start(server.address());
    let url = shop.options.url.replace(&server.address().to_string(), &proxy.address.to_string());
    let ids = id_set(integers());
    let source = start(&ids, &MysqlOptions { url, ..shop.options.clone() });
    wait_synced(&source);
    proxy.partition();
    proxy.cut();
    let log = server.data().join("binlog.000001");
    let length = std::fs::metadata(&log).unwrap().len();
    shop.session.run("INSERT INTO products VALUES ('lost in the log', 50)");
    // The storage engine writes the end of the commit before a later one, and at the latest after a second.
    std::thread::sleep(Duration::from_millis(1500));
    shop.session.run("SET sql_log_bin = 0");
    shop.session.run("INSERT INTO products VALUES ('without log', 51)");
    server.kill();
    // What a power loss takes from a log that is not synced.
    std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length).unwrap();
    server.run();
    let mut session = Session::open(&shop.options.url);
    assert_eq!(
        session.texts("SELECT id FROM products WHERE id = 50").len(),
        1,
        "the engine has it"
    );
    proxy.heal();
    wait_until(&source, "found", || has(&ids, 50));
    wait_synced(&source);
}
