//! Ids in plain bitmaps of a real Redis server.
//!
//! `cargo xtask test` installs `redis-server` and runs them.

#[path = "../support/checker.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod checker;
#[path = "../integration/redis/client.rs"]
mod client;
mod server;
mod stories;
