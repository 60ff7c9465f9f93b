//! Random changes and faults of PostgreSQL.

use std::net::SocketAddr;
use std::sync::Arc;

use tamis_guard::IdSet;
use tamis_guard::source::{PostgresOptions, Source};

use crate::chaos::{self, Database};
use crate::server::{Server, Session, Shop, start};

struct Postgres {
    server: Server,
    shop: Shop,
}

impl Postgres {
    fn start() -> Self {
        let server = Server::start();
        let shop = server.shop();
        Self { server, shop }
    }

    fn run(&mut self, sql: &str) {
        self.shop.session.run(sql);
    }
}

fn insert(table: &str, ids: &[u64]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("INSERT INTO {table} SELECT 'p', unnest('{{{}}}'::bigint[]);", ids.join(", "))
}

fn delete(ids: &[u64]) -> String {
    ids.iter().map(|id| format!("DELETE FROM products WHERE id = {id};")).collect()
}

impl Database for Postgres {
    fn commit(&mut self, deleted: &[u64], inserted: &[u64]) {
        self.run(&format!("BEGIN; {} {} COMMIT", delete(deleted), insert("products", inserted)));
    }

    fn roll_back(&mut self, inserted: &[u64]) {
        self.run(&format!("BEGIN; {} ROLLBACK", insert("products", inserted)));
    }

    fn swap(&mut self, ids: &[u64]) {
        self.run(&format!(
            "CREATE TABLE replacement (LIKE products INCLUDING ALL);
            ALTER PUBLICATION tamis_guard ADD TABLE replacement (id); {}",
            insert("replacement", ids)
        ));
        self.run(
            "BEGIN; ALTER TABLE products RENAME TO old;
            ALTER TABLE replacement RENAME TO products; COMMIT; DROP TABLE old",
        );
    }

    fn truncate(&mut self) {
        self.run("TRUNCATE products");
    }

    fn crash(&mut self, inserted: &[u64]) {
        self.run(&format!("BEGIN; {}", insert("products", inserted)));
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
        start(ids, &PostgresOptions { url, ..self.shop.options.clone() })
    }
}

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let mut database = Postgres::start();
    for seed in [1, 2] {
        chaos::run(&mut database, seed, 2, 40);
        database.truncate();
    }
}
