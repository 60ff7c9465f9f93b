//! A PostgreSQL database for the random changes of `support/changes.rs`.

use std::net::SocketAddr;

use super::server::{Server, Session, Shop};
use crate::changes::Database;

pub struct Postgres {
    pub server: Server,
    pub shop: Shop,
}

impl Postgres {
    pub fn start(settings: &[&str]) -> Self {
        let server = Server::start_with(settings);
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

    /// Makes a statement fail that waits for a lock of the guard. Beside two compilers, `TRUNCATE` once
    /// waited for more than 20 seconds; which session had the lock is not known.
    fn limit_locks(&mut self) {
        self.sql("SET lock_timeout = '60s'");
    }
}

impl Database for Postgres {
    const CREATE: &'static str = "CREATE TABLE replacement (LIKE products INCLUDING ALL);
        ALTER PUBLICATION tamis_guard ADD TABLE replacement (id)";
    const REPLACE: &'static str = "BEGIN; ALTER TABLE products RENAME TO old;
        ALTER TABLE replacement RENAME TO products; COMMIT; DROP TABLE old";

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
