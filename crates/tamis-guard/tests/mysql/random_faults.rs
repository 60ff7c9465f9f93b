//! Random changes and faults of MariaDB.

use std::net::SocketAddr;
use std::sync::Arc;

use tamis_guard::IdSet;
use tamis_guard::source::MysqlOptions;

use crate::changes::Database as _;
use crate::chaos;
use crate::checker::Dir;
use crate::database::Maria;
use crate::restarts::with_snapshot;
use crate::server::start;

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let mut database = Maria::start();
    let dir = Dir::new();
    let source = |database: &Maria, ids: &Arc<IdSet>, address: SocketAddr| {
        let options =
            MysqlOptions { url: database.url_at(address), ..database.shop.options.clone() };
        start(ids, &with_snapshot(&options, &dir.path("snapshot")))
    };
    for seed in [1, 2] {
        chaos::run(&mut database, source, seed, 3, 40);
        database.truncate();
    }
}
