//! What happens to a table, and what the source must know of it.

use tamis_sources::{IdType, SyncState};

use crate::checker::{has, integers, knows, text, wait_broken, wait_synced, wait_until};
use crate::server::Server;
use crate::stories::follow::*;

#[test]
fn unsigned_and_text_and_binary_ids_are_read_alike_from_rows_and_log() {
    let mut shop = shop();
    shop.run("CREATE TABLE big (id BIGINT UNSIGNED PRIMARY KEY)");
    shop.run("CREATE TABLE words (id VARCHAR(40) CHARACTER SET utf8mb4 PRIMARY KEY)");
    shop.run("CREATE TABLE uuids (n INT, id BINARY(16) PRIMARY KEY)");
    shop.run("INSERT INTO big VALUES (18446744073709551615), (9223372036854775808)");
    shop.run("INSERT INTO words VALUES ('产品'), ('a b')");
    let uuid = |digit: char| digit.to_string().repeat(32);
    shop.run(&format!("INSERT INTO uuids VALUES (1, x'{}')", uuid('a')));
    let unsigned = IdType::Integer { min: 0, max: u64::MAX.into(), form: Default::default() };
    let big = follow_as(unsigned, &shop.table("big"));
    let words = follow_as(text(), &shop.table("words"));
    let uuids = follow_as(IdType::Uuid, &shop.table("uuids"));
    shop.run("INSERT INTO big VALUES (18446744073709551614)");
    shop.run("INSERT INTO words VALUES ('新')");
    shop.run(&format!("INSERT INTO uuids VALUES (1, x'{}')", uuid('b')));
    for ((ids, source), known) in [
        (&big, "18446744073709551615 9223372036854775808 18446744073709551614"),
        (&words, "产品 新"),
        (&uuids, &format!("{} {}", uuid('a'), uuid('b'))),
    ] {
        for id in known.split(' ') {
            wait_until(source, id, || knows(ids, id));
        }
    }
    assert!(knows(&words.0, "a b") && !has(&words.0, "b"));
}

#[test]
fn a_table_whose_columns_move_and_one_that_is_created_again_are_read_again() {
    let mut shop = shop();
    let (ids, source) = shop.follow();
    // The id has another place.
    shop.run("ALTER TABLE products ADD COLUMN price INT FIRST");
    shop.after(&ids, &source, "INSERT INTO products VALUES (5, 'a', 77)", &[77], &[]);
    wait_synced(&source);
    assert!(!has(&ids, 5));
    shop.run("DROP TABLE products");
    wait_broken(&source, "there is no table");
    shop.run("CREATE TABLE products (id INT PRIMARY KEY)");
    shop.after(&ids, &source, "INSERT INTO products VALUES (88)", &[88], &[]);
    wait_synced(&source);
}

#[test]
fn a_partition_that_is_exchanged_with_the_table_is_read() {
    let mut shop = shop_with(100);
    shop.run(
        "CREATE TABLE parts (name VARCHAR(50), id BIGINT PRIMARY KEY) \
         PARTITION BY RANGE (id) (PARTITION all_ids VALUES LESS THAN MAXVALUE)",
    );
    shop.run("INSERT INTO parts SELECT 'a', seq FROM seq_1000_to_1100");
    let (ids, source) = shop.follow();
    shop.run("ALTER TABLE parts EXCHANGE PARTITION all_ids WITH TABLE products");
    wait_until(&source, "exchanged", || has(&ids, 1000) && !has(&ids, 100));
    wait_synced(&source);
    assert!(knows(&ids, 1100));
}

#[test]
fn rows_of_an_imported_file_are_read() {
    let (server, mut shop) = own_shop(&[], 100);
    shop.run("CREATE TABLE other LIKE products");
    shop.run("INSERT INTO other SELECT 'a', seq FROM seq_1000_to_1100");
    let (ids, source) = shop.follow();
    let folder = server.data().join(&shop.name);
    let file = |table: &str, kind: &str| folder.join(format!("{table}.{kind}"));
    let mut other = shop.open();
    other.run("FLUSH TABLES other FOR EXPORT");
    shop.run("ALTER TABLE products DISCARD TABLESPACE");
    for kind in ["ibd", "cfg"] {
        std::fs::copy(file("other", kind), file("products", kind)).unwrap();
    }
    other.run("UNLOCK TABLES");
    shop.after(&ids, &source, "ALTER TABLE products IMPORT TABLESPACE", &[1000], &[100]);
    wait_synced(&source);
    assert!(knows(&ids, 1100));
}

#[test]
fn a_session_that_logs_only_some_columns_loses_no_id() {
    let mut shop = shop_with(100);
    let (ids, source) = shop.follow();
    let mut other = shop.open();
    other.run("SET SESSION binlog_row_image = 'MINIMAL'");
    other.run("UPDATE products SET name = 'changed' WHERE id = 5");
    other.run("UPDATE products SET id = 500 WHERE id = 6");
    other.run("INSERT INTO products (id) VALUES (501)");
    other.run("DELETE FROM products WHERE id = 7");
    shop.after(&ids, &source, "INSERT INTO products VALUES ('last', 502)", &[502], &[]);
    wait_synced(&source);
    for id in [5, 500, 501] {
        wait_until(&source, "an id of the other session", || knows(&ids, id));
    }
    wait_until(&source, "deleted", || !has(&ids, 6) && !has(&ids, 7));
}

#[test]
fn a_session_with_statements_in_the_log_costs_a_read_of_all_ids() {
    let mut shop = shop_with(100);
    let (ids, source) = shop.follow();
    shop.run("CREATE VIEW seen AS SELECT * FROM products");
    shop.run(
        "CREATE FUNCTION add_product(id BIGINT) RETURNS BIGINT DETERMINISTIC MODIFIES SQL DATA
        BEGIN INSERT INTO products VALUES ('unseen', id); RETURN id; END",
    );
    shop.run("SET SESSION binlog_format = 'STATEMENT'");
    for (id, statement) in [
        (500, "INSERT INTO products VALUES ('unseen', 500)"),
        (501, "SELECT add_product(501)"),
        (502, "SET @added = add_product(502)"),
        (503, "SET STATEMENT max_statement_time = 5 FOR INSERT INTO seen VALUES ('unseen', 503)"),
        (504, "ANALYZE INSERT INTO seen VALUES ('unseen', 504)"),
        (505, "/*!50000 INSERT INTO seen VALUES ('unseen', 505) */"),
        (506, "CREATE TABLE copy SELECT add_product(506) AS a"),
    ] {
        shop.run(statement);
        wait_until(&source, statement, || has(&ids, id));
    }
    wait_synced(&source);
    assert!((1..=100).chain(500..=506).all(|id| has(&ids, id)) && !has(&ids, 507));
}

#[test]
fn a_table_is_renamed_by_a_client_with_another_charset() {
    let mut shop = shop();
    shop.run("CREATE TABLE `Ã¤pfel` (id BIGINT PRIMARY KEY)");
    shop.run("CREATE TABLE neu (id BIGINT PRIMARY KEY)");
    shop.run("INSERT INTO neu VALUES (100)");
    let (ids, source) = follow(&shop.table("Ã¤pfel"));
    // The log has the bytes of the client.
    shop.run("SET NAMES latin1");
    shop.after(&ids, &source, "RENAME TABLE `äpfel` TO alt, neu TO `äpfel`", &[100], &[]);
}

/// The row that is deleted may have hidden the other row.
#[test]
fn the_deletion_of_one_of_several_rows_ends_the_refusal_of_a_request() {
    let (_server, mut shop) = own_shop(&[], 0);
    shop.run("CREATE TABLE offers (id INT PRIMARY KEY, product INT, INDEX (product))");
    shop.run("INSERT INTO offers VALUES (1, 5), (2, 5), (3, 6)");
    let mut options = shop.table("offers");
    options.column = "product".to_owned();
    let (ids, source) = follow_with_404s(&options, integers());
    answer_404(&ids, "5");
    answer_404(&ids, "6");
    shop.run("DELETE FROM offers WHERE id = 2");
    wait_until(&source, "deleted", || !is_404(&ids, "5") && is_404(&ids, "6"));
    assert!(has(&ids, 5));
}

/// The log contains the rows before `XA PREPARE`, and no rows at the commit.
#[test]
fn the_commit_of_a_transaction_in_two_phases_ends_the_refusal_of_a_request() {
    // On a shared server, the two-phase transactions of other tests cost full reads.
    let (_server, mut shop) = own_shop(&[], 10);
    let (ids, source) = follow_with_404s(&shop.options, integers());
    shop.run(
        "XA START 'shown'; UPDATE products SET name = 'visible' WHERE id = 5; XA END 'shown';
        XA PREPARE 'shown'",
    );
    shop.open().run("INSERT INTO products VALUES ('other', 60)");
    wait_until(&source, "a later transaction", || knows(&ids, 60));
    // The update is in the log, but the service does not find the row before the commit.
    answer_404(&ids, "5");
    assert!(is_404(&ids, "5"));
    shop.run("XA COMMIT 'shown'");
    // MariaDB logs no `XA START`, so the guard reads all ids again.
    wait_until(&source, "committed", || !is_404(&ids, "5") && ids.state() == SyncState::Synced);
}

#[test]
fn ids_of_a_cascaded_delete_pass_until_all_are_read_again() {
    let mut shop = shop();
    shop.run("CREATE TABLE brands (id INT PRIMARY KEY)");
    shop.run(
        "CREATE TABLE cars (id INT PRIMARY KEY, brand INT,
        FOREIGN KEY (brand) REFERENCES brands (id) ON DELETE CASCADE)",
    );
    shop.run("INSERT INTO brands VALUES (1), (2)");
    shop.run("INSERT INTO cars VALUES (10, 1), (20, 2)");
    let (ids, source) = follow(&shop.table("cars"));
    shop.run("DELETE FROM brands WHERE id = 1");
    shop.after(&ids, &source, "INSERT INTO cars VALUES (30, 2)", &[30], &[]);
    assert!(knows(&ids, 10), "the log has no cascaded deletes");
    source.rebuild();
    wait_until(&source, "read again", || !has(&ids, 10));
    assert!(knows(&ids, 20) && knows(&ids, 30));
}

#[test]
fn a_server_that_does_not_tell_all_changes_is_refused_with_the_sql_that_mends_it() {
    let shop = shop();
    let user = format!("u{}", shop.name);
    let as_user = shop.as_user(&format!("{user}:geheim"));
    let mut admin = shop.open();
    admin.run(&format!("CREATE USER {user} IDENTIFIED BY 'geheim'"));
    refused(&as_user, &format!("GRANT SELECT ON {}.products TO", shop.name));
    for (granted, missing) in [
        ("SELECT ON products", "GRANT REPLICATION CLIENT ON *.*"),
        ("REPLICATION CLIENT ON *.*", "GRANT REPLICATION SLAVE ON *.*"),
    ] {
        admin.run(&format!("GRANT {granted} TO {user}"));
        refused(&as_user, missing);
    }
    admin.run(&format!("GRANT REPLICATION SLAVE ON *.* TO {user}"));
    follow(&as_user);
    refused(&shop.as_user(&format!("{user}:falsch")), "Access denied");
    assert!(!format!("{as_user:?}").contains("geheim"));
}

#[test]
fn a_second_guard_needs_no_other_grants_than_the_first() {
    let (_server, mut shop) = own_shop(&[], 100);
    shop.session.create_follower("guard", "products");
    // The server counts the first one as a replica of its own.
    let followers = [(); 2].map(|()| follow(&shop.as_user("guard:geheim")));
    shop.run("INSERT INTO products VALUES ('new', 101)");
    for (ids, source) in &followers {
        wait_until(source, "inserted", || knows(ids, 101));
    }
}

#[test]
fn servers_without_rows_in_the_log_are_refused() {
    for (setting, expected) in [
        ("--binlog-format=STATEMENT", "SET GLOBAL binlog_format = 'ROW'"),
        ("--binlog-row-image=MINIMAL", "SET GLOBAL binlog_row_image = 'FULL'"),
        ("--skip-log-bin", "log_bin = binlog"),
        ("--log-bin-compress=ON", "SET GLOBAL log_bin_compress = OFF"),
    ] {
        let server = Server::start_with(&[setting]);
        refused(&server.shop().options, expected);
    }
}

#[test]
fn a_transaction_in_two_phases_that_is_rolled_back_deletes_nothing() {
    let mut shop = shop_with(10);
    let (ids, source) = shop.follow();
    shop.run(
        "XA START 'a'; DELETE FROM products WHERE id = 5;
        INSERT INTO products VALUES ('two phases', 50); XA END 'a'; XA PREPARE 'a'",
    );
    let mut other = shop.open();
    other.run("INSERT INTO products VALUES ('other', 60)");
    wait_until(&source, "a later transaction", || knows(&ids, 60));
    assert!(knows(&ids, 5));
    shop.run("XA ROLLBACK 'a'");
    other.run("INSERT INTO products VALUES ('other', 61)");
    wait_until(&source, "after the rollback", || knows(&ids, 61));
    assert!(knows(&ids, 5));
    shop.run(
        "XA START 'b'; INSERT INTO products VALUES ('two phases', 70); XA END 'b';
        XA PREPARE 'b'; XA COMMIT 'b'",
    );
    wait_until(&source, "committed", || knows(&ids, 70));
}

#[test]
fn rows_of_a_table_with_a_short_name_cost_no_further_read() {
    let mut shop = shop();
    shop.run("CREATE TABLE t (id INT PRIMARY KEY)");
    let (ids, source) = follow(&shop.table("t"));
    for id in 1..=50 {
        shop.run(&format!("INSERT INTO t VALUES ({id})"));
    }
    wait_until(&source, "inserted", || knows(&ids, 50) && !has(&ids, 51));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_table_whose_name_differs_in_its_letters_is_another_one() {
    let mut shop = shop_with(10);
    shop.run("CREATE TABLE Products (name VARCHAR(50), id BIGINT PRIMARY KEY)");
    shop.run("INSERT INTO Products VALUES ('another table', 5), ('another table', 99)");
    let (ids, source) = shop.follow();
    shop.run("DELETE FROM Products WHERE id = 5");
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 11)", &[11], &[]);
    assert!(knows(&ids, 5) && !has(&ids, 99));
}

#[test]
fn a_table_that_is_emptied_is_read_again_without_another_change() {
    let mut shop = shop_with(10);
    let (ids, source) = shop.follow();
    shop.after(&ids, &source, "TRUNCATE products", &[], &[1, 10]);
    wait_synced(&source);
}
