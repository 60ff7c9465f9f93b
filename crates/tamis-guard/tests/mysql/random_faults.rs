//! Random changes and faults of MariaDB.

use std::net::SocketAddr;
use std::sync::Arc;

use tamis_guard::IdSet;
use tamis_guard::source::{MysqlOptions, Source};

use crate::chaos::{self, Database};
use crate::checker::Dir;
use crate::restarts::with_snapshot;
use crate::server::{Server, Session, Shop, start};

struct Maria {
    server: Server,
    shop: Shop,
    /// The folder of the snapshot.
    dir: Dir,
}

impl Maria {
    fn start() -> Self {
        let server = Server::start_with(&["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]);
        let shop = server.shop();
        Self { server, shop, dir: Dir::new() }
    }

    fn run(&mut self, sql: &str) {
        self.shop.session.run(sql);
    }

    fn insert(&mut self, table: &str, ids: &[u64]) {
        if !ids.is_empty() {
            let rows: Vec<String> = ids.iter().map(|id| format!("('p', {id})")).collect();
            self.run(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
        }
    }
}

impl Database for Maria {
    fn commit(&mut self, delete: &[u64], insert: &[u64]) {
        self.run("START TRANSACTION");
        for id in delete {
            self.run(&format!("DELETE FROM products WHERE id = {id}"));
        }
        self.insert("products", insert);
        self.run("COMMIT");
    }

    fn roll_back(&mut self, insert: &[u64]) {
        self.run("START TRANSACTION");
        self.insert("products", insert);
        self.run("ROLLBACK");
    }

    fn swap(&mut self, ids: &[u64]) {
        self.run("CREATE TABLE replacement LIKE products");
        self.insert("replacement", ids);
        self.run("RENAME TABLE products TO old, replacement TO products");
        self.run("DROP TABLE old");
    }

    fn truncate(&mut self) {
        self.run("TRUNCATE products");
    }

    fn crash(&mut self, insert: &[u64]) {
        self.run("START TRANSACTION");
        self.insert("products", insert);
        self.server.kill();
        self.server.run();
        self.shop.session = Session::open(&self.shop.options.url);
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn source(&self, ids: &Arc<IdSet>, address: SocketAddr) -> Source {
        let direct = self.server.address().to_string();
        let url = self.shop.options.url.replace(&direct, &address.to_string());
        let options = MysqlOptions { url, ..self.shop.options.clone() };
        start(ids, &with_snapshot(&options, &self.dir.path("snapshot")))
    }
}

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let mut database = Maria::start();
    for seed in [1, 2] {
        chaos::run(&mut database, seed, 3, 40);
        database.truncate();
    }
}
