//! Random changes and faults of PostgreSQL.

use std::net::SocketAddr;
use std::sync::Arc;

use tamis_guard::IdSet;
use tamis_guard::source::PostgresOptions;

use crate::changes::Database as _;
use crate::chaos;
use crate::checker::Dir;
use crate::database::Postgres;
use crate::restarts::{LIMIT, with_slot};
use crate::server::start;

fn at(database: &Postgres, address: SocketAddr) -> PostgresOptions {
    PostgresOptions { url: database.url_at(address), ..database.shop.options.clone() }
}

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let mut database = Postgres::start(&[]);
    let source = |database: &Postgres, ids: &Arc<IdSet>, address: SocketAddr| {
        start(ids, &at(database, address))
    };
    for seed in [1, 2] {
        chaos::run(&mut database, source, seed, 2, 40);
        database.truncate();
    }
}

#[test]
fn a_source_with_a_permanent_slot_keeps_the_promise_too() {
    let mut database = Postgres::start(&[LIMIT]);
    let dir = Dir::new();
    let source = |database: &Postgres, ids: &Arc<IdSet>, address: SocketAddr| {
        start(ids, &with_slot(&at(database, address), &dir.path("snapshot")))
    };
    for seed in [1, 2] {
        chaos::run(&mut database, source, seed, 3, 40);
        database.truncate();
    }
}
