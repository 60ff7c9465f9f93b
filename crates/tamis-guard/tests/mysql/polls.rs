//! A table that is polled.

use tamis_guard::IdType;
use tamis_guard::source::MysqlOptions;

use crate::checker::text;
use crate::stories::follow::{follow_patiently, polled, refused, shop};
use crate::stories::polls::items;

#[test]
fn a_column_without_an_order_is_refused() {
    let mut shop = shop();
    let options = items(&mut shop, 10, "updated_at", 10);
    let expected = "a change column is an integer, a TIMESTAMP or a DATETIME";
    refused(&polled(&options, "name", 10), expected);
    refused(&polled(&options, "nothing", 10), "has no column nothing");
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
        shop.run(&format!("CREATE TABLE {name} (id {definition})"));
        shop.run(&format!("INSERT INTO {name} {select}"));
        // The server estimates the number of rows.
        shop.run(&format!("ANALYZE TABLE {name}"));
        let id = match name {
            "words" => text(),
            "uuids" => IdType::Uuid,
            _ => IdType::Integer { min: -100_000, max: u64::MAX.into(), form: Default::default() },
        };
        // The guard does not know the order of Lithuanian.
        let exact = name == "words";
        let mysql = MysqlOptions { exact, ..shop.table(name) };
        let (ids, source) = follow_patiently(id, &mysql);
        let status = source.status();
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
