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
    #[allow(dead_code, reason = "not every test that includes this uses it")]
    pub fn url_at(&self, address: SocketAddr) -> String {
        let direct = self.server.address().to_string();
        self.shop.options.url.replace(&direct, &address.to_string())
    }

    /// Makes a statement fail that waits for a lock of the guard.
    fn limit_locks(&mut self) {
        self.sql("SET lock_wait_timeout = 20, innodb_lock_wait_timeout = 20");
    }
}

impl Database for Maria {
    const CREATE: &'static str = "CREATE TABLE replacement LIKE products";
    const REPLACE: &'static str =
        "RENAME TABLE products TO old, replacement TO products; DROP TABLE old";

    fn sql(&mut self, sql: &str) {
        self.shop.session.run(sql);
    }

    fn kill(&mut self) {
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
