//! Random changes and faults of MariaDB.

use crate::chaos;
use crate::checker::Dir;
use crate::database::Maria;
use crate::stories::follow::continued;

#[test]
fn no_order_of_changes_and_faults_breaks_the_promise() {
    let dir = Dir::new();
    let options = |database: &Maria| continued(&database.shop.options, &dir.path("snapshot"));
    chaos::run(&mut Maria::start(), options, 3);
}
