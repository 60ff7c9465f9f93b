//! A guard in front of MariaDB.

#[path = "../../../tamis-sources/tests/mysql/server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;
#[path = "../../../tamis-sources/tests/support/shop_database.rs"]
mod shop_database;

use std::net::SocketAddr;

use crate::story::{self, Attacked};
use server::DURABLE;
use shop_database::ShopDatabase;

impl Attacked for ShopDatabase {
    fn source(&self, address: SocketAddr) -> String {
        let url = self.url_at(address);
        format!(r#"{{ kind = "mysql", url = "{url}", table = "products", column = "id" }}"#)
    }

    fn processes(&self) -> Vec<u32> {
        self.server.processes()
    }
}

#[test]
fn no_fault_makes_the_guard_refuse_a_committed_id_of_mariadb() {
    story::run(&mut ShopDatabase::start(DURABLE), 1);
}
