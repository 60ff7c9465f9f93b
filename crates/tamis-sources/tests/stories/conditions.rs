//! A source with a condition on the rows of its table.

use std::time::Duration;

use super::database::Database as _;
use super::follow::*;
use super::polls::items;
use super::restarts::goes_on;
use tamis_sources::{IdSet, Source};

use crate::checker::*;
use crate::server::{Server, Shop};

/// Conditions on the columns of the table `goods`.
const CONDITIONS: [&str; 12] = [
    "deleted_at IS NULL",
    "status = 'active'",
    "status <> 'gone' AND deleted_at IS NULL",
    "NOT (status = 'it''s' OR stock < 1)",
    "status IN ('active', 'gone')",
    "status NOT IN ('gone', 'active ')",
    "stock",
    "stock >= 1 AND stock != 5",
    "is_new = TRUE",
    "NOT is_new OR status IS NULL",
    "kind = 'used'",
    "(kind IS NOT NULL AND stock IN (-1, 5)) OR deleted_at IS NOT NULL",
];

/// The ids of the table `goods` are from 1 to this number.
const LAST: u64 = 16;

/// Creates the table `goods` with some rows.
pub fn goods(shop: &mut Shop) -> Options {
    shop.run(Server::GOODS);
    let numbers = Server::numbers(1, LAST / 2);
    shop.run(&format!(
        "INSERT INTO goods (id, status, stock) SELECT id, 'active', 1 FROM ({numbers}) n"
    ));
    shop.table("goods")
}

pub fn on(options: &Options, condition: &str) -> Options {
    Options { condition: Some(condition.to_owned()), ..options.clone() }
}

/// Returns a random change of the table `goods`.
fn random_change(random: &mut Random) -> String {
    fn one<'v>(random: &mut Random, values: &[&'v str]) -> &'v str {
        values[random.below(values.len() as u64) as usize]
    }
    let id = 1 + random.below(LAST);
    let column = one(random, &["status", "stock", "is_new", "kind", "deleted_at", "id"]);
    let value = match column {
        "status" => one(random, &["NULL", "'active'", "'gone'", "'it''s'", "''"]),
        "stock" => one(random, &["NULL", "-1", "0", "1", "5"]),
        "is_new" => one(random, &["NULL", "TRUE", "FALSE"]),
        "kind" => one(random, &["NULL", "'new'", "'used'"]),
        "deleted_at" => one(random, &["NULL", "'2026-01-02 03:04:05'"]),
        _ => "",
    };
    let delete = |id| format!("DELETE FROM goods WHERE id = {id}");
    match random.below(6) {
        0 => delete(id),
        1 => format!("{}; INSERT INTO goods (id) VALUES ({id})", delete(id)),
        _ if column == "id" => {
            let to = 1 + random.below(LAST);
            format!("{}; UPDATE goods SET id = {to} WHERE id = {id}", delete(to))
        }
        _ => format!("UPDATE goods SET {column} = {value} WHERE id = {id}"),
    }
}

/// Follows the table with each condition, changes rows at random, and compares the set with the ids that the database
/// returns for the condition.
pub fn sets_equal_the_ids_that_the_database_selects(shop: &mut Shop, options: &Options) {
    let mut random = Random(29);
    // A server has few replication slots.
    for conditions in CONDITIONS.chunks(4) {
        let follow = |condition: &&str| {
            let options = on(options, condition);
            let (ids, source) = follow_patiently(integers(), &options);
            (options, ids, source)
        };
        let sources: Vec<_> = conditions.iter().map(follow).collect();
        for round in 0..12 {
            for _ in 0..8 {
                // Some transactions change a row several times.
                let changes: Vec<_> =
                    (0..1 + random.below(3)).map(|_| random_change(&mut random)).collect();
                shop.run(&format!("START TRANSACTION; {}; COMMIT", changes.join("; ")));
            }
            for (options, ids, source) in &sources {
                let expected = audited(options);
                let known = || (1..=LAST).filter(|&id| has(ids, id)).collect::<Vec<_>>();
                let what = format!("{:?} selects {expected:?}", options.condition);
                wait_until(source, &what, || known() == expected);
                if round == 6 {
                    read_again(source, || source.rebuild());
                    assert_eq!(known(), expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_set_has_the_ids_that_the_database_selects() {
    let mut shop = shop();
    let options = goods(&mut shop);
    sets_equal_the_ids_that_the_database_selects(&mut shop, &options);
}

#[test]
fn rows_move_into_a_condition_and_out_of_it() {
    let mut shop = shop();
    let options = on(&goods(&mut shop), "status = 'active' AND deleted_at IS NULL");
    let (ids, source) = follow(&options);
    assert!((1..=8).all(|id| knows(&ids, id)));
    let mut after = |sql: &str, known: &[u64], gone: &[u64]| {
        shop.after(&ids, &source, sql, known, gone);
    };
    after("UPDATE goods SET deleted_at = '2026-01-02 03:04:05' WHERE id = 1", &[], &[1]);
    after("UPDATE goods SET stock = 7 WHERE id = 1", &[], &[1]);
    after("UPDATE goods SET deleted_at = NULL WHERE id = 1", &[1], &[]);
    after("UPDATE goods SET status = NULL WHERE id = 2", &[1], &[2]);
    after("INSERT INTO goods (id, status) VALUES (10, 'draft'), (11, 'active')", &[11], &[10]);
    after("UPDATE goods SET status = 'active' WHERE id = 10", &[10], &[]);
    // The row leaves the condition and gets another id, in one update.
    after("UPDATE goods SET id = 12, status = 'draft' WHERE id = 3", &[], &[3, 12]);
    after("UPDATE goods SET id = 13, status = 'active' WHERE id = 12", &[13], &[12]);
    // Within a transaction, the row leaves the condition and returns.
    after(
        "START TRANSACTION; UPDATE goods SET status = 'x' WHERE id = 4; \
         UPDATE goods SET status = 'active' WHERE id = 4; DELETE FROM goods WHERE id = 5; COMMIT",
        &[4],
        &[5],
    );
}

#[test]
fn a_filter_is_planned_for_the_rows_that_count() {
    let mut shop = shop();
    let options = on(&goods(&mut shop), "stock = 2");
    let numbers = Server::numbers(1000, 60_000);
    shop.run(&format!("INSERT INTO goods (id, stock) SELECT id, id % 100 FROM ({numbers}) n"));
    shop.run(Server::ANALYZE_GOODS);
    let (ids, source) = follow(&options);
    let planned_for_all = ids.generations().bytes();
    read_again(&source, || source.rebuild());
    let planned = ids.generations().bytes();
    assert!(planned * 4 < planned_for_all, "{planned} of {planned_for_all}");
    assert!(has(&ids, 1002) && !has(&ids, 1003));
}

#[test]
fn a_snapshot_continues_only_with_the_same_condition() {
    let (_server, mut shop, _dir, mut lasting) = lasting_shop(100);
    shop.run(Server::TEST_NAMES);
    lasting.options.condition = Some("name <> 'gone'".to_owned());
    restart(&lasting).1.stop();
    shop.run("UPDATE products SET name = 'gone' WHERE id = 7");
    let (ids, source, status) = restart(&lasting);
    goes_on(&status);
    wait_until(&source, "moved out", || !has(&ids, 7) && has(&ids, 8));
    source.stop();
    lasting.options.condition = Some("name = 'gone'".to_owned());
    let (ids, _source, status) = restart(&lasting);
    assert_eq!(status.items_read, 1, "{status:?}");
    assert!(knows(&ids, 7) && !has(&ids, 8));
}

#[test]
fn conditions_that_the_log_cannot_answer_are_refused() {
    let mut shop = shop();
    let options = goods(&mut shop);
    for (condition, expected) in [
        ("price > 5", "has no column price; it has: id, status"),
        ("lower(status) = 'a'", "where: it cannot be read from \"(status) = 'a'\" on"),
        ("status = 1", "write its values as texts in single quotes"),
        ("stock = 'a'", "write its values as integers"),
        ("deleted_at > '2026-01-01'", "a condition can only test it with IS NULL or IS NOT NULL"),
        ("status = NULL", "a comparison with NULL is never true"),
        ("id IS NULL", "NOT NULL, and a condition IS NULL has the same result for each row"),
    ] {
        refused(&on(&options, condition), expected);
    }
}

#[test]
fn a_polled_table_takes_any_condition() {
    let mut shop = shop();
    let options = with(&items(&mut shop, 20, "updated_at", 0), |poll| {
        poll.deletions = Some("SELECT id FROM deleted".to_owned());
        poll.reread = Duration::from_secs(3600);
    });
    let options = on(&options, "name IS NULL OR length(name) < 3 OR name = 'long'");
    let (ids, source) = follow(&options);
    let add = "INSERT INTO items (id, name) VALUES (30, 'long name'), (31, 'ab')";
    shop.after(&ids, &source, add, &[31], &[30]);
    // A row that leaves the condition passes until the next full read, or until the deletions contain it.
    let leave =
        "UPDATE items SET name = 'another' WHERE id IN (5, 6); INSERT INTO deleted VALUES (5), (7)";
    shop.after(&ids, &source, leave, &[6, 7], &[5]);
    let refreshed = |ids: &IdSet, source: &Source| {
        read_again(source, || source.rebuild());
        assert!(has(ids, 7) && !has(ids, 6));
    };
    refreshed(&ids, &source);
    let expected: Vec<u64> = (1..=20).filter(|id| ![5, 6].contains(id)).chain([31]).collect();
    assert_eq!(audited(&options), expected);
    wait_error(&start(&id_set(integers()), &on(&options, "no_column = 1")), "no_column");
}
