//! The example `shop`, with a real MariaDB that the test starts.
//!
//! `cargo xtask test` installs `mariadbd` and runs it.

#[path = "../../../tamis-sources/tests/support/checker.rs"]
#[allow(dead_code, reason = "the tests of the sources use the rest")]
mod checker;
#[path = "../../../tamis-sources/tests/mysql/server.rs"]
#[allow(dead_code, reason = "the tests of the sources use the rest")]
mod server;
mod shop;
#[path = "../../examples/shop.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod shop_example;
