//! The promise of the whole program: a real `tamis guard` in front of real databases never answers
//! 404 for an id that was committed before the request and outside the sync delay.
//!
//! A checker sends requests all the time, while the guard, the database and the network between them
//! are attacked. `cargo xtask test` installs the databases and runs the tests.

#![allow(
    clippy::duplicate_mod,
    reason = "`shop_database.rs` is the same for both databases, and uses the module `server` beside it"
)]

#[path = "../../../tamis-sources/tests/support/changes.rs"]
mod changes;
#[path = "../../../tamis-sources/tests/support/checker.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod checker;
mod client;
mod freeze;
mod guard;
mod mysql;
mod postgres;
mod promise;
mod story;
#[path = "../../../tamis-sources/tests/support/tcp_proxy.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod tcp_proxy;
#[path = "../integration/upstream.rs"]
mod upstream;
