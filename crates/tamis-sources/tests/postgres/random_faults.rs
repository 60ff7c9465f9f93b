//! Random changes and faults of PostgreSQL.

use crate::chaos;
use crate::checker::Dir;
use crate::server::Server;
use crate::shop_database::ShopDatabase;
use crate::stories::database::Database as _;
use crate::stories::follow::continued;

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    chaos::run(&mut ShopDatabase::start(&[]), |database, address| database.shop.at(address), 2);
}

#[test]
fn a_source_with_a_permanent_slot_keeps_the_promise_too() {
    let dir = Dir::new();
    let options = |database: &ShopDatabase, address| {
        continued(&database.shop.at(address), &dir.path("snapshot"))
    };
    chaos::run(&mut ShopDatabase::start(Server::CONTINUED), options, 3);
}
