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
mod database;
mod definitions;
mod faults;
#[path = "../../src/ids/fold.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod fold;
mod polls;
mod random_faults;
mod refusals;
mod restarts;
mod rows;
mod server;
#[path = "../stories/all.rs"]
mod stories;
#[path = "../support/tcp_proxy.rs"]
mod tcp_proxy;
#[path = "../support/transactions.rs"]
mod transactions;
