//! What happens to the definition of the table. The stream does not have it.

use std::sync::Arc;
use std::time::Duration;

use tamis_guard::source::{PollOptions, PostgresOptions, Source, SourceOptions};
use tamis_guard::{IdSet, SyncState};

use crate::checker::{id_set, integers, options, wait, wait_synced, wait_until};
use crate::server::{Session, Shop, has, start, start_patient};
use crate::stories::shop;

#[test]
fn a_table_that_is_replaced_or_emptied_is_read_again() {
    let mut shop = shop();
    shop.fill(1, 100);
    shop.session.run(
        "CREATE TABLE new_products (LIKE products INCLUDING ALL);
        ALTER PUBLICATION tamis_guard ADD TABLE new_products (id);
        INSERT INTO new_products SELECT 'a', id FROM generate_series(1000, 1100) id",
    );
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run(
        "BEGIN; ALTER TABLE products RENAME TO old_products;
        ALTER TABLE new_products RENAME TO products; COMMIT;
        INSERT INTO products VALUES ('after', 2000)",
    );
    wait_until(&source, "swapped", || has(&ids, 1000) && has(&ids, 2000) && !has(&ids, 100));
    wait_synced(&source);
    let before = source.status().generations;
    shop.session.run("INSERT INTO old_products VALUES ('other table', 3000)");
    shop.session.run("TRUNCATE products");
    shop.session.run("INSERT INTO products VALUES ('after', 1001)");
    wait_until(&source, "truncated", || !has(&ids, 1000) && has(&ids, 1001));
    assert!(source.status().generations > before && !has(&ids, 3000));
    wait_synced(&source);
}

#[test]
fn ids_that_change_without_rows_in_the_stream_are_read_again() {
    let mut shop = shop();
    shop.fill(1, 100);
    // The server keeps the type of a column in a list.
    shop.session.run("ALTER PUBLICATION tamis_guard SET TABLE products");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    shop.session.run("ALTER TABLE products ALTER COLUMN id TYPE int USING id + 1000");
    wait_until(&source, "rewritten", || has(&ids, 1001) && !has(&ids, 1));
    wait_synced(&source);
    shop.session.run("INSERT INTO products VALUES ('new', 5)");
    wait_until(&source, "inserted", || has(&ids, 5));
    // The same type again.
    shop.session.run("ALTER TABLE products ALTER COLUMN id TYPE int USING id + 1000");
    wait_until(&source, "rewritten", || has(&ids, 2001) && !has(&ids, 5));
    wait_synced(&source);
    let before = source.status().generations;
    shop.session.run("VACUUM FULL products");
    wait(&source, "new files", |status| status.generations > before);
    wait_synced(&source);
    assert!(has(&ids, 2001));
}

#[test]
fn rows_that_are_written_without_the_log_are_found() {
    let mut shop = shop();
    shop.fill(1, 10);
    shop.session.run("DROP PUBLICATION tamis_guard; CREATE PUBLICATION tamis_guard FOR ALL TABLES");
    let ids = id_set(integers());
    let source = start(&ids, &shop.options);
    wait_synced(&source);
    // The next read of all ids waits for this transaction.
    let mut other = Session::open(&shop.options.url);
    other.run("BEGIN; CREATE TABLE other ()");
    shop.session.run(
        "BEGIN; ALTER TABLE products SET UNLOGGED; INSERT INTO products VALUES ('new', 11);
        ALTER TABLE products SET LOGGED; COMMIT",
    );
    let read = "the server creates the replication slot when";
    wait(&source, "a new read", |status| {
        status.last_error.as_ref().is_some_and(|error| error.contains(read))
    });
    assert_eq!(ids.state(), SyncState::Stale);
    other.run("COMMIT");
    wait_until(&source, "read again", || has(&ids, 11));
}

#[test]
fn a_partition_whose_table_is_not_published_any_more_makes_the_set_stale() {
    let mut shop = shop();
    shop.session.run(
        "CREATE TABLE parent (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE part PARTITION OF parent FOR VALUES FROM (1) TO (1000);
        INSERT INTO parent VALUES (1); ALTER PUBLICATION tamis_guard ADD TABLE parent",
    );
    let ids = id_set(integers());
    let source = start_patient(&ids, &shop.table("part"));
    wait_synced(&source);
    shop.session.run("ALTER PUBLICATION tamis_guard DROP TABLE parent");
    wait(&source, "not published", |status| status.last_error.is_some());
    assert_eq!(ids.state(), SyncState::Stale);
    shop.session.run("INSERT INTO parent VALUES (2)");
    shop.session.run("ALTER PUBLICATION tamis_guard ADD TABLE parent");
    wait_until(&source, "published again", || has(&ids, 2));
}

#[test]
fn a_column_that_is_renamed_or_dropped_makes_the_set_stale() {
    let mut shop = shop();
    shop.fill(1, 10);
    let ids = id_set(integers());
    let source = start_patient(&ids, &shop.options);
    wait_synced(&source);
    let failure = |what: &str, part: &str| {
        wait(&source, what, |status| {
            status.last_error.as_ref().is_some_and(|error| error.contains(part))
        });
        assert_eq!(ids.state(), SyncState::Stale);
        assert!(has(&ids, 5), "the ids stay");
    };
    shop.session.run("ALTER TABLE products RENAME COLUMN id TO product");
    failure("renamed", "has no column id; it has: name, product");
    shop.session.run("ALTER TABLE products RENAME COLUMN product TO id");
    wait_synced(&source);
    shop.session.run("ALTER TABLE products RENAME TO other");
    failure("another name", "there is no table products");
    shop.session.run("ALTER TABLE other RENAME TO products");
    wait_synced(&source);
    shop.session.run("ALTER PUBLICATION tamis_guard DROP TABLE products");
    failure("not published", "ALTER PUBLICATION tamis_guard ADD TABLE public.products (id)");
    shop.session.run("INSERT INTO products VALUES ('unseen', 500)");
    shop.session.run("ALTER PUBLICATION tamis_guard ADD TABLE public.products (id)");
    wait_until(&source, "published again", || has(&ids, 500));
    wait_synced(&source);
    shop.session.run("DROP PUBLICATION tamis_guard");
    failure("no publication", "CREATE PUBLICATION tamis_guard FOR TABLE public.products (id)");
    shop.session.run("CREATE PUBLICATION tamis_guard FOR ALL TABLES");
    wait_synced(&source);
    // Other columns do not matter.
    let before = source.status().generations;
    shop.session.run("ALTER TABLE products ADD COLUMN price int, DROP COLUMN name");
    shop.session.run("INSERT INTO products VALUES (501)");
    wait_until(&source, "another column", || has(&ids, 501));
    assert_eq!(source.status().generations, before);
}

/// Starts a source of a table `loose` with the ids 1 and 2, whose index `one` can be dropped.
fn loose() -> (Shop, Arc<IdSet>, Source) {
    let mut shop = shop();
    shop.session.run(
        "CREATE TABLE loose (id int); ALTER TABLE loose REPLICA IDENTITY FULL;
        CREATE UNIQUE INDEX one ON loose (id); ALTER PUBLICATION tamis_guard ADD TABLE loose;
        INSERT INTO loose VALUES (1), (2)",
    );
    let ids = id_set(integers());
    let source = start(&ids, &shop.table("loose"));
    wait_synced(&source);
    (shop, ids, source)
}

#[test]
fn a_table_whose_index_is_dropped_deletes_no_ids() {
    let (mut shop, ids, source) = loose();
    shop.session.run("DELETE FROM loose WHERE id = 1");
    wait_until(&source, "deleted", || !has(&ids, 1));
    let before = source.status().generations;
    shop.session.run("DROP INDEX one; INSERT INTO loose VALUES (2)");
    wait(&source, "read again", |status| status.generations > before);
    wait_synced(&source);
    shop.session.run("DELETE FROM loose WHERE ctid = '(0,2)'; INSERT INTO loose VALUES (3)");
    wait_until(&source, "a later row", || has(&ids, 3));
    assert!(has(&ids, 2));
}

#[test]
fn a_deletion_while_the_index_is_missing_removes_no_id() {
    let (mut shop, ids, source) = loose();
    let before = source.status().generations;
    // The index is there at each question of the source.
    shop.session.run(
        "BEGIN; DROP INDEX one; INSERT INTO loose VALUES (2);
        DELETE FROM loose WHERE ctid = '(0,2)'; CREATE UNIQUE INDEX one ON loose (id); COMMIT",
    );
    wait(&source, "read again", |status| status.generations > before);
    wait_synced(&source);
    assert!(has(&ids, 2));
}

#[test]
fn a_deletion_right_after_a_constraint_is_dropped_removes_no_id() {
    let (mut shop, _, source) = loose();
    drop(source);
    // The source looks at the catalog long after the deletion.
    let rare = SourceOptions {
        interval: Duration::from_secs(3),
        stale_after: Duration::from_secs(60),
        ..options()
    };
    let ids = id_set(integers());
    let source = Source::postgres(Arc::clone(&ids), shop.table("loose"), rare);
    wait_synced(&source);
    shop.session.run("DELETE FROM loose WHERE id = 1");
    wait_until(&source, "deleted", || !has(&ids, 1));
    let before = source.status().generations;
    for sql in [
        "DROP INDEX one",
        "INSERT INTO loose VALUES (2)",
        "DELETE FROM loose WHERE ctid = (SELECT min(ctid) FROM loose WHERE id = 2)",
        "INSERT INTO loose VALUES (3)",
    ] {
        shop.session.run(sql);
    }
    wait_until(&source, "a later row", || has(&ids, 3));
    assert!(has(&ids, 2));
    wait(&source, "read again", |status| status.generations > before);
    wait_synced(&source);
    assert!(has(&ids, 2));
}

#[test]
fn a_generated_column_is_refused() {
    let mut shop = shop();
    shop.session.run(
        "CREATE TABLE computed (a bigint PRIMARY KEY, id bigint GENERATED ALWAYS AS (a + 100) STORED UNIQUE NOT NULL);
        ALTER TABLE computed REPLICA IDENTITY FULL;
        ALTER PUBLICATION tamis_guard ADD TABLE computed;
        INSERT INTO computed (a) VALUES (1)",
    );
    let computed = PostgresOptions { table: "computed".to_owned(), ..shop.options.clone() };
    let source = start(&id_set(integers()), &computed);
    wait(&source, "refused", |status| {
        status.last_error.as_ref().is_some_and(|error| error.contains("is a generated column"))
    });
    let poll = Some(PollOptions::default());
    let ids = id_set(integers());
    wait_synced(&start(&ids, &PostgresOptions { poll, ..computed }));
    assert!(has(&ids, 101));
}
