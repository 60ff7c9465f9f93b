//! Ids in MariaDB, with real servers that the tests start.
//!
//! `cargo xtask test` installs `mariadbd` and runs them.

mod accounts;
mod backend;
#[path = "../support/changes.rs"]
mod changes;
#[path = "../support/chaos.rs"]
mod chaos;
#[path = "../support/checker.rs"]
mod checker;
mod collations;
mod connections;
mod database;
mod faults;
#[path = "../../src/ids/fold.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod fold;
mod lost_rows;
mod polls;
mod random_faults;
mod replicas;
mod restarts;
mod rows;
mod server;
mod shop;
#[path = "../../examples/shop.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod shop_example;
#[path = "../stories/all.rs"]
mod stories;
#[path = "../support/tcp_proxy.rs"]
mod tcp_proxy;
#[path = "../support/transactions.rs"]
mod transactions;
mod unlogged;
