//! A table that is polled.

use std::time::{Duration, Instant};

use tamis_guard::source::{
    AuditSource as _, ChangeColumn, MysqlAudit, MysqlOptions, PollOptions, Source, SourceOptions,
};
use tamis_guard::{IdType, SyncState};

use crate::checker::{
    Committed, check, has, id_set, integers, knows, options, wait, wait_synced, wait_until,
};
use crate::polling;
use crate::server::{Server, Session, Shop, start, text};
use crate::stories::shop;
use crate::tcp_proxy::TcpProxy;

const TABLE: &str = "CREATE TABLE items (
    id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20),
    updated_at TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    INDEX (updated_at)) ENGINE=InnoDB";

/// Creates a table with ids up to `last`, and returns options that poll it.
fn items(shop: &mut Shop, last: u64, column: &str, overlap_ms: u64) -> MysqlOptions {
    shop.session.run(TABLE);
    shop.session.run("CREATE TABLE deleted (id BIGINT)");
    shop.session.run(&format!("INSERT INTO items (id) SELECT seq FROM seq_1_to_{last}"));
    let overlap = Duration::from_millis(overlap_ms);
    let poll = PollOptions {
        changes: Some(ChangeColumn { overlap, ..ChangeColumn::new(column) }),
        ..PollOptions::default()
    };
    MysqlOptions { table: "items".to_owned(), poll: Some(poll), ..shop.options.clone() }
}

/// Returns the options with other settings of the poll.
fn with(mysql: &MysqlOptions, change: impl FnOnce(&mut PollOptions)) -> MysqlOptions {
    let mut mysql = mysql.clone();
    change(mysql.poll.as_mut().unwrap());
    mysql
}

#[test]
fn the_promise_holds_while_a_table_without_a_log_is_polled() {
    let server = Server::start_with(&["--skip-log-bin"]);
    let mut shop = server.shop();
    let mysql = items(&mut shop, 1000, "updated_at", 300);
    let mysql = with(&mysql, |poll| {
        poll.deletions = Some("SELECT id FROM deleted".to_owned());
        poll.reread = Duration::from_millis(500);
    });
    let (ids, committed) = (id_set(integers()), Committed::default());
    committed.insert(1..=1000);
    let source = start(&ids, &mysql);
    wait_synced(&source);
    polling::write_at_random(&source, &ids, &committed, &mut |sql| shop.session.run(sql));
    assert!(source.status().generations > 2, "{:?}", source.status());
}

#[test]
fn a_polled_table_can_be_audited() {
    let server = Server::start_with(&["--skip-log-bin"]);
    let mut shop = server.shop();
    let mysql = items(&mut shop, 3, "updated_at", 300);
    shop.session.run("CREATE VIEW some AS SELECT * FROM items WHERE id > 1");
    for (table, expected) in [("items", ["1", "2", "3"].as_slice()), ("some", &["2", "3"])] {
        let mysql = MysqlOptions { table: table.to_owned(), ..mysql.clone() };
        let mut ids = Vec::new();
        let mut audit = MysqlAudit::open(&mysql, &integers()).unwrap();
        let mut add = |id: &[u8]| {
            ids.push(String::from_utf8(id.to_vec()).unwrap());
            Ok(())
        };
        audit.each_row(&mut add).unwrap();
        ids.sort();
        assert_eq!(ids, expected);
    }
}

#[test]
fn a_late_commit_is_found_within_the_overlap_and_else_by_the_next_read_of_all_ids() {
    let mut shop = shop();
    let mysql = items(&mut shop, 100, "updated_at", 0);
    let mut late = Session::open(&shop.options.url);
    polling::late_commits(
        &mut |sql| shop.session.run(sql),
        &mut |sql| late.run(sql),
        |ids, overlap| {
            start(ids, &with(&mysql, |poll| poll.changes.as_mut().unwrap().overlap = overlap))
        },
    );
}

#[test]
fn deleted_ids_are_refused_at_once_or_by_the_next_read() {
    let mut shop = shop();
    let mysql = items(&mut shop, 1000, "id", 10);
    let queried = with(&mysql, |poll| poll.deletions = Some("SELECT id FROM deleted".to_owned()));
    let reread = with(&mysql, |poll| poll.reread = Duration::from_millis(300));
    let (ids, other) = (id_set(integers()), id_set(integers()));
    let sources = [start(&ids, &queried), start(&other, &reread)];
    sources.iter().for_each(|source| _ = wait_synced(source));
    shop.session.run("DELETE FROM items WHERE id = 7");
    // A row has the id 8. The third is none.
    shop.session.run("ALTER TABLE deleted MODIFY id VARCHAR(20)");
    shop.session.run("INSERT INTO deleted VALUES ('7'), ('8'), ('x'), (NULL)");
    wait_until(&sources[0], "the deletion", || !has(&ids, 7));
    wait_until(&sources[1], "the read of all ids", || !has(&other, 7));
    assert!(knows(&ids, 8) && sources[0].status().generations == 1);
    // Created again, below the bound.
    shop.session.run("INSERT INTO items (id) VALUES (7)");
    wait_until(&sources[0], "created again", || knows(&ids, 7));
    shop.session.run("DROP TABLE deleted");
    wait(&sources[0], "the error", |status| {
        let named = "the query `deletions` failed: Server error: `ERROR 1146";
        status.last_error.as_deref().is_some_and(|error| error.contains(named))
    });
}

#[test]
fn a_broken_connection_and_another_table_are_found() {
    let server = Server::start();
    let mut shop = server.shop();
    let proxy = TcpProxy::start(server.address());
    let mysql = items(&mut shop, 100, "updated_at", 100);
    let url = mysql.url.replace(&server.address().to_string(), &proxy.address.to_string());
    let mysql = MysqlOptions { url, ..mysql };
    let (ids, committed) = (id_set(integers()), Committed::default());
    committed.insert(1..=100);
    let source = start(&ids, &mysql);
    wait_synced(&source);
    check(&source, &ids, &committed, || {
        for id in 101..=104 {
            shop.session.run(&format!("INSERT INTO items (id) VALUES ({id})"));
            committed.insert([id]);
            if id % 2 == 0 {
                proxy.cut();
            } else {
                proxy.partition();
                wait(&source, "stale", |status| status.state == SyncState::Stale);
                proxy.heal();
            }
            wait_synced(&source);
        }
    });
    wait_until(&source, "the last row", || knows(&ids, 104) && !has(&ids, 105));
    assert_eq!(source.status().generations, 1, "{:?}", source.status());
    shop.session.run("CREATE TABLE new LIKE items");
    shop.session.run("ALTER TABLE new ADD COLUMN price INT");
    shop.session.run("INSERT INTO new (id, updated_at) VALUES (900, '2001-01-01')");
    shop.session.run("RENAME TABLE items TO old, new TO items");
    wait(&source, "swapped", |status| status.generations == 2);
    wait_synced(&source);
    assert!(knows(&ids, 900) && !has(&ids, 1));
    proxy.partition();
    let stop = Instant::now();
    source.stop();
    assert!(stop.elapsed() < Duration::from_secs(3), "{:?}", stop.elapsed());
}

#[test]
fn a_column_without_an_order_is_refused() {
    let mut shop = shop();
    let mysql = items(&mut shop, 10, "updated_at", 10);
    for (column, expected) in [
        ("name", "a change column is an integer, a TIMESTAMP or a DATETIME"),
        ("nothing", "has no column nothing"),
    ] {
        let mysql = with(&mysql, |poll| poll.changes = Some(ChangeColumn::new(column)));
        let ids = id_set(integers());
        let source = start(&ids, &mysql);
        let status = wait(&source, expected, |status| status.failures > 0);
        assert!(status.last_error.as_ref().unwrap().contains(expected), "{status:?}");
    }
}

#[test]
fn a_large_table_of_any_type_is_read_completely_over_several_connections() {
    let mut shop = shop();
    let rows = 60_000_u64;
    let seq = format!("SELECT seq FROM seq_1_to_{rows}");
    let tables = [
        // Sparse, and both ends of the type.
        (
            "wide",
            "BIGINT UNSIGNED PRIMARY KEY",
            format!("SELECT seq * 307445734561825 FROM ({seq}) s"),
        ),
        ("signed", "INT PRIMARY KEY", format!("SELECT CAST(seq AS SIGNED) - 30000 FROM ({seq}) s")),
        (
            "twice",
            "INT, INDEX (id)",
            format!("SELECT IF(seq % 9 = 0, NULL, seq DIV 2) FROM ({seq}) s"),
        ),
        ("plain", "INT", seq.clone()),
        ("padded", "INT ZEROFILL PRIMARY KEY", seq.clone()),
        (
            "words",
            "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_lithuanian_ci, INDEX (id)",
            format!(
                "SELECT CONCAT(CHAR(32 + seq % 95), IF(seq % 5, 'y', '产\n'), seq) FROM ({seq}) s"
            ),
        ),
        ("uuids", "BINARY(16) PRIMARY KEY", format!("SELECT UNHEX(MD5(seq)) FROM ({seq}) s")),
    ];
    for (name, definition, select) in tables {
        shop.session.run(&format!("CREATE TABLE {name} (id {definition})"));
        shop.session.run(&format!("INSERT INTO {name} {select}"));
        // The server estimates the number of rows.
        shop.session.run(&format!("ANALYZE TABLE {name}"));
        let id = match name {
            "words" => text(),
            "uuids" => IdType::Uuid,
            _ => IdType::Integer { min: -100_000, max: u64::MAX.into(), form: Default::default() },
        };
        let ids = id_set(id);
        // The guard does not know the order of Lithuanian.
        let exact = name == "words";
        let mysql = MysqlOptions { table: name.to_owned(), exact, ..shop.options.clone() };
        let slow = SourceOptions { stale_after: Duration::from_secs(10), ..options() };
        let source = Source::mysql(std::sync::Arc::clone(&ids), mysql, slow);
        let status = wait_synced(&source);
        let nulls = if name == "twice" { rows / 9 } else { 0 };
        // Texts may be in two ranges, in the order of this collation.
        let read = status.items_read + nulls;
        assert!(read == rows || name == "words" && read > rows, "{name}: {status:?}");
        assert_eq!(status.invalid_rows, nulls, "{name}");
        let hex = if name == "uuids" { "LOWER(HEX(id))" } else { "CAST(id AS CHAR)" };
        let all = shop.session.texts(&format!("SELECT {hex} FROM {name} WHERE id IS NOT NULL"));
        assert_eq!(all.len() as u64 + nulls, rows);
        for id in &all {
            assert!(ids.decide(id).passes(), "{name}: {:?}", String::from_utf8_lossy(id));
        }
    }
}

#[test]
fn a_view_selects_the_rows_that_count() {
    let mut shop = shop();
    let mysql = items(&mut shop, 10, "updated_at", 10);
    shop.session.run("CREATE VIEW named AS SELECT * FROM items WHERE name IS NOT NULL");
    shop.session.run("UPDATE items SET name = 'a' WHERE id > 5");
    let mysql = MysqlOptions { table: "named".to_owned(), ..mysql };
    let ids = id_set(integers());
    let source = start(&ids, &mysql);
    wait_synced(&source);
    assert!((6..=10).all(|id| knows(&ids, id)) && !has(&ids, 5));
    shop.session.run("UPDATE items SET name = 'a' WHERE id = 5");
    wait_until(&source, "named", || knows(&ids, 5) && !has(&ids, 4));
}
