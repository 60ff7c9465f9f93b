//! A shop with its products in SQLite.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tamis_sources::{ChangeColumn, SqliteOptions};

use crate::checker::Dir;

/// A database with a table of products.
pub struct Shop {
    pub path: PathBuf,
    pub connection: Connection,
    pub _dir: Dir,
}

const TABLE: &str = "CREATE TABLE products (
        id INTEGER PRIMARY KEY AUTOINCREMENT, updated_at INTEGER, name TEXT);
    CREATE INDEX updated ON products (updated_at);
    CREATE TABLE deleted (id INTEGER);";

impl Shop {
    pub fn new(journal: &str) -> Self {
        let dir = Dir::new();
        let path = dir.path("shop.db");
        let connection = connect(&path);
        connection.pragma_update(None, "journal_mode", journal).unwrap();
        connection.execute_batch(TABLE).unwrap();
        Self { path, connection, _dir: dir }
    }

    /// Creates a database with the ids up to `last`. The change column has the id.
    pub fn filled(journal: &str, last: u32) -> Self {
        let shop = Self::new(journal);
        let sql =
            "WITH RECURSIVE new (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM new WHERE id < ?1)
            INSERT INTO products SELECT id, id, 'a product' FROM new";
        shop.connection.execute(sql, [last]).unwrap();
        shop
    }

    pub fn run(&self, sql: &str) {
        self.connection.execute_batch(sql).unwrap();
    }

    pub fn count_above(&self, id: u32) -> u32 {
        let sql = "SELECT COUNT(*) FROM products WHERE id > ?1";
        self.connection.query_row(sql, [id], |row| row.get(0)).unwrap()
    }

    pub fn options(&self, column: Option<&str>, overlap_ms: u64) -> SqliteOptions {
        let overlap = Duration::from_millis(overlap_ms);
        let changes = column.map(|column| ChangeColumn { column: column.to_owned(), overlap });
        SqliteOptions { changes, chunk: 100, ..SqliteOptions::new(&self.path, "products", "id") }
    }
}

pub fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    connection.pragma_update(None, "synchronous", "off").unwrap();
    connection
}
