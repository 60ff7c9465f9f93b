//! What happens to the definition of the table. The stream does not have it.

use std::sync::Arc;
use std::time::Duration;

use tamis_sources::{IdSet, Source, SourceOptions, SyncState};

use crate::checker::*;
use crate::server::Shop;
use crate::stories::conditions::on;
use crate::stories::follow::{follow, follow_patiently, refused, reread, shop, shop_with};

#[test]
fn ids_that_change_without_rows_in_the_stream_are_read_again() {
    let mut shop = shop_with(100);
    // The server keeps the type of a column in a list.
    shop.run("ALTER PUBLICATION tamis_guard SET TABLE products");
    let (ids, source) = shop.follow();
    shop.run("ALTER TABLE products ALTER COLUMN id TYPE int USING id + 1000");
    wait_until(&source, "rewritten", || has(&ids, 1001) && !has(&ids, 1));
    wait_synced(&source);
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 5)", &[5], &[]);
    // The same type again.
    shop.run("ALTER TABLE products ALTER COLUMN id TYPE int USING id + 1000");
    wait_until(&source, "rewritten", || has(&ids, 2001) && !has(&ids, 5));
    wait_synced(&source);
    read_again(&source, || shop.run("VACUUM FULL products"));
    assert!(has(&ids, 2001));
}

#[test]
fn rows_that_are_written_without_the_log_are_found() {
    let mut shop = shop_with(10);
    shop.run("DROP PUBLICATION tamis_guard; CREATE PUBLICATION tamis_guard FOR ALL TABLES");
    let (ids, source) = shop.follow();
    // The next read of all ids waits for this transaction.
    let mut other = shop.open();
    other.run("BEGIN; CREATE TABLE other ()");
    shop.run(
        "BEGIN; ALTER TABLE products SET UNLOGGED; INSERT INTO products VALUES ('new', 11);
        ALTER TABLE products SET LOGGED; COMMIT",
    );
    let read = "the server creates the replication slot when";
    wait_broken(&source, read);
    other.run("COMMIT");
    wait_until(&source, "read again", || has(&ids, 11));
}

#[test]
fn a_partition_whose_table_is_not_published_any_more_makes_the_set_stale() {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE parent (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE part PARTITION OF parent FOR VALUES FROM (1) TO (1000);
        INSERT INTO parent VALUES (1); ALTER PUBLICATION tamis_guard ADD TABLE parent",
    );
    let (ids, source) = follow_patiently(integers(), &shop.table("part"));
    shop.run("ALTER PUBLICATION tamis_guard DROP TABLE parent");
    wait(&source, "not published", |status| status.last_error.is_some());
    assert_eq!(ids.state(), SyncState::Stale);
    shop.run("INSERT INTO parent VALUES (2)");
    shop.after(&ids, &source, "ALTER PUBLICATION tamis_guard ADD TABLE parent", &[2], &[]);
}

#[test]
fn a_column_that_is_renamed_or_dropped_makes_the_set_stale() {
    let mut shop = shop_with(10);
    let (ids, source) = follow_patiently(integers(), &shop.options);
    let failure = |part: &str| {
        wait_broken(&source, part);
        assert!(has(&ids, 5), "the ids stay");
    };
    shop.run("ALTER TABLE products RENAME COLUMN id TO product");
    failure("has no column id; it has: name, product");
    shop.run("ALTER TABLE products RENAME COLUMN product TO id");
    wait_synced(&source);
    shop.run("ALTER TABLE products RENAME TO other");
    failure("there is no table products");
    shop.run("ALTER TABLE other RENAME TO products");
    wait_synced(&source);
    shop.run("ALTER PUBLICATION tamis_guard DROP TABLE products");
    failure("ALTER PUBLICATION tamis_guard ADD TABLE public.products (id)");
    shop.run("INSERT INTO products VALUES ('unseen', 500)");
    shop.run("ALTER PUBLICATION tamis_guard ADD TABLE public.products (id)");
    wait_until(&source, "published again", || has(&ids, 500));
    wait_synced(&source);
    shop.run("DROP PUBLICATION tamis_guard");
    failure("CREATE PUBLICATION tamis_guard FOR TABLE public.products (id)");
    shop.run("CREATE PUBLICATION tamis_guard FOR ALL TABLES");
    wait_synced(&source);
    // Other columns do not matter.
    let before = source.status().generations;
    shop.run("ALTER TABLE products ADD COLUMN price int, DROP COLUMN name");
    shop.after(&ids, &source, "INSERT INTO products VALUES (501)", &[501], &[]);
    assert_eq!(source.status().generations, before);
}

#[test]
fn labels_that_are_renamed_change_the_rows_that_satisfy_a_condition() {
    let mut shop = shop();
    shop.run(
        "CREATE TYPE state AS ENUM ('draft', 'active');
        CREATE TABLE posts (id int PRIMARY KEY, state state);
        INSERT INTO posts VALUES (1, 'active'), (2, 'draft');
        ALTER PUBLICATION tamis_guard ADD TABLE posts",
    );
    let (ids, source) = follow(&on(&shop.table("posts"), "state = 'active'"));
    assert!(has(&ids, 1) && !has(&ids, 2));
    shop.run(
        "BEGIN; ALTER TYPE state RENAME VALUE 'active' TO 'old';
        ALTER TYPE state RENAME VALUE 'draft' TO 'active'; COMMIT",
    );
    wait_until(&source, "renamed", || has(&ids, 2) && !has(&ids, 1));
}

/// Starts a source of a table `loose` with the ids 1 and 2, whose index `one` can be dropped.
fn loose() -> (Shop, Arc<IdSet>, Source) {
    let mut shop = shop();
    shop.run(
        "CREATE TABLE loose (id int); ALTER TABLE loose REPLICA IDENTITY FULL;
        CREATE UNIQUE INDEX one ON loose (id); ALTER PUBLICATION tamis_guard ADD TABLE loose;
        INSERT INTO loose VALUES (1), (2)",
    );
    let (ids, source) = follow(&shop.table("loose"));
    (shop, ids, source)
}

#[test]
fn a_table_whose_index_is_dropped_deletes_no_ids() {
    let (mut shop, ids, source) = loose();
    shop.after(&ids, &source, "DELETE FROM loose WHERE id = 1", &[], &[1]);
    read_again(&source, || shop.run("DROP INDEX one; INSERT INTO loose VALUES (2)"));
    shop.run("DELETE FROM loose WHERE ctid = '(0,2)'; INSERT INTO loose VALUES (3)");
    wait_until(&source, "a later row", || has(&ids, 3));
    assert!(has(&ids, 2));
}

#[test]
fn a_deletion_while_the_index_is_missing_removes_no_id() {
    let (mut shop, ids, source) = loose();
    let before = source.status().generations;
    // The index is there at each question of the source.
    shop.run(
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
    let source = Source::start(Arc::clone(&ids), shop.table("loose"), rare);
    wait_synced(&source);
    shop.after(&ids, &source, "DELETE FROM loose WHERE id = 1", &[], &[1]);
    let before = source.status().generations;
    for sql in [
        "DROP INDEX one",
        "INSERT INTO loose VALUES (2)",
        "DELETE FROM loose WHERE ctid = (SELECT min(ctid) FROM loose WHERE id = 2)",
        "INSERT INTO loose VALUES (3)",
    ] {
        shop.run(sql);
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
    shop.run(
        "CREATE TABLE computed (a bigint PRIMARY KEY, id bigint GENERATED ALWAYS AS (a + 100) STORED UNIQUE NOT NULL);
        ALTER TABLE computed REPLICA IDENTITY FULL;
        ALTER PUBLICATION tamis_guard ADD TABLE computed;
        INSERT INTO computed (a) VALUES (1)",
    );
    refused(&shop.table("computed"), "is a generated column");
    let (ids, _source) = follow(&reread(&shop.table("computed")));
    assert!(has(&ids, 101));
}
