//! A guard in front of PostgreSQL.

#[path = "../../../tamis-guard/tests/postgres/database.rs"]
mod database;
#[path = "../../../tamis-guard/tests/postgres/server.rs"]
#[allow(dead_code)]
mod server;

use std::net::SocketAddr;

use crate::story::{self, Attacked};
use database::Postgres;

impl Attacked for Postgres {
    fn source(&self, address: SocketAddr) -> String {
        let url = self.url_at(address);
        format!(r#"{{ kind = "postgres", url = "{url}", table = "products", column = "id" }}"#)
    }

    fn processes(&self) -> Vec<u32> {
        self.server.processes()
    }
}

#[test]
fn no_fault_makes_the_guard_refuse_a_committed_id_of_postgresql() {
    story::run(&mut Postgres::start(), 2);
}
