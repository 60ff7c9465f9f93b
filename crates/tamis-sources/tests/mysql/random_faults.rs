//! Random changes and faults of MariaDB.

use crate::changes::Deletion;
use crate::chaos;
use crate::checker::Dir;
use crate::server::{DURABLE, Server};
use crate::shop_database::ShopDatabase;
use crate::stories::conditions::on;
use crate::stories::database::Database as _;
use crate::stories::follow::continued;

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let dir = Dir::new();
    let options = |database: &ShopDatabase, address| {
        continued(&database.shop.at(address), &dir.path("snapshot"))
    };
    chaos::run(&mut ShopDatabase::start(DURABLE), options, 3, Deletion::Row);
}

#[test]
fn no_order_breaks_the_promise_of_a_source_with_a_condition() {
    let dir = Dir::new();
    let options = |database: &ShopDatabase, address| {
        let options = on(&database.shop.at(address), "name <> 'gone'");
        continued(&options, &dir.path("snapshot"))
    };
    let mut database = ShopDatabase::start(DURABLE);
    database.shop.run(Server::TEST_NAMES);
    chaos::run(&mut database, options, 2, Deletion::Condition);
}

#[test]
fn no_order_of_changes_and_faults_of_two_servers_breaks_the_promise() {
    let mut databases = [(); 2].map(|()| ShopDatabase::start(DURABLE));
    chaos::run_two(&mut databases, |database, address| database.shop.at(address));
}
