//! What happens to a table, and what the source must know of it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tamis_guard::source::{MysqlOptions, Source};
use tamis_guard::{IdSet, IdSetOptions, IdType, RequestKey, SyncState};

use crate::checker::{
    Committed, Random, check, has, id_set, integers, knows, options, wait, wait_synced, wait_until,
};
use crate::server::{Server, Session, Shop, start, text};
use crate::transactions;

/// Returns a database of the server that most tests share.
pub fn shop() -> Shop {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start).shop()
}

#[test]
fn rows_of_the_table_are_ids() {
    let mut shop = shop();
    shop.fill(1, 5000);
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    let status = wait_synced(&source);
    assert_eq!((status.items_read, status.generations), (5000, 1));
    assert!((1..=5000).all(|id| knows(&ids, id)) && !has(&ids, 5001));
    shop.session.run("INSERT INTO products VALUES ('new', 5001), ('new', 5002)");
    wait_until(&source, "inserted", || knows(&ids, 5002));
    shop.session.run("DELETE FROM products WHERE id = 5001");
    wait_until(&source, "deleted", || !has(&ids, 5001));
    shop.session.run("UPDATE products SET id = 6000 WHERE id = 5002");
    wait_until(&source, "changed", || knows(&ids, 6000) && !has(&ids, 5002));
    shop.session.run("UPDATE products SET name = 'other' WHERE id = 6000");
    shop.session.run("START TRANSACTION; ");
    shop.session.run("INSERT INTO products VALUES ('never', 7000)");
    shop.session.run("ROLLBACK");
    shop.session.run("INSERT INTO products VALUES ('last', 7001)");
    wait_until(&source, "after the rollback", || knows(&ids, 7001));
    assert!(knows(&ids, 6000) && !has(&ids, 7000));
    assert_eq!(source.status().generations, 1);
    wait(&source, "no lag", |status| status.lag_bytes == Some(0));
    source.stop();
    assert_eq!(ids.state(), SyncState::Stale);
}

/// Runs a random transaction, and records which ids exist.
pub fn transact(shop: &mut Shop, committed: &Committed, random: &mut Random, next: &mut u64) {
    let replace = |id| format!("REPLACE INTO products VALUES ('again', {id})");
    transactions::transact(&mut |sql| shop.session.run(sql), replace, committed, random, next);
}

#[test]
fn the_promise_holds_while_rows_change() {
    let mut shop = shop();
    shop.fill(1, 20_000);
    let (ids, committed) = (id_set(integers()), Committed::default());
    committed.insert(1..=20_000);
    let source = start(&ids, &shop.options);
    let mut random = Random(7);
    let mut next = 20_001;
    check(&source, &ids, &committed, || {
        let end = Instant::now() + Duration::from_secs(4);
        let mut count = 0;
        while Instant::now() < end || source.status().generations < 2 {
            transact(&mut shop, &committed, &mut random, &mut next);
            count += 1;
            if count % 50 == 1 {
                source.rebuild();
            }
        }
    });
    let last = committed.ids();
    wait_until(&source, "all are known", || last.iter().all(|id| knows(&ids, id)));
    assert!(source.status().generations > 1, "{:?}", source.status());
}

#[test]
fn unsigned_and_text_and_binary_ids_are_read_alike_from_rows_and_log() {
    let mut shop = shop();
    shop.session.run("CREATE TABLE big (id BIGINT UNSIGNED PRIMARY KEY)");
    shop.session.run("CREATE TABLE words (id VARCHAR(40) CHARACTER SET utf8mb4 PRIMARY KEY)");
    shop.session.run("CREATE TABLE uuids (n INT, id BINARY(16) PRIMARY KEY)");
    let of = |table: &str| MysqlOptions { table: table.to_owned(), ..shop.options.clone() };
    let (big, words, uuids) = (of("big"), of("words"), of("uuids"));
    shop.session.run("INSERT INTO big VALUES (18446744073709551615), (9223372036854775808)");
    shop.session.run("INSERT INTO words VALUES ('产品'), ('a b')");
    let uuid = |digit: char| digit.to_string().repeat(32);
    shop.session.run(&format!("INSERT INTO uuids VALUES (1, x'{}')", uuid('a')));
    let unsigned = IdType::Integer { min: 0, max: u64::MAX.into(), form: Default::default() };
    let sets = [id_set(unsigned), id_set(text()), id_set(IdType::Uuid)];
    let sources = [start(&sets[0], &big), start(&sets[1], &words), start(&sets[2], &uuids)];
    sources.iter().for_each(|source| _ = wait_synced(source));
    shop.session.run("INSERT INTO big VALUES (18446744073709551614)");
    shop.session.run("INSERT INTO words VALUES ('新')");
    shop.session.run(&format!("INSERT INTO uuids VALUES (1, x'{}')", uuid('b')));
    for (set, source, known) in [
        (&sets[0], &sources[0], "18446744073709551615 9223372036854775808 18446744073709551614"),
        (&sets[1], &sources[1], "产品 新"),
        (&sets[2], &sources[2], &format!("{} {}", uuid('a'), uuid('b'))),
    ] {
        for id in known.split(' ') {
            wait_until(source, id, || knows(set, id));
        }
    }
    assert!(knows(&sets[1], "a b") && !has(&sets[1], "b"));
}

#[test]
fn a_table_that_is_replaced_or_emptied_is_read_again() {
    let mut shop = shop();
    shop.fill(1, 100);
    shop.session.run("CREATE TABLE new_products LIKE products");
    shop.session.run("INSERT INTO new_products SELECT 'a', seq FROM seq_1000_to_1100");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("RENAME TABLE products TO old_products, new_products TO products");
    wait_until(&source, "swapped", || has(&ids, 1000) && !has(&ids, 100));
    wait_synced(&source);
    shop.session.run("TRUNCATE products");
    wait_until(&source, "truncated", || !has(&ids, 1000));
    wait_synced(&source);
    // The id has another place.
    shop.session.run("ALTER TABLE products ADD COLUMN price INT FIRST");
    shop.session.run("INSERT INTO products VALUES (5, 'a', 77)");
    wait_until(&source, "another column", || knows(&ids, 77));
    wait_synced(&source);
    assert!(!has(&ids, 5));
    shop.session.run("DROP TABLE products");
    wait(&source, "dropped", |status| {
        status.last_error.as_ref().is_some_and(|error| error.contains("there is no table"))
    });
    assert_eq!(ids.state(), SyncState::Stale);
    shop.session.run("CREATE TABLE products (id INT PRIMARY KEY)");
    shop.session.run("INSERT INTO products VALUES (88)");
    wait_until(&source, "created again", || knows(&ids, 88));
    wait_synced(&source);
}

#[test]
fn a_partition_that_is_exchanged_with_the_table_is_read() {
    let mut shop = shop();
    shop.fill(1, 100);
    shop.session.run(
        "CREATE TABLE parts (name VARCHAR(50), id BIGINT PRIMARY KEY) \
         PARTITION BY RANGE (id) (PARTITION all_ids VALUES LESS THAN MAXVALUE)",
    );
    shop.session.run("INSERT INTO parts SELECT 'a', seq FROM seq_1000_to_1100");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("ALTER TABLE parts EXCHANGE PARTITION all_ids WITH TABLE products");
    wait_until(&source, "exchanged", || has(&ids, 1000) && !has(&ids, 100));
    wait_synced(&source);
    assert!(knows(&ids, 1100));
}

#[test]
fn rows_of_an_imported_file_are_read() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 100);
    shop.session.run("CREATE TABLE other LIKE products");
    shop.session.run("INSERT INTO other SELECT 'a', seq FROM seq_1000_to_1100");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    let file =
        |table: &str, kind: &str| server.data().join(&shop.name).join(format!("{table}.{kind}"));
    let mut other = Session::open(&shop.options.url);
    other.run("FLUSH TABLES other FOR EXPORT");
    shop.session.run("ALTER TABLE products DISCARD TABLESPACE");
    for kind in ["ibd", "cfg"] {
        std::fs::copy(file("other", kind), file("products", kind)).unwrap();
    }
    other.run("UNLOCK TABLES");
    shop.session.run("ALTER TABLE products IMPORT TABLESPACE");
    wait_until(&source, "imported", || has(&ids, 1000) && !has(&ids, 100));
    wait_synced(&source);
    assert!(knows(&ids, 1100));
}

#[test]
fn a_session_that_logs_only_some_columns_loses_no_id() {
    let mut shop = shop();
    shop.fill(1, 100);
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    let mut other = Session::open(&shop.options.url);
    other.run("SET SESSION binlog_row_image = 'MINIMAL'");
    other.run("UPDATE products SET name = 'changed' WHERE id = 5");
    other.run("UPDATE products SET id = 500 WHERE id = 6");
    other.run("INSERT INTO products (id) VALUES (501)");
    other.run("DELETE FROM products WHERE id = 7");
    shop.session.run("INSERT INTO products VALUES ('last', 502)");
    wait_until(&source, "a later row", || knows(&ids, 502));
    wait_synced(&source);
    for id in [5, 500, 501] {
        wait_until(&source, "an id of the other session", || knows(&ids, id));
    }
    wait_until(&source, "deleted", || !has(&ids, 6) && !has(&ids, 7));
}

#[test]
fn a_session_with_statements_in_the_log_costs_a_read_of_all_ids() {
    let mut shop = shop();
    shop.fill(1, 100);
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("CREATE VIEW seen AS SELECT * FROM products");
    shop.session.run(
        "CREATE FUNCTION add_product(id BIGINT) RETURNS BIGINT DETERMINISTIC MODIFIES SQL DATA
        BEGIN INSERT INTO products VALUES ('unseen', id); RETURN id; END",
    );
    shop.session.run("SET SESSION binlog_format = 'STATEMENT'");
    for (id, statement) in [
        (500, "INSERT INTO products VALUES ('unseen', 500)"),
        (501, "SELECT add_product(501)"),
        (502, "SET @added = add_product(502)"),
        (503, "SET STATEMENT max_statement_time = 5 FOR INSERT INTO seen VALUES ('unseen', 503)"),
        (504, "ANALYZE INSERT INTO seen VALUES ('unseen', 504)"),
        (505, "/*!50000 INSERT INTO seen VALUES ('unseen', 505) */"),
        (506, "CREATE TABLE copy SELECT add_product(506) AS a"),
    ] {
        shop.session.run(statement);
        wait_until(&source, statement, || has(&ids, id));
    }
    wait_synced(&source);
    assert!((1..=100).chain(500..=506).all(|id| has(&ids, id)) && !has(&ids, 507));
}

#[test]
fn a_table_is_renamed_by_a_client_with_another_charset() {
    let mut shop = shop();
    shop.session.run("CREATE TABLE `Ã¤pfel` (id BIGINT PRIMARY KEY)");
    shop.session.run("CREATE TABLE neu (id BIGINT PRIMARY KEY)");
    shop.session.run("INSERT INTO neu VALUES (100)");
    let ids = id_set(integers());
    let table = "Ã¤pfel".to_owned();
    let source = start(&ids, &MysqlOptions { table, ..shop.options.clone() });
    wait_synced(&source);
    // The log has the bytes of the client.
    shop.session.run("SET NAMES latin1");
    shop.session.run("RENAME TABLE `äpfel` TO alt, neu TO `äpfel`");
    wait_until(&source, "the row of the new table", || has(&ids, 100));
}

#[test]
fn a_row_that_becomes_visible_passes_at_once() {
    let mut shop = shop();
    shop.fill(1, 10);
    let options = IdSetOptions {
        recent_for: Duration::ZERO,
        negative_for: Duration::from_secs(3600),
        is_trusted: true,
        ..IdSetOptions::new(integers())
    };
    let ids = Arc::new(IdSet::new(options).unwrap());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    let request = RequestKey::of(&http::Request::new(()).into_parts().0).unwrap();
    ids.not_found(b"5", ids.passed(b"5"), request);
    assert!(ids.is_not_found(b"5", request));
    // The service hid the row, such as by a column `deleted`.
    shop.session.run("UPDATE products SET name = 'visible' WHERE id = 5");
    wait_until(&source, "the row", || !ids.is_not_found(b"5", request));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn ids_of_a_cascaded_delete_pass_until_all_are_read_again() {
    let mut shop = shop();
    shop.session.run("CREATE TABLE brands (id INT PRIMARY KEY)");
    shop.session.run(
        "CREATE TABLE cars (id INT PRIMARY KEY, brand INT,
        FOREIGN KEY (brand) REFERENCES brands (id) ON DELETE CASCADE)",
    );
    shop.session.run("INSERT INTO brands VALUES (1), (2)");
    shop.session.run("INSERT INTO cars VALUES (10, 1), (20, 2)");
    let cars = MysqlOptions { table: "cars".to_owned(), ..shop.options.clone() };
    let ids = id_set(integers());
    let source = start(&ids, &cars);
    wait_synced(&source);
    shop.session.run("DELETE FROM brands WHERE id = 1");
    shop.session.run("INSERT INTO cars VALUES (30, 2)");
    wait_until(&source, "a later row", || knows(&ids, 30));
    assert!(knows(&ids, 10), "the log has no cascaded deletes");
    source.rebuild();
    wait_until(&source, "read again", || !has(&ids, 10));
    assert!(knows(&ids, 20) && knows(&ids, 30));
}

#[test]
fn a_server_that_does_not_tell_all_changes_is_refused_with_the_sql_that_mends_it() {
    let mut shop = shop();
    let refusal = |options: MysqlOptions, id: IdType, expected: &str| {
        let ids = id_set(id);
        let source = Source::mysql(std::sync::Arc::clone(&ids), options, self::options());
        let status = wait(&source, expected, |status| status.failures > 0);
        let error = status.last_error.unwrap();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(ids.state(), SyncState::Warming);
    };
    let good = shop.options.clone();
    let of = |table: &str, column: &str| MysqlOptions {
        table: table.to_owned(),
        column: column.to_owned(),
        ..good.clone()
    };
    refusal(of("nothing", "id"), integers(), "there is no table");
    refusal(of("products", "nothing"), integers(), "has no column nothing; it has: name, id");
    refusal(of("products", "name"), integers(), "which holds no ids of the configured type");
    refusal(of("products", "id"), IdType::Uuid, "which holds no ids of the configured type");
    let url = |url: String| MysqlOptions { url, ..good.clone() };
    refusal(url("mysql://root@127.0.0.1:1/shop".to_owned()), integers(), "cannot be read");
    refusal(url("postgres://a".to_owned()), integers(), "the URL of the database");
    refusal(url(good.url.replace(&shop.name, "")), integers(), "names no database");
    let user = format!("u{}", shop.name);
    let as_user = url(good.url.replace("root@", &format!("{user}:geheim@")));
    shop.session.run(&format!("CREATE USER {user} IDENTIFIED BY 'geheim'"));
    let grant = format!("GRANT SELECT ON {}.products TO", shop.name);
    refusal(as_user.clone(), integers(), &grant);
    shop.session.run(&format!("GRANT SELECT ON products TO {user}"));
    refusal(as_user.clone(), integers(), "GRANT REPLICATION CLIENT ON *.*");
    shop.session.run(&format!("GRANT REPLICATION CLIENT ON *.* TO {user}"));
    refusal(as_user.clone(), integers(), "GRANT REPLICATION SLAVE ON *.*");
    shop.session.run(&format!("GRANT REPLICATION SLAVE ON *.* TO {user}"));
    let ids = id_set(integers());
    wait_synced(&start(&ids, &as_user));
    let wrong = url(as_user.url.replace("geheim", "falsch"));
    refusal(wrong, integers(), "Access denied");
    assert!(!format!("{as_user:?}").contains("geheim"));
}

#[test]
fn a_second_guard_needs_no_other_grants_than_the_first() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 100);
    shop.session.run("CREATE USER guard IDENTIFIED BY 'geheim'");
    shop.session.run("GRANT SELECT ON products TO guard");
    shop.session.run("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO guard");
    let url = shop.options.url.replace("root@", "guard:geheim@");
    let as_user = MysqlOptions { url, ..shop.options.clone() };
    let sets = [id_set(integers()), id_set(integers())];
    // The server counts the first one as a replica of its own.
    let sources = sets.each_ref().map(|ids| {
        let source = start(ids, &as_user);
        wait_synced(&source);
        source
    });
    shop.session.run("INSERT INTO products VALUES ('new', 101)");
    for (ids, source) in sets.iter().zip(&sources) {
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
        let ids = id_set(integers());
        let source = start(&ids, &server.shop().options);
        let status = wait(&source, setting, |status| status.failures > 0);
        assert!(status.last_error.as_ref().unwrap().contains(expected), "{status:?}");
    }
}

#[test]
fn a_transaction_in_two_phases_that_is_rolled_back_deletes_nothing() {
    let mut shop = shop();
    shop.fill(1, 10);
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("XA START 'a'");
    shop.session.run("DELETE FROM products WHERE id = 5");
    shop.session.run("INSERT INTO products VALUES ('two phases', 50)");
    shop.session.run("XA END 'a'");
    shop.session.run("XA PREPARE 'a'");
    let mut other = Session::open(&shop.options.url);
    other.run("INSERT INTO products VALUES ('other', 60)");
    wait_until(&source, "a later transaction", || knows(&ids, 60));
    assert!(knows(&ids, 5));
    shop.session.run("XA ROLLBACK 'a'");
    other.run("INSERT INTO products VALUES ('other', 61)");
    wait_until(&source, "after the rollback", || knows(&ids, 61));
    assert!(knows(&ids, 5));
    shop.session.run("XA START 'b'");
    shop.session.run("INSERT INTO products VALUES ('two phases', 70)");
    shop.session.run("XA END 'b'");
    shop.session.run("XA PREPARE 'b'");
    shop.session.run("XA COMMIT 'b'");
    wait_until(&source, "committed", || knows(&ids, 70));
}

#[test]
fn rows_of_a_table_with_a_short_name_cost_no_further_read() {
    let mut shop = shop();
    shop.session.run("CREATE TABLE t (id INT PRIMARY KEY)");
    let t = MysqlOptions { table: "t".to_owned(), ..shop.options.clone() };
    let ids = id_set(integers());
    let source = start(&ids, &t);
    wait_synced(&source);
    for id in 1..=50 {
        shop.session.run(&format!("INSERT INTO t VALUES ({id})"));
    }
    wait_until(&source, "inserted", || knows(&ids, 50) && !has(&ids, 51));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
}

#[test]
fn a_table_whose_name_differs_in_its_letters_is_another_one() {
    let mut shop = shop();
    shop.fill(1, 10);
    shop.session.run("CREATE TABLE Products (name VARCHAR(50), id BIGINT PRIMARY KEY)");
    shop.session.run("INSERT INTO Products VALUES ('another table', 5), ('another table', 99)");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("DELETE FROM Products WHERE id = 5");
    shop.session.run("INSERT INTO products VALUES ('new', 11)");
    wait_until(&source, "inserted", || knows(&ids, 11));
    assert!(knows(&ids, 5) && !has(&ids, 99));
}

#[test]
fn two_sources_may_follow_one_server() {
    let mut shop = shop();
    shop.fill(1, 10);
    let sets = [id_set(integers()), id_set(integers())];
    let sources = [start(&sets[0], &shop.options), start(&sets[1], &shop.options)];
    sources.iter().for_each(|source| _ = wait_synced(source));
    Session::open(&shop.options.url).run("INSERT INTO products VALUES ('b', 11)");
    for (source, ids) in sources.iter().zip(&sets) {
        wait_until(source, "inserted", || knows(ids, 11));
    }
}
