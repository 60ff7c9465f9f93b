//! Changes that the binary log does not contain, and events that a guard does not need.

use std::time::Duration;

use tamis_sources::MysqlOptions;

use crate::checker::{has, knows, text, wait_broken, wait_synced, wait_until};
use crate::stories::conditions::{goods, on};
use crate::stories::follow::*;
use crate::tcp_proxy::TcpProxy;

#[test]
fn a_column_that_a_foreign_key_changes_is_refused() {
    let (_server, mut shop) = own_shop(&[], 10);
    shop.run("CREATE TABLE plain (id BIGINT PRIMARY KEY, FOREIGN KEY (id) REFERENCES products (id) ON DELETE CASCADE)");
    shop.run("CREATE TABLE children (id BIGINT PRIMARY KEY, n INT)");
    shop.run("INSERT INTO children SELECT id, 1 FROM products");
    // The information schema shows such a user no foreign keys.
    shop.session.create_follower("guard", "*.*");
    let of = |table: &str| MysqlOptions { table: table.to_owned(), ..shop.as_user("guard:geheim") };
    follow(&of("plain"));
    let children = of("children");
    let (ids, source) = follow(&children);
    // A key that is added later is found, too.
    shop.run("ALTER TABLE children ADD CONSTRAINT c FOREIGN KEY (id) REFERENCES products (id) ON UPDATE CASCADE");
    wait_broken(&source, "ON UPDATE CASCADE");
    shop.run("UPDATE products SET id = 500 WHERE id = 5");
    assert!(knows(&ids, 500));
    refused(&children, "name the column id of the table");
    let (ids, _source) = follow(&reread(&children));
    assert!(has(&ids, 500) && !has(&ids, 5));
}

#[test]
fn a_condition_on_a_column_that_changes_without_the_log_is_refused() {
    let mut shop = shop();
    shop.run("CREATE TABLE shops (id INT PRIMARY KEY) ENGINE=InnoDB");
    shop.run(
        "CREATE TABLE goods (id INT PRIMARY KEY, shop INT, price INT, \
         is_dear BOOLEAN AS (price > 100) VIRTUAL, is_cheap BOOLEAN AS (price < 10) STORED, \
         FOREIGN KEY (shop) REFERENCES shops (id) ON DELETE SET NULL) ENGINE=InnoDB",
    );
    let table = shop.table("goods");
    let of = |condition: &str| on(&table, condition);
    refused(&of("shop IS NOT NULL"), "remove shop from `where`, or poll the table");
    refused(&of("is_dear"), "goods.is_dear is a virtual generated column");
    refused(&of("NOT is_cheap"), "ON DELETE SET NULL changes");
    shop.run("INSERT INTO goods (id, price) VALUES (1, 5), (2, 50)");
    let (ids, source) = follow(&of("price > 10"));
    assert!(!has(&ids, 1) && has(&ids, 2));
    shop.after(&ids, &source, "UPDATE goods SET price = 11 WHERE id = 1", &[1, 2], &[]);
}

#[test]
fn a_session_that_logs_only_some_columns_loses_no_row_of_a_condition() {
    let mut shop = shop();
    let options = on(&goods(&mut shop), "stock > 0 AND deleted_at IS NULL");
    let (ids, source) = follow(&options);
    let mut other = shop.open();
    other.run("SET SESSION binlog_row_image = 'MINIMAL'");
    other.run("UPDATE goods SET stock = 0 WHERE id = 1");
    other.run("INSERT INTO goods (id, stock) VALUES (101, 3)");
    other.run("UPDATE goods SET stock = 5 WHERE id = 1");
    shop.after(&ids, &source, "UPDATE goods SET stock = 0 WHERE id = 2", &[101, 1], &[]);
    wait_until(&source, "moved out", || !has(&ids, 2));
    wait_synced(&source);
    assert!(knows(&ids, 101) && knows(&ids, 1));
}

#[test]
fn a_view_and_a_table_whose_rows_live_elsewhere_are_refused() {
    let mut shop = shop();
    shop.run("CREATE VIEW shown AS SELECT * FROM products");
    refused(&shop.table("shown"), "is a VIEW");
    shop.run("CREATE TABLE part (id BIGINT PRIMARY KEY) ENGINE=MyISAM");
    shop.run(
        "CREATE TABLE whole (id BIGINT PRIMARY KEY) ENGINE=MERGE UNION=(part) INSERT_METHOD=LAST",
    );
    refused(&shop.table("whole"), "the storage engine MRG_MyISAM");
    let (ids, source) = follow(&shop.table("part"));
    // The table itself is followed. `docs/guard.md` says that rows through the other table are not seen.
    shop.after(&ids, &source, "INSERT INTO part VALUES (1)", &[1], &[2]);
}

#[test]
fn a_generated_column_is_followed_if_it_is_stored() {
    let mut shop = shop();
    shop.run("CREATE TABLE virt (a BIGINT PRIMARY KEY, id BIGINT AS (a + 100) VIRTUAL UNIQUE)");
    shop.run("CREATE TABLE stored (v BIGINT AS (a * 2) VIRTUAL, a BIGINT PRIMARY KEY, id BIGINT AS (a + 100) STORED UNIQUE)");
    refused(&shop.table("virt"), "is a virtual generated column");
    let (ids, source) = follow(&shop.table("stored"));
    shop.run("INSERT INTO stored (a) VALUES (1), (2)");
    shop.after(&ids, &source, "UPDATE stored SET a = 3 WHERE a = 2", &[101, 103], &[102]);
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_server_that_shows_old_rows_by_default_shows_the_guard_the_present_ones() {
    let (_server, mut shop) = own_shop(&[], 0);
    shop.run("CREATE TABLE versioned (id BIGINT PRIMARY KEY) WITH SYSTEM VERSIONING");
    shop.run("INSERT INTO versioned VALUES (1), (2)");
    shop.run("SET GLOBAL system_versioning_asof = '2020-01-01 00:00:00'");
    let (ids, _source) = follow(&shop.table("versioned"));
    assert!(has(&ids, 1) && has(&ids, 2) && !has(&ids, 3));
}

#[test]
fn a_change_without_the_log_is_found_by_a_read_of_all_ids() {
    let mut shop = shop_with(10);
    let (ids, source) = shop.follow();
    shop.run("SET sql_log_bin = 0");
    shop.run("INSERT INTO products VALUES ('hidden', 50)");
    shop.run("SET sql_log_bin = 1");
    source.rebuild();
    wait_until(&source, "read again", || has(&ids, 50));
}

#[test]
fn rows_of_one_statement_in_many_events_are_read() {
    let (_server, mut shop) = own_shop(&["--binlog-row-event-max-size=256"], 0);
    let (ids, source) = shop.follow();
    shop.fill(1, 5000);
    shop.after(&ids, &source, "UPDATE products SET id = id + 10000", &[15_000], &[5000]);
    assert!((10_001..=15_000).all(|id| knows(&ids, id)));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn columns_of_every_type_may_stand_beside_the_id() {
    let (_server, mut shop) = own_shop(&[], 0);
    let columns = |suffix: &str| {
        let types = "TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(30,10), DECIMAL(9,0), YEAR, \
            DATE, TIME, TIME(3), DATETIME, DATETIME(6), TIMESTAMP NULL, TIMESTAMP(5) NULL, BIT(13), BIT(8), \
            ENUM('a','b'), SET('a','b'), CHAR(10), CHAR(255), VARCHAR(20), VARCHAR(300), VARCHAR(300) COMPRESSED, \
            TEXT COMPRESSED, TINYTEXT, MEDIUMBLOB, LONGTEXT, JSON, POINT, UUID, INET6, INET4, BINARY(5), \
            VARBINARY(70)";
        let named = types.split(", ").enumerate().map(|(n, it)| format!("{suffix}{n} {it}"));
        named.collect::<Vec<_>>().join(", ")
    };
    let values = "-1, -1, -1, -1, -1, 1.5, -2.5, 12345678901234567890.5, -5, 2026, '2026-11-27', '-12:30:00', \
        '12:30:00.123', '2026-11-27 12:00:00', '2026-11-27 12:00:00.5', '2026-11-27 12:00:00', \
        '2026-11-27 12:00:00.25', b'1010101010101', b'11', 'b', 'a,b', 'tea', REPEAT('茶', 200), 'tea', \
        REPEAT('tea', 90), REPEAT('tea', 90), REPEAT('tea', 5000), 'tea', REPEAT('b', 70000), 'tea', '{\"a\": 1}', \
        POINT(1, 2), UUID(), '::1', '10.0.0.1', x'0102', x'03'";
    shop.run("SET NAMES utf8mb4, sql_mode = ''");
    shop.run(&format!(
        "CREATE TABLE wide ({}, id BIGINT PRIMARY KEY, {}) CHARACTER SET utf8mb4",
        columns("a"),
        columns("b")
    ));
    let (ids, source) = follow(&shop.table("wide"));
    shop.run(&format!("INSERT INTO wide VALUES ({values}, 7, {values}), ({values}, 8, {values})"));
    shop.run("INSERT INTO wide (a3, a25, b26, id) VALUES (1, 'tea', 'tea', 9)");
    shop.run("UPDATE wide SET a25 = 'coffee', b30 = '{}', id = 10 WHERE id = 8");
    shop.run("DELETE FROM wide WHERE id = 9");
    shop.after(&ids, &source, "INSERT INTO wide (id) VALUES (11)", &[11], &[]);
    wait_until(&source, "all changes", || {
        knows(&ids, 7) && knows(&ids, 10) && !has(&ids, 8) && !has(&ids, 9)
    });
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
    shop.run("CREATE TABLE squeezed (id VARCHAR(40) COMPRESSED CHARACTER SET utf8mb4)");
    refused_as(text(), &shop.table("squeezed"), "is COMPRESSED");
}

#[test]
fn a_commit_that_the_log_lost_in_a_crash_is_found() {
    let (mut server, mut shop) =
        own_shop(&["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=0"], 10);
    let proxy = TcpProxy::start(server.address());
    let (ids, source) = follow(&shop.at(proxy.address));
    proxy.partition();
    proxy.cut();
    let log = server.data().join("binlog.000001");
    let length = std::fs::metadata(&log).unwrap().len();
    shop.run("INSERT INTO products VALUES ('lost in the log', 50)");
    // The storage engine writes the end of the commit before a later one, and at the latest after a second.
    std::thread::sleep(Duration::from_millis(1500));
    shop.run("SET sql_log_bin = 0");
    shop.run("INSERT INTO products VALUES ('without log', 51)");
    server.kill();
    // What a power loss takes from a log that is not synced.
    std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length).unwrap();
    server.run();
    let mut session = shop.open();
    assert_eq!(
        session.texts("SELECT id FROM products WHERE id = 50").len(),
        1,
        "the engine has it"
    );
    proxy.heal();
    wait_until(&source, "found", || has(&ids, 50));
    wait_synced(&source);
}
