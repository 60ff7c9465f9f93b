//! Tests of the program as users run it. They are one program because each test program is linked
//! separately.

mod build;
mod check;
#[path = "../../../../tests/exchanges/client.rs"]
mod client;
mod csv;
mod decode_options;
mod dedup;
mod family;
#[cfg(target_os = "linux")]
mod guard;
mod guard_demo;
mod guard_snapshots;
mod habits;
mod health;
#[path = "../../../../tests/exchanges/http.rs"]
mod http;
mod info;
#[cfg(target_os = "linux")]
mod interrupt;
mod ints;
mod ints_bad_input;
mod merge;
mod orc_builder;
mod orc_tables;
mod other_systems;
mod parquet_tables;
mod plan;
mod program;
#[cfg(target_os = "linux")]
mod publish;
mod random_commands;
mod serve;
mod serve_faults;
mod serve_restarts;
mod server;
#[cfg(target_os = "linux")]
mod streams;
#[cfg(target_os = "linux")]
mod upstream;
