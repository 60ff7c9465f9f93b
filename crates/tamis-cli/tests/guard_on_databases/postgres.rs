//! A guard in front of PostgreSQL.

#[path = "../../../tamis-sources/tests/postgres/server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;
#[path = "../../../tamis-sources/tests/support/shop_database.rs"]
mod shop_database;

use std::net::SocketAddr;

use crate::story::{self, Attacked};
use shop_database::ShopDatabase;

impl Attacked for ShopDatabase {
    fn source(&self, address: SocketAddr) -> String {
        let url = self.url_at(address);
        let slot = self.shop.options.slot.as_ref();
        let slot = slot.map(|slot| format!(", slot = {slot:?}")).unwrap_or_default();
        format!(
            r#"{{ kind = "postgres", url = "{url}", table = "products", column = "id"{slot} }}"#
        )
    }

    fn processes(&self) -> Vec<u32> {
        self.server.processes()
    }
}

#[test]
fn no_fault_makes_the_guard_refuse_a_committed_id_of_postgresql() {
    story::run(&mut ShopDatabase::start(&[]), 2);
}

#[test]
fn nor_does_one_with_a_permanent_slot() {
    let mut database = ShopDatabase::start(&["max_slot_wal_keep_size=1GB"]);
    database.shop.options.slot = Some("tamis_guard".to_owned());
    story::run(&mut database, 3);
}
