//! A database for the random changes of `changes.rs`, on a server of the module `server`.

use std::net::SocketAddr;

use super::server::{CREATE_REPLACEMENT, LIMIT_LOCKS, REPLACE_PRODUCTS, Server, Session, Shop};
use crate::changes::Database;

pub struct ShopDatabase {
    pub server: Server,
    pub shop: Shop,
}

impl ShopDatabase {
    pub fn start(settings: &[&str]) -> Self {
        let server = Server::start_with(settings);
        let shop = server.shop();
        let mut database = Self { server, shop };
        database.shop.session.run(LIMIT_LOCKS);
        database
    }

    /// Returns the URL of the database through a proxy at `address`.
    #[allow(dead_code, reason = "not every test that includes this uses it")]
    pub fn url_at(&self, address: SocketAddr) -> String {
        let direct = self.server.address().to_string();
        self.shop.options.url.replace(&direct, &address.to_string())
    }
}

impl Database for ShopDatabase {
    const CREATE: &'static str = CREATE_REPLACEMENT;
    const REPLACE: &'static str = REPLACE_PRODUCTS;

    fn sql(&mut self, sql: &str) {
        self.shop.session.run(sql);
    }

    fn kill(&mut self) {
        self.server.kill();
    }

    fn run(&mut self) {
        self.server.run();
        self.shop.session = Session::open(&self.shop.options.url);
        self.shop.session.run(LIMIT_LOCKS);
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }
}
