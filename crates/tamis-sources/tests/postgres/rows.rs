//! What happens to the rows, and what the source must know of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis_sources::{IdType, Source, SourceOptions, SyncState};

use crate::checker::*;
use crate::server::Server;
use crate::stories::conditions::{goods, on, sets_equal_the_ids_that_the_database_selects};
use crate::stories::follow::*;

#[test]
fn writers_during_a_long_read_lose_no_id() {
    let mut shop = shop_with(300_000);
    let (ids, committed) = (id_set(integers()), Committed::of((1..=300_000).step_by(1000)));
    let source = start(&ids, &shop.options);
    let mut next = 1_000_000;
    let is_read = || source.status().generations > 1;
    check(&source, &ids, &committed, || {
        let end = Instant::now() + Duration::from_secs(30);
        while !is_read() {
            assert!(Instant::now() < end, "{:?}", source.status());
            let gone = next - 900_000 + 1;
            shop.run(&format!(
                "BEGIN; INSERT INTO products VALUES ('new', {next});
                DELETE FROM products WHERE id = {gone} AND id % 1000 != 1; COMMIT"
            ));
            committed.insert([next]);
            next += 1;
            if source.status().generations == 1 {
                source.rebuild();
            }
        }
    });
    wait_until(&source, "all are known", || (1_000_000..next).all(|id| has(&ids, id)));
    assert!(!has(&ids, 100_002) && has(&ids, 100_001));
}

#[test]
fn texts_and_uuids_are_read_alike_from_rows_and_the_stream() {
    let mut shop = shop();
    shop.run(
        r"CREATE TABLE words (id varchar(40) PRIMARY KEY);
        CREATE TABLE codes (id char(8) PRIMARY KEY);
        CREATE TABLE uuids (n int, id uuid PRIMARY KEY);
        CREATE DOMAIN small_id AS smallint;
        CREATE TABLE small (id small_id PRIMARY KEY);
        ALTER PUBLICATION tamis_guard ADD TABLE words, codes, uuids, small;
        INSERT INTO words VALUES ('产品'), ('a b'), (E'a\\b\tc\nd'), ('\N'), ('x ');
        INSERT INTO codes VALUES ('ab'), ('c d');
        INSERT INTO uuids VALUES (1, 'AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA');
        INSERT INTO small VALUES (7)",
    );
    let words = follow_as(text(), &shop.table("words"));
    let codes = follow_as(text(), &shop.table("codes"));
    let uuids = follow_as(IdType::Uuid, &shop.table("uuids"));
    let small = follow(&shop.table("small"));
    shop.run(
        r"INSERT INTO words VALUES ('新'), (E'e\\f\tg\nh'), ('y ');
        INSERT INTO codes VALUES ('ef'); INSERT INTO small VALUES (8);
        INSERT INTO uuids VALUES (1, 'BBBBBBBB-BBBB-BBBB-BBBB-BBBBBBBBBBBB')",
    );
    let uuid = |digit: &str| digit.repeat(32);
    for ((ids, source), known) in [
        (&words, &["产品", "a b", "a\\b\tc\nd", r"\N", "x ", "新", "e\\f\tg\nh", "y "][..]),
        (&codes, &["ab", "c d", "ef"]),
        (&uuids, &[&uuid("a"), &uuid("B")]),
        (&small, &["7", "8"]),
    ] {
        for id in known {
            wait_until(source, id, || has(ids, id));
        }
    }
    // Spaces at the end count in the first table, and not in the second.
    assert!(!has(&words.0, "x") && has(&codes.0, "ab      ") && !has(&codes.0, " ab"));
    shop.run("DELETE FROM codes WHERE id = 'ab'; DELETE FROM uuids");
    wait_until(&codes.1, "deleted", || !has(&codes.0, "ab"));
    wait_until(&uuids.1, "deleted", || !has(&uuids.0, uuid("a")));
}

/// The stream does not contain a long text that an update has not changed.
#[test]
fn an_update_of_a_row_with_a_long_id_ends_the_refusal_of_a_request() {
    let mut shop = shop();
    let long = "x".repeat(2500);
    shop.run(&format!(
        "CREATE TABLE long (id text PRIMARY KEY, n int);
        ALTER TABLE long ALTER id SET STORAGE EXTERNAL;
        ALTER PUBLICATION tamis_guard ADD TABLE long;
        INSERT INTO long VALUES ('{long}', 1), ('short', 1)"
    ));
    let id_type = IdType::Text { max_bytes: 3000 };
    let (ids, source) = follow_with_404s(&shop.table("long"), id_type);
    answer_404(&ids, &long);
    answer_404(&ids, "short");
    shop.run("UPDATE long SET n = 2 WHERE id <> 'short'");
    wait_until(&source, "updated", || !is_404(&ids, &long) && is_404(&ids, "short"));
    assert!(has(&ids, &long) && source.status().generations == 1);
}

/// The row that is deleted may have hidden the other row.
#[test]
fn the_deletion_of_one_of_several_rows_ends_the_refusal_of_a_request() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE offers (id int, product int); ALTER TABLE offers REPLICA IDENTITY FULL;
        ALTER PUBLICATION tamis_guard ADD TABLE offers;
        INSERT INTO offers VALUES (1, 5), (2, 5), (3, 6)",
    );
    let mut options = shop.table("offers");
    options.column = "product".to_owned();
    let (ids, source) = follow_with_404s(&options, integers());
    answer_404(&ids, "5");
    answer_404(&ids, "6");
    shop.run("DELETE FROM offers WHERE id = 2");
    wait_until(&source, "deleted", || !is_404(&ids, "5") && is_404(&ids, "6"));
    assert!(has(&ids, 5));
}

#[test]
fn a_deleted_row_is_a_deleted_id_only_if_the_id_is_unique() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE reviews (id int, product int); ALTER TABLE reviews REPLICA IDENTITY FULL;
        ALTER PUBLICATION tamis_guard ADD TABLE reviews;
        INSERT INTO reviews VALUES (1, 5), (2, 5), (3, 6)",
    );
    let mut options = shop.table("reviews");
    options.column = "product".to_owned();
    let (ids, source) = follow(&options);
    shop.run("DELETE FROM reviews WHERE id IN (1, 3); INSERT INTO reviews VALUES (4, 7)");
    wait_until(&source, "a later row", || has(&ids, 7));
    assert!(has(&ids, 5) && has(&ids, 6), "another row may have it");
    source.rebuild();
    wait_until(&source, "read again", || !has(&ids, 6));
    assert!(has(&ids, 5));
    // The order of the rows in a transaction does not matter.
    shop.run("INSERT INTO products VALUES ('a', 1), ('b', 2), ('c', 3)");
    let (ids, source) = shop.follow();
    shop.run("UPDATE products SET id = -id; UPDATE products SET id = 1 - id");
    wait_until(&source, "moved", || has(&ids, 4) && !has(&ids, 1));
    assert!(has(&ids, 2) && has(&ids, 3));
}

#[test]
fn cascaded_deletes_and_deletes_of_triggers_are_in_the_stream() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE brands (id int PRIMARY KEY);
        CREATE TABLE cars (id int PRIMARY KEY, brand int REFERENCES brands ON DELETE CASCADE);
        ALTER PUBLICATION tamis_guard ADD TABLE cars;
        INSERT INTO brands VALUES (1), (2); INSERT INTO cars VALUES (10, 1), (20, 2);
        CREATE FUNCTION copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO cars VALUES (NEW.id + 1, NULL); RETURN NULL; END $$;
        CREATE TRIGGER copy AFTER UPDATE ON brands FOR EACH ROW EXECUTE FUNCTION copy()",
    );
    let (ids, source) = follow(&shop.table("cars"));
    shop.after(&ids, &source, "DELETE FROM brands WHERE id = 1", &[], &[10]);
    shop.after(&ids, &source, "UPDATE brands SET id = 2", &[3], &[]);
    assert!(has(&ids, 20));
}

#[test]
fn a_large_transaction_is_one_step() {
    let mut shop = shop_with(1000);
    let (ids, source) = follow_patiently(integers(), &shop.options);
    shop.run("BEGIN; DELETE FROM products");
    shop.fill(500, 50_000);
    let mut other = shop.open();
    other.run("INSERT INTO products VALUES ('other', 90000)");
    wait_until(&source, "another transaction", || has(&ids, 90_000));
    assert!((1..=1000).all(|id| has(&ids, id)), "nothing is committed");
    assert!(!has(&ids, 40_000));
    shop.run("COMMIT");
    wait_until(&source, "committed", || (1..500).all(|id| !has(&ids, id)));
    assert!((500..=50_000).all(|id| has(&ids, id)));
    assert_eq!(source.status().generations, 1);
}

#[test]
fn prepared_transactions_change_nothing_before_their_commit() {
    let (_server, mut shop) = own_shop(&["max_prepared_transactions=5"], 10);
    let (ids, source) = shop.follow();
    let delete = |id| format!("BEGIN; DELETE FROM products WHERE id = {id}");
    shop.run(&(delete(5) + "; PREPARE TRANSACTION 'a'"));
    shop.run(&(delete(6) + "; PREPARE TRANSACTION 'b'"));
    shop.fill(60, 60);
    wait_until(&source, "a later transaction", || has(&ids, 60));
    assert!(has(&ids, 5) && has(&ids, 6));
    shop.run("ROLLBACK PREPARED 'a'");
    shop.after(&ids, &source, "COMMIT PREPARED 'b'", &[], &[6]);
    assert!(has(&ids, 5));
}

#[test]
fn an_open_transaction_at_the_end_of_the_log_does_not_make_the_set_stale() {
    let (_server, mut shop) = own_shop(&["checkpoint_timeout=1h", "autovacuum=off"], 0);
    let ids = id_set(integers());
    let options = SourceOptions { stale_after: Duration::from_secs(3), ..options() };
    let source = Source::start(Arc::clone(&ids), shop.options.clone(), options.clone());
    wait_synced(&source);
    shop.run("BEGIN; INSERT INTO products VALUES ('open', 5)");
    let end = Instant::now() + options.stale_after + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(ids.state(), SyncState::Synced, "{:?}", source.status());
        std::thread::sleep(Duration::from_millis(10));
    }
    shop.after(&ids, &source, "COMMIT", &[5], &[]);
}

#[test]
fn a_commit_that_is_not_on_disk_yet_is_known_in_time() {
    let mut shop = shop();
    let (ids, committed) = (id_set(integers()), Committed::default());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.run("SET synchronous_commit = off");
    check(&source, &ids, &committed, || {
        for id in 1..300 {
            shop.run(&format!("INSERT INTO products VALUES ('fast', {id})"));
            committed.insert([id]);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// A limit of the database does not end the wait.
#[test]
fn the_source_names_the_transactions_for_which_the_server_waits() {
    for timeout in ["0", "20ms"] {
        let mut shop = shop();
        shop.run(&format!("ALTER DATABASE {} SET lock_timeout = '{timeout}'", shop.name));
        shop.run("BEGIN; INSERT INTO products VALUES ('open', 5)");
        let process = shop.session.value("SELECT pg_backend_pid()");
        let ids = id_set(integers());
        let source = start(&ids, &shop.options);
        // After a wait of a second.
        wait_error(&source, &format!("pg_terminate_backend({process})"));
        shop.run("COMMIT");
        wait_synced(&source);
        assert!(has(&ids, 5));
    }
}

/// The lock of an initial snapshot stays until the server notices that the guard is lost. By default,
/// Linux sends the first probe after two hours.
#[cfg(target_os = "linux")]
#[test]
fn the_server_soon_probes_a_session_that_is_silent() {
    /// The server's ends of the connections whose next probe comes within 15 seconds.
    fn probed(port: u16) -> usize {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let is_probed = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_server = fields[1].ends_with(&format!(":{port:04X}"));
            let (timer, jiffies) = fields[5].split_once(':').unwrap();
            // Timer 2 is the timer of the keepalive probes. The time is in hundredths of a second.
            is_server && timer == "02" && u32::from_str_radix(jiffies, 16).unwrap() <= 1500
        };
        table.lines().skip(1).filter(is_probed).count()
    }
    let server = Server::start();
    let shop = server.shop();
    assert_eq!(probed(server.address().port()), 0);
    let source = start(&id_set(integers()), &shop.options);
    wait_synced(&source);
    wait_until(&source, "a session is probed", || probed(server.address().port()) > 0);
}

#[test]
fn the_rows_of_a_partitioned_table_are_ids() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE orders (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);
        CREATE TABLE orders1 PARTITION OF orders FOR VALUES FROM (0) TO (100);
        CREATE TABLE orders2 (note text, id int NOT NULL PRIMARY KEY);
        ALTER TABLE orders ATTACH PARTITION orders2 FOR VALUES FROM (100) TO (200);
        CREATE PUBLICATION parts FOR TABLE orders (id) WITH (publish_via_partition_root = true);
        INSERT INTO orders VALUES (1), (2), (101), (102)",
    );
    let mut options = shop.table("orders");
    options.publication = "parts".to_owned();
    let (ids, source) = follow_patiently(integers(), &options);
    assert!([1, 2, 101, 102].iter().all(|id| has(&ids, id)));
    shop.run("INSERT INTO orders VALUES (3), (103); DELETE FROM orders WHERE id = 101");
    wait_until(&source, "changed", || has(&ids, 103) && !has(&ids, 101));
    // The row moves to the other partition.
    shop.after(&ids, &source, "UPDATE orders SET id = 150 WHERE id = 2", &[150], &[2]);
    assert_eq!(source.status().generations, 1);
    // The stream does not have the rows that come with a partition.
    shop.run("CREATE TABLE orders3 (id int PRIMARY KEY, note text)");
    shop.run("INSERT INTO orders3 VALUES (201)");
    shop.run("ALTER TABLE orders ATTACH PARTITION orders3 FOR VALUES FROM (200) TO (300)");
    wait_until(&source, "attached", || has(&ids, 201));
    wait_synced(&source);
    shop.after(&ids, &source, "INSERT INTO orders VALUES (202)", &[202], &[]);
    let before = source.status().generations;
    shop.after(&ids, &source, "TRUNCATE orders1", &[], &[1]);
    assert!(source.status().generations > before && has(&ids, 102));
}

#[test]
fn many_deletions_cost_a_read_of_all_ids() {
    let mut shop = shop_with(5000);
    let ids = id_set(integers());
    let options = SourceOptions { max_deleted: 0.5, ..options() };
    let source = Source::start(Arc::clone(&ids), shop.options.clone(), options);
    wait_synced(&source);
    shop.run("DELETE FROM products WHERE id > 1000");
    wait(&source, "read again", |status| status.generations > 1);
    wait_until(&source, "without deleted ids", || ids.generations().deleted() == 0);
    assert!(has(&ids, 1000) && !has(&ids, 1001));
}

#[test]
fn a_condition_selects_the_same_rows_if_the_log_has_whole_old_rows() {
    let mut shop = shop();
    let options = goods(&mut shop);
    shop.run("ALTER TABLE goods REPLICA IDENTITY FULL");
    sets_equal_the_ids_that_the_database_selects(&mut shop, &options);
}

#[test]
fn a_column_of_a_condition_that_gets_values_without_the_log_is_read_again() {
    let mut shop = shop();
    let options = on(&goods(&mut shop), "stock > 0");
    let (ids, source) = follow(&options);
    // The new column has a value for each row, and the log has none of these values.
    read_again(&source, || {
        shop.run(
            "ALTER TABLE goods DROP COLUMN stock; ALTER TABLE goods ADD COLUMN stock int DEFAULT 0",
        );
    });
    assert!((1..=8).all(|id| !has(&ids, id)));
    shop.after(&ids, &source, "UPDATE goods SET stock = 1 WHERE id = 3", &[3], &[4]);
    read_again(&source, || {
        shop.run("ALTER TABLE goods ALTER COLUMN stock TYPE bigint USING 7");
    });
    assert!((1..=8).all(|id| knows(&ids, id)));
}

#[test]
fn a_long_value_that_an_update_does_not_log_keeps_its_row() {
    let mut shop = shop();
    let options = on(&goods(&mut shop), "status <> 'gone'");
    shop.run(
        "ALTER TABLE goods ALTER COLUMN status TYPE text, ALTER COLUMN status SET STORAGE EXTERNAL",
    );
    shop.run("UPDATE goods SET status = repeat('long ', 2000) WHERE id = 3");
    let (ids, source) = follow(&options);
    shop.after(&ids, &source, "UPDATE goods SET stock = 9 WHERE id = 3", &[3], &[]);
    shop.after(&ids, &source, "UPDATE goods SET status = 'gone' WHERE id = 4", &[3], &[4]);
    wait_synced(&source);
    assert!(knows(&ids, 3));
}

#[test]
fn numbers_without_a_fraction_are_read_alike_from_rows_and_stream() {
    let mut shop = shop();
    shop.run(
        "CREATE DOMAIN serial_number AS numeric(30, 0);
        CREATE TABLE whole (id numeric(20, 0) PRIMARY KEY); CREATE TABLE named (id serial_number PRIMARY KEY);
        CREATE TABLE fraction (id numeric(20, 2) PRIMARY KEY); CREATE TABLE free (id numeric PRIMARY KEY);
        ALTER PUBLICATION tamis_guard ADD TABLE whole, named, fraction, free",
    );
    for table in ["whole", "named"] {
        shop.run(&format!("INSERT INTO {table} VALUES (7), (9007199254740993)"));
        let (ids, source) = follow(&shop.table(table));
        assert!(knows(&ids, 7) && knows(&ids, 9_007_199_254_740_993_u64));
        let change = format!(
            "INSERT INTO {table} VALUES (9223372036854775807); DELETE FROM {table} WHERE id = 7"
        );
        shop.after(&ids, &source, &change, &[i64::MAX as u64], &[7]);
    }
    for table in ["fraction", "free"] {
        refused(&shop.table(table), "which holds no ids of the configured type");
    }
}
