//! Ids in MariaDB, with real servers that the tests start.
//!
//! `cargo xtask test` installs `mariadbd` and runs them.

mod accounts;
mod backend;
#[path = "../support/changes.rs"]
mod changes;
#[path = "../support/chaos.rs"]
mod chaos;
#[path = "../../src/kinds/mysql/charset.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod charset;
mod charsets;
#[path = "../support/checker.rs"]
mod checker;
mod collations;
mod connections;
mod faults;
#[path = "../../src/ids/fold.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod fold;
#[path = "../support/lasting.rs"]
mod lasting;
mod lost_rows;
mod polls;
mod random_faults;
mod replicas;
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
mod unlogged;
