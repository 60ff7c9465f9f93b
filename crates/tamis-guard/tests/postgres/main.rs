//! Ids in PostgreSQL, with real servers that the tests start.
//!
//! `cargo xtask test` installs PostgreSQL and runs them.

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
#[path = "../../../tamis-sources/src/ids/fold.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod fold;
#[path = "../support/polling.rs"]
mod polling;
mod polls;
mod random_faults;
mod refusals;
mod restarts;
mod server;
#[path = "../support/silent_server.rs"]
mod silent_server;
#[path = "../support/snapshots.rs"]
mod snapshots;
mod stories;
#[path = "../support/tcp_proxy.rs"]
mod tcp_proxy;
#[path = "../support/transactions.rs"]
mod transactions;
