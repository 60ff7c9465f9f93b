//! Ids in an SQLite database.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tamis_sources::{IdSet, IdType, Source, SourceKind, SourceOptions, SqliteOptions, SyncState};

use crate::checker::*;
use crate::sqlite_shop::Shop;
use crate::transactions::{Change, transact};

#[test]
fn texts_pass_that_the_database_finds() {
    let shop = Shop::new("wal");
    for (collation, spellings, is_precise) in [
        ("BINARY", &["Abc"][..], true),
        ("RTRIM", &["Abc", "Abc  "], true),
        ("NOCASE", &["Abc", "abc", "ABC"], false),
    ] {
        shop.run(&format!(
            "DROP TABLE IF EXISTS words; DELETE FROM deleted;
            CREATE TABLE words (id TEXT COLLATE {collation} PRIMARY KEY, at INTEGER);
            INSERT INTO words VALUES ('Abc', 1), ('gone', 1)"
        ));
        for column in [None, Some("at")] {
            let sqlite = SqliteOptions {
                from: "words".to_owned(),
                deletions: column.map(|_| "SELECT id FROM deleted".to_owned()),
                ..shop.options(column, 10)
            };
            let (ids, source) = follow_as(text(), sqlite);
            for spelling in spellings {
                let count = "SELECT COUNT(*) FROM words WHERE id = ?1";
                let count: u32 =
                    shop.connection.query_row(count, [spelling], |row| row.get(0)).unwrap();
                assert!(count == 1 && knows(&ids, spelling), "{collation} {spelling}");
            }
            assert!(!knows(&ids, "abd") && !knows(&ids, " Abc"), "{collation}");
            assert_eq!(knows(&ids, "aBC"), !is_precise, "{collation}");
            if column.is_some() {
                shop.run(
                    "DELETE FROM words WHERE id = 'gone'; INSERT INTO words VALUES ('new', 2);
                    INSERT INTO deleted VALUES ('gone')",
                );
                wait_until(&source, "the new row", || {
                    knows(&ids, "new") && knows(&ids, "gone") != is_precise
                });
            }
        }
    }
}

pub fn start(ids: &Arc<IdSet>, sqlite: impl SourceKind) -> Source {
    Source::start(Arc::clone(ids), sqlite, options())
}

/// Starts a source of integers, and waits until its set is synced.
pub fn follow(sqlite: impl SourceKind) -> (Arc<IdSet>, Source) {
    follow_as(integers(), sqlite)
}

fn follow_as(id: IdType, sqlite: impl SourceKind) -> (Arc<IdSet>, Source) {
    synced(id, |ids| start(ids, sqlite))
}

/// Inserts, updates and deletes rows in random transactions.
pub fn write(shop: &Shop, committed: &Committed, random: &mut Random, time: Duration) {
    static START: OnceLock<Instant> = OnceLock::new();
    let (start, end) = (START.get_or_init(Instant::now), Instant::now() + time);
    let now = || 1_000_000 + start.elapsed().as_micros();
    let sql = |change| match change {
        Change::Delete(id) => {
            format!("DELETE FROM products WHERE id = {id}; INSERT INTO deleted VALUES ({id})")
        }
        Change::Update(id) => {
            format!("UPDATE products SET updated_at = {} WHERE id = {id}", now())
        }
        // Some programs leave the column empty.
        Change::Insert(id) if id % 8 == 0 => format!("INSERT INTO products (id) VALUES ({id})"),
        Change::Insert(id) => format!("INSERT INTO products VALUES ({id}, {}, '')", now()),
    };
    // The largest id until now. Its row may be deleted.
    let last = "SELECT seq FROM sqlite_sequence WHERE name = 'products'";
    let last: i64 = shop.connection.query_row(last, [], |row| row.get(0)).unwrap();
    let mut next = last as u64 + 1;
    while Instant::now() < end {
        transact(&mut |sql| shop.run(sql), sql, committed, random, &mut next);
        std::thread::sleep(Duration::from_millis(random.below(15)));
    }
}

fn keeps_the_promise(journal: &str, column: Option<&str>, deletions: Option<&str>, seed: u64) {
    let shop = Shop::filled(journal, 1000);
    let (ids, source) = follow(SqliteOptions {
        deletions: deletions.map(str::to_owned),
        reread: Duration::from_millis(300),
        ..shop.options(column, 500)
    });
    let committed = Committed::of(1..=1000);
    let mut random = Random(seed);
    check(&source, &ids, &committed, || {
        write(&shop, &committed, &mut random, Duration::from_secs(3));
    });
    let case = format!("{journal} {column:?}");
    assert!(source.status().generations > 2, "{case}: {:?}", source.status());
    let last = committed.ids();
    wait_until(&source, &case, || last.iter().all(|id| knows(&ids, id)));
    // The next read of all ids finds the deletions.
    wait_until(&source, &case, || {
        let is_live = |id: &u64| last.binary_search(id).is_ok();
        ids.state() == SyncState::Synced && (1..=1000).all(|id| is_live(&id) == knows(&ids, id))
    });
}

#[test]
fn no_id_is_refused_while_all_ids_are_read_after_each_change() {
    keeps_the_promise("delete", None, None, 1);
    keeps_the_promise("wal", None, None, 2);
}

#[test]
fn no_id_is_refused_while_new_keys_are_polled() {
    keeps_the_promise("delete", Some("id"), None, 3);
    keeps_the_promise("wal", Some("id"), Some("SELECT id FROM deleted"), 4);
}

#[test]
fn no_id_is_refused_while_updated_rows_are_polled() {
    keeps_the_promise("delete", Some("updated_at"), Some("SELECT id FROM deleted"), 5);
    keeps_the_promise("wal", Some("updated_at"), None, 6);
}

/// Returns whether a row is found that commits 200 ms after it took its value, behind others.
fn finds_late_commit(overlap_ms: u64) -> bool {
    let shop = Shop::filled("wal", 100);
    let (ids, source) = follow(shop.options(Some("updated_at"), overlap_ms));
    for other in 0..20 {
        shop.run(&format!("INSERT INTO products VALUES (NULL, {}, '')", 2000 + other));
        std::thread::sleep(Duration::from_millis(10));
    }
    wait_until(&source, "the other rows", || knows(&ids, 120));
    // It took the value 1999 before the others took theirs.
    shop.run("INSERT INTO products VALUES (5000, 1999, '')");
    shop.run("INSERT INTO products VALUES (5001, 2020, '')");
    wait_until(&source, "the next row", || knows(&ids, 5001));
    assert_eq!(source.status().generations, 1);
    knows(&ids, 5000)
}

#[test]
fn a_late_commit_is_found_within_the_overlap() {
    assert!(finds_late_commit(3000));
    assert!(!finds_late_commit(0), "without an overlap, the next read of all ids finds it");
}

#[test]
fn the_next_read_of_all_ids_finds_what_polls_miss() {
    let shop = Shop::filled("wal", 1000);
    let reread = Duration::from_millis(200);
    let (ids, source) = follow(SqliteOptions { reread, ..shop.options(Some("id"), 10) });
    shop.run("DELETE FROM products WHERE id = 7 OR id = 1000");
    wait_until(&source, "the deletion", || !knows(&ids, 7) && !knows(&ids, 1000));
    shop.run("INSERT INTO products (id) VALUES (7)");
    wait_until(&source, "the old id", || knows(&ids, 7));
    // A database without commits is not read.
    std::thread::sleep(Duration::from_millis(500));
    let before = source.status();
    std::thread::sleep(Duration::from_millis(500));
    let after = source.status();
    assert_eq!((before.generations, before.items_read), (after.generations, after.items_read));
    assert_eq!(after.state, SyncState::Synced);
}

#[test]
fn new_rows_are_found_during_a_long_read() {
    let shop = Shop::filled("wal", 100_000);
    let sqlite = SqliteOptions { chunk: 5, reread: Duration::ZERO, ..shop.options(Some("id"), 10) };
    let (ids, source) = follow(sqlite);
    // The read may end before the row is found. Then the next row decides.
    let is_found = |attempt| {
        let id = 100_001 + 2 * attempt;
        shop.run(&format!("INSERT INTO products (id) VALUES ({id})"));
        wait_until(&source, "the row that starts a read", || knows(&ids, id));
        std::thread::sleep(Duration::from_millis(50));
        let before = source.status().generations;
        shop.run(&format!("INSERT INTO products (id) VALUES ({})", id + 1));
        wait_until(&source, "the new row", || knows(&ids, id + 1));
        let is_found = source.status().generations == before;
        wait(&source, "the end of the read", |status| status.generations > before);
        is_found
    };
    assert!((0..10).any(is_found));
}

#[test]
fn a_query_for_deletions_refuses_at_once_and_spares_live_rows() {
    let shop = Shop::filled("wal", 1000);
    let deletions = Some("SELECT id FROM deleted".to_owned());
    let (ids, source) = follow(SqliteOptions { deletions, ..shop.options(Some("id"), 10) });
    shop.run("DELETE FROM products WHERE id = 7; INSERT INTO deleted VALUES (7), (8), ('x')");
    wait_until(&source, "the deletion", || !knows(&ids, 7));
    assert!(knows(&ids, 8), "its row exists");
    // The deleted id is created again, below the bound.
    shop.run("INSERT INTO products (id) VALUES (7)");
    wait_until(&source, "the id", || knows(&ids, 7));
    assert_eq!(source.status().generations, 1);
}

#[test]
fn a_condition_selects_rows_and_any_type_is_an_id() {
    let shop = Shop::new("delete");
    shop.run(
        "CREATE TABLE items (id, at INTEGER, gone INTEGER);
        INSERT INTO items VALUES (1, 1, 0), ('02', 2, 0), (3.0, 3, 0), (NULL, 4, 0), ('x', 5, 0),
            (x'34', 6, 0), (6, 7, 1), ('7', 8, 0), (7, 9, 0);",
    );
    for column in [None, Some("at")] {
        let condition = Some("NOT gone".to_owned());
        let from = "items".to_owned();
        // Each chunk ends at another type.
        let sqlite = SqliteOptions { from, condition, chunk: 1, ..shop.options(column, 10) };
        let (ids, source) = follow(sqlite);
        assert!([1, 2, 3, 4, 7].iter().all(|id| knows(&ids, id)) && !knows(&ids, 6));
        assert_eq!(source.status().invalid_rows, 1, "{column:?}");
    }
}

#[test]
fn equal_texts_of_another_case_are_different_ids() {
    let shop = Shop::new("delete");
    shop.run("CREATE TABLE names (name TEXT COLLATE NOCASE)");
    let names = ["a", "A", "b", "B", "aB", "Ab", "AB", "ab"];
    for name in names {
        shop.connection.execute("INSERT INTO names VALUES (?1)", [name]).unwrap();
    }
    let sqlite = SqliteOptions { chunk: 1, ..SqliteOptions::new(&shop.path, "names", "name") };
    let (ids, _source) = follow_as(text(), sqlite);
    for name in names {
        assert!(knows(&ids, name), "{name}");
    }
}

#[test]
fn a_million_rows_are_read_while_rows_are_added() {
    let shop = Shop::filled("wal", 1_000_000);
    let ids = id_set(integers());
    let chunk = 10_000;
    let sqlite = SqliteOptions { chunk, ..shop.options(Some("id"), 50) };
    let times = SourceOptions { stale_after: Duration::from_secs(5), ..options() };
    let source = Source::start(Arc::clone(&ids), sqlite, times);
    // During the first read.
    for id in 1_000_001..=1_000_100 {
        shop.run(&format!("INSERT INTO products (id) VALUES ({id})"));
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = wait_synced(&source);
    wait_until(&source, "the last row", || knows(&ids, 1_000_100));
    assert!((1..=1_000_100).all(|id| ids.generations().contains(id.to_string().as_bytes())));
    assert!(!knows(&ids, 1_000_101));
    assert_eq!(status.generations, 1);
    let status = wait(&source, "all rows", |status| status.items_read >= 1_000_100);
    assert!(status.failures == 0, "{status:?}");
}

#[test]
fn a_stop_interrupts_a_query() {
    let shop = Shop::filled("wal", 1000);
    let ids = id_set(integers());
    // A thousand million rows, none of which counts.
    let from = "(SELECT one.id FROM products one, products other, products third
        WHERE one.name + other.name + third.name > 0)";
    let from = from.to_owned();
    let source = start(&ids, SqliteOptions { from, ..shop.options(None, 0) });
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    source.stop();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(ids.state(), SyncState::Warming);
}

#[test]
fn many_deleted_ids_and_age_and_a_request_give_a_new_generation() {
    let shop = Shop::filled("wal", 4000);
    let sqlite = SqliteOptions {
        deletions: Some("SELECT id FROM deleted".to_owned()),
        ..shop.options(Some("id"), 0)
    };
    let (ids, source) = follow(sqlite.clone());
    let delete = |from: u32, to: u32| {
        let ids = format!("WHERE id BETWEEN {from} AND {to}");
        shop.run(&format!(
            "INSERT INTO deleted SELECT id FROM products {ids}; DELETE FROM products {ids}"
        ));
    };
    delete(1, 900);
    wait_until(&source, "deleted", || !knows(&ids, 900));
    source.rebuild();
    let status = wait(&source, "asked for", |status| status.generations == 2);
    assert!(status.generation_age.is_some());
    assert!(!knows(&ids, 900) && knows(&ids, 901) && ids.generations().deleted() <= 900);
    // A quarter of all ids.
    delete(901, 2500);
    wait(&source, "too many deleted ids", |status| status.generations >= 3);
    wait_until(&source, "collected", || ids.generations().items() == 1500);
    assert!(!knows(&ids, 2500) && knows(&ids, 2501));
    drop(source);
    let times = SourceOptions { rebuild_after: Some(Duration::from_millis(50)), ..options() };
    let source = Source::start(Arc::clone(&ids), sqlite, times);
    wait(&source, "old", |status| status.generations >= 3);
}
