//! Ids in PostgreSQL, with real servers that the tests start.
//!
//! `cargo xtask test` installs PostgreSQL and runs them.

mod backend;
#[path = "../support/changes.rs"]
mod changes;
#[path = "../support/chaos.rs"]
mod chaos;
#[path = "../support/checker.rs"]
mod checker;
mod collations;
mod definitions;
mod faults;
#[path = "../../src/ids/fold.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod fold;
#[path = "../support/lasting.rs"]
mod lasting;
mod polls;
mod random_faults;
mod refusals;
mod restarts;
mod rows;
mod server;
#[path = "../support/shop_database.rs"]
mod shop_database;
#[path = "../stories/all.rs"]
mod stories;
#[path = "../support/tcp_proxy.rs"]
mod tcp_proxy;
#[path = "../support/transactions.rs"]
mod transactions;
