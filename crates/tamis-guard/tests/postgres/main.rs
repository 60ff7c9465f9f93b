//! Ids in PostgreSQL, with real servers that the tests start.
//!
//! `cargo xtask test` installs PostgreSQL and runs them.

#[path = "../sources/checker.rs"]
#[expect(dead_code, reason = "stale sets let all ids pass, so the tests look into the set")]
mod checker;
mod definitions;
mod faults;
mod refusals;
mod server;
mod stories;
#[path = "../support/tcp_proxy.rs"]
#[path = "../support/silent_server.rs"]
mod silent_server;
mod tcp_proxy;
