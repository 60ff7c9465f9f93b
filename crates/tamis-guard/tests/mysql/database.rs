//! A MariaDB database for the random changes of `support/changes.rs`.

use std::net::SocketAddr;

use super::server::{Server, Session, Shop};
use crate::changes::Database;

pub struct Maria {
    pub server: Server,
    pub shop: Shop,
}

impl Maria {
    pub fn start() -> Self {
        let server = Server::start_with(&["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]);
        let shop = server.shop();
        let mut database = Self { server, shop };
        database.limit_locks();
        database
    }

    /// Returns the URL of the database through a proxy at `address`.
    pub fn url_at(&self, address: SocketAddr) -> String {
        let direct = self.server.address().to_string();
        self.shop.options.url.replace(&direct, &address.to_string())
    }

    /// Makes a statement fail that waits for a lock of the guard.
    fn limit_locks(&mut self) {
        self.sql("SET lock_wait_timeout = 20, innodb_lock_wait_timeout = 20");
    }

    fn sql(&mut self, sql: &str) {
        self.shop.session.run(sql);
    }

    fn insert(&mut self, table: &str, ids: &[u64]) {
        if !ids.is_empty() {
            let rows: Vec<String> = ids.iter().map(|id| format!("('p', {id})")).collect();
            self.sql(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
        }
    }
}

impl Database for Maria {
    fn commit(&mut self, delete: &[u64], insert: &[u64]) {
        self.sql("START TRANSACTION");
        for id in delete {
            self.sql(&format!("DELETE FROM products WHERE id = {id}"));
        }
        self.insert("products", insert);
        self.sql("COMMIT");
    }

    fn roll_back(&mut self, insert: &[u64]) {
        self.sql("START TRANSACTION");
        self.insert("products", insert);
        self.sql("ROLLBACK");
    }

    fn swap(&mut self, ids: &[u64]) {
        self.sql("CREATE TABLE replacement LIKE products");
        self.insert("replacement", ids);
        self.sql("RENAME TABLE products TO old, replacement TO products");
        self.sql("DROP TABLE old");
    }

    fn truncate(&mut self) {
        self.sql("TRUNCATE products");
    }

    fn kill(&mut self, insert: &[u64]) {
        self.sql("START TRANSACTION");
        self.insert("products", insert);
        self.server.kill();
    }

    fn run(&mut self) {
        self.server.run();
        self.shop.session = Session::open(&self.shop.options.url);
        self.limit_locks();
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }
}
