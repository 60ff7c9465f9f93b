//! Random changes and faults of MariaDB.

use crate::chaos;
use crate::checker::Dir;
use crate::server::DURABLE;
use crate::shop_database::ShopDatabase;
use crate::stories::follow::continued;

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let dir = Dir::new();
    let options = |database: &ShopDatabase, address| {
        continued(&database.shop.at(address), &dir.path("snapshot"))
    };
    chaos::run(&mut ShopDatabase::start(DURABLE), options, 3);
}
