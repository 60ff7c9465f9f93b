//! Random changes and faults of PostgreSQL.

use std::net::SocketAddr;
use std::sync::Arc;

use tamis_guard::IdSet;
use tamis_guard::source::PostgresOptions;

use crate::changes::Database as _;
use crate::chaos;
use crate::database::Postgres;
use crate::server::start;

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let mut database = Postgres::start();
    let source = |database: &Postgres, ids: &Arc<IdSet>, address: SocketAddr| {
        let url = database.url_at(address);
        start(ids, &PostgresOptions { url, ..database.shop.options.clone() })
    };
    for seed in [1, 2] {
        chaos::run(&mut database, source, seed, 2, 40);
        database.truncate();
    }
}
