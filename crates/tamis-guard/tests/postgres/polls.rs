//! A table that is polled.

use std::time::Duration;

use tamis_guard::IdType;
use tamis_guard::source::PostgresOptions;

use crate::checker::*;
use crate::server::{Server, Session};
use crate::stories::follow::*;
use crate::stories::polls::items;

#[test]
fn deleted_texts_and_uuids_are_looked_up_as_the_column_has_them() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE codes (at bigint, id char(8) PRIMARY KEY);
        CREATE TABLE words (at bigint, id varchar(20) PRIMARY KEY);
        CREATE TABLE uuids (at timestamp, id uuid PRIMARY KEY);
        INSERT INTO codes VALUES (1, 'a'), (1, 'b'), (NULL, 'c');
        INSERT INTO words VALUES (1, 'a '), (1, 'b'), (NULL, '产品');
        INSERT INTO uuids VALUES ('2026-01-01', '0190163d-8694-739b-aea5-966c26f8ad91'),
          ('2026-01-01', '0190163d-8694-739b-aea5-966c26f8ad92'), (NULL, gen_random_uuid())",
    );
    let uuid = |end: u32| format!("0190163d-8694-739b-aea5-966c26f8ad{end}");
    for (table, id_type, [gone, kept], deletions) in [
        ("codes", text(), ["a".to_owned(), "b".to_owned()], "VALUES ('a'), ('b'), ('none')"),
        ("words", text(), ["a ".to_owned(), "b".to_owned()], "VALUES ('a '), ('b'), ('none')"),
        (
            "uuids",
            IdType::Uuid,
            [uuid(91), uuid(92)],
            "VALUES ('0190163D8694739BAEA5966C26F8AD91'), ('{0190163d-8694-739b-aea5-966c26f8ad92}')",
        ),
    ] {
        let postgres = polled(&shop.table(table), "at", 10);
        let postgres = with(&postgres, |poll| poll.deletions = Some(deletions.to_owned()));
        let (ids, source) = follow_patiently(id_type, &postgres);
        let status = source.status();
        assert_eq!((status.invalid_rows, status.generations), (0, 1), "{table} {status:?}");
        assert!(has(&ids, &gone) && has(&ids, &kept), "{table}");
        shop.run(&format!("DELETE FROM {table} WHERE id = '{gone}'"));
        wait_until(&source, "the deletion", || !has(&ids, &gone));
        assert!(has(&ids, &kept), "{table}");
    }
}

#[test]
fn a_view_that_is_replaced_is_read_again() {
    let mut shop = shop();
    items(&mut shop, 10, "updated_at", 10);
    shop.run("CREATE VIEW named AS SELECT * FROM items WHERE id > 4");
    let options = polled(&shop.table("named"), "updated_at", 10);
    let (ids, source) = follow_patiently(integers(), &options);
    shop.run("CREATE OR REPLACE VIEW named AS SELECT * FROM items WHERE id = 1");
    wait_until(&source, "another view", || has(&ids, 1) && !has(&ids, 5));
    assert_eq!(audited(&options), [1]);
}

#[test]
fn a_table_that_is_emptied_is_read_again() {
    let mut shop = shop();
    let (ids, source) = follow(&items(&mut shop, 100, "updated_at", 100));
    // The row has a value below the bound.
    shop.run(
        "BEGIN; TRUNCATE items; INSERT INTO items (id, updated_at) VALUES (901, '2001-01-01');
        COMMIT",
    );
    wait(&source, "emptied", |status| status.generations == 2);
    wait_synced(&source);
    assert!(knows(&ids, 901) && !has(&ids, 1));
}

#[test]
fn a_column_with_another_type_is_read_as_this_type() {
    let mut shop = shop();
    shop.run("CREATE TABLE codes (at bigint, id varchar(20) PRIMARY KEY)");
    shop.run("INSERT INTO codes VALUES (1, 'a'), (2, 'b')");
    let (ids, source) = follow_patiently(text(), &polled(&shop.table("codes"), "at", 10));
    shop.run("ALTER TABLE codes ALTER id TYPE char(10)");
    wait(&source, "read again", |status| status.generations == 2);
    assert!(has(&ids, "a") && has(&ids, "b"));
}

#[test]
fn a_moment_in_the_future_hides_no_new_row() {
    let mut shop = shop();
    let postgres = items(&mut shop, 10, "updated_at", 10);
    shop.run(
        "INSERT INTO items VALUES (100, 'a', 'infinity'), (101, 'a', '2100-01-01'),
        (102, 'a', NULL); CREATE TABLE plain (id bigint, at timestamp);
        INSERT INTO plain VALUES (1, 'infinity'), (2, now())",
    );
    let (ids, source) = follow_patiently(integers(), &postgres);
    let plain = polled(&shop.table("plain"), "at", 10);
    let (others, other) = follow_patiently(integers(), &plain);
    // The bound of the next polls comes from these.
    std::thread::sleep(Duration::from_millis(100));
    shop.run("INSERT INTO items (id) VALUES (200); INSERT INTO plain VALUES (3, now())");
    wait_until(&source, "a new row", || has(&ids, 200));
    wait_until(&other, "a new row", || has(&others, 3));
    assert_eq!((source.status().generations, other.status().generations), (1, 1));
}

#[test]
fn after_a_crash_or_a_failover_all_ids_are_read() {
    let (mut server, mut shop) = own_shop(&[], 0);
    let postgres = items(&mut shop, 100, "id", 10);
    let mut standby = server.standby();
    let hosts = format!("{},{}", server.address(), standby.address());
    let (ids, source) = follow(&at(&postgres, hosts));
    // A crash may undo commits that were not synchronous. The values are then used again.
    server.kill();
    server.run();
    wait(&source, "read after a crash", |status| status.generations == 2);
    wait_synced(&source);
    // The standby lacks the last row, and gives a smaller id.
    standby.kill();
    shop.session = shop.open();
    shop.after(&ids, &source, "INSERT INTO items (id) VALUES (200)", &[200], &[]);
    server.kill();
    standby.run();
    let mut session = Session::open(&standby.url(&shop.name));
    session.run("SELECT pg_promote()");
    session.run("INSERT INTO items (id) VALUES (150)");
    wait(&source, "read after a failover", |status| status.generations == 3);
    wait_until(&source, "the smaller id", || has(&ids, 150) && !has(&ids, 200));
}

#[test]
fn what_cannot_be_polled_is_refused() {
    let mut shop = shop();
    let postgres = items(&mut shop, 10, "updated_at", 10);
    shop.run("CREATE MATERIALIZED VIEW stored AS SELECT * FROM items");
    refused(&polled(&postgres, "name", 10), "a change column is smallint, integer");
    refused(&polled(&postgres, "nothing", 10), "has no column nothing; it has: id, name");
    refused(&polled(&shop.table("stored"), "id", 10), "stored is a materialized view");
    refused(&polled(&shop.table("absent"), "id", 10), "there is no table absent");
    // Texts of a UUID in upper and lower case are one id.
    let deleting = with(&polled(&shop.table("items"), "id", 10), |poll| {
        poll.deletions = Some("SELECT name FROM items".to_owned());
    });
    let deleting = PostgresOptions { column: "name".to_owned(), ..deleting };
    refused_as(IdType::Uuid, &deleting, "a column of the type uuid");
    // The user of the documentation: it may read the table, and nothing else.
    let name = format!("poller_{}", shop.name);
    shop.run(&format!(
        "CREATE ROLE {name} LOGIN PASSWORD 'secret'; GRANT SELECT (id) ON items TO {name}"
    ));
    let poller = PostgresOptions { poll: postgres.poll, ..shop.as_user(&format!("{name}:secret")) };
    let poller = PostgresOptions { table: postgres.table, ..poller };
    let source = start(&id_set(integers()), &poller);
    let status = wait_error(&source, "run: ");
    let message = status.last_error.unwrap();
    shop.run(message.split_once("run: ").unwrap().1);
    wait_synced(&source);
}

#[test]
fn texts_need_a_database_that_knows_their_encoding() {
    let mut shop = shop();
    let ascii = format!("ascii{}", shop.name);
    shop.run(&format!("CREATE DATABASE {ascii} ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0"));
    shop.options.url = shop.options.url.replace(&shop.name, &ascii);
    shop.session = shop.open();
    let postgres = items(&mut shop, 10, "updated_at", 10);
    follow(&postgres);
    let names = PostgresOptions { column: "name".to_owned(), ..postgres };
    follow_as(IdType::Uuid, &names);
    refused_as(text(), &names, "SQL_ASCII");
}

#[test]
fn partitions_and_children_are_polled_with_their_table() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE parts (id bigint, at bigint) PARTITION BY RANGE (id);
        CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
        CREATE TABLE part2 (id bigint, at bigint);
        CREATE TABLE parent (id bigint, at bigint); CREATE TABLE child () INHERITS (parent);
        INSERT INTO parts VALUES (1, 1), (2, NULL); INSERT INTO part2 VALUES (101, 1);
        INSERT INTO parent SELECT id, id FROM generate_series(1, 60000) id;
        INSERT INTO child VALUES (70000, 70000)",
    );
    let poll = |table: &str| follow_patiently(integers(), &polled(&shop.table(table), "at", 10));
    let ((parts, source), (parents, other)) = (poll("parts"), poll("parent"));
    let read = other.status().items_read;
    assert!((60_001..70_000).contains(&read), "{read}");
    assert!(has(&parents, 70_000) && has(&parents, 60_000));
    shop.run("INSERT INTO child VALUES (70001, 70001); INSERT INTO parts VALUES (3, 2)");
    wait_until(&other, "a row of the child", || has(&parents, 70_001));
    wait_until(&source, "a row of the partition", || has(&parts, 3) && !has(&parts, 101));
    // Its row has a value below the bound.
    shop.run("ALTER TABLE parts ATTACH PARTITION part2 FOR VALUES FROM (100) TO (200)");
    wait_until(&source, "the row of the new partition", || has(&parts, 101));
}

#[test]
fn a_large_table_is_read_completely_over_few_or_many_connections() {
    // One for the test, one for the polls, one that holds the table, and one that reads.
    let server = Server::start_with(&["max_connections=4", "superuser_reserved_connections=0"]);
    let few = server.shop();
    for mut shop in [shop(), few] {
        shop.run(
            "CREATE TABLE large (at bigint, id bigint, pad char(60));
            INSERT INTO large SELECT id, id, '' FROM generate_series(1, 100000) id;
            DELETE FROM large WHERE id % 10 = 0",
        );
        let large = polled(&shop.table("large"), "at", 10);
        let (ids, source) = follow_patiently(integers(), &large);
        let status = source.status();
        // A poll finds the last row too.
        let is_read_once = (90_000..100_000).contains(&status.items_read);
        assert!(is_read_once && (status.generations, status.failures) == (1, 0), "{status:?}");
        assert!((1..=100_000).all(|id| has(&ids, id) == (id % 10 != 0)));
    }
}

#[test]
fn rows_that_move_while_they_are_read_are_not_lost() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE moving (at bigint, id bigint PRIMARY KEY, pad char(60));
        INSERT INTO moving SELECT id, id, '' FROM generate_series(1, 200000) id;
        DELETE FROM moving WHERE id <= 100000",
    );
    // Makes room in the first blocks. Rows move there, and no other column changes.
    shop.run("VACUUM moving");
    let (ids, source) = follow_patiently(integers(), &polled(&shop.table("moving"), "at", 10));
    let mut end = 200_000;
    for round in 2..6 {
        source.rebuild();
        while source.status().generations < round {
            let first = end - 500;
            shop.run(&format!(
                "UPDATE moving SET pad = 'moved' WHERE id > {first} AND id <= {end}"
            ));
            end = if first == 100_000 { 200_000 } else { first };
        }
        let lost = (100_001..=200_000).filter(|id| !has(&ids, id)).count();
        assert_eq!(lost, 0, "in generation {round}");
    }
}
