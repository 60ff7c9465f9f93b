//! A guard in front of MariaDB.

#[path = "../../../tamis-sources/tests/mysql/database.rs"]
mod database;
#[path = "../../../tamis-sources/tests/mysql/server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use std::net::SocketAddr;

use crate::story::{self, Attacked};
use database::Maria;

impl Attacked for Maria {
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
    story::run(&mut Maria::start(), 1);
}
