//! The Tamis server: serves a keyspace over sockets to any Redis client.
//!
//! ```text
//! socket ──▶ argv of complete commands ──▶ batches on one key ──▶ replies, one write
//!            tamis-resp                    tamis-commands, on the server's keyspace
//! ```
//!
//! ```
//! use std::io::{Read, Write};
//! use tamis_server::{Config, Server};
//!
//! let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
//! let server = Server::start(config)?;
//! let mut client = std::net::TcpStream::connect(server.addresses()[0])?;
//! client.write_all(b"BF.ADD seen tamis\r\nBF.EXISTS seen tamis\r\n")?;
//! let mut replies = [0; 8];
//! client.read_exact(&mut replies)?;
//! assert_eq!(&replies, b":1\r\n:1\r\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type | meaning |
//! | --- | --- |
//! | [`Server`], [`ServerHandle`] | a running server; stops it from another thread |
//! | [`Config`], [`ConfigFile`], [`ConfigOption`] | the options of a server; a file of options; the table of all options |
//! | [`check_data`], [`repair_data`], [`DataReport`] | verify or repair the data folder of a stopped server |
//! | [`HashKey`] | the secret key with which the server hashes items |
//! | [`keyspace::Keyspace`] | the keys and their values, for embedding without sockets |
//!
//! Each thread serves its own connections. All threads share the [keyspace](keyspace::Keyspace) and
//! hold its locks for at most one batch.

mod acceptor;
mod background_save;
mod call;
mod change_replies;
mod chunk_pacing;
mod chunked;
mod clients;
mod clock;
mod config;
mod config_file;
mod connection;
mod cross_protocol;
mod decoding;
mod descriptors;
mod exec;
mod handlers;
mod hash_key;
mod held_memory;
mod hex;
mod http;
pub mod input_limit;
pub mod keyspace;
mod loading;
mod measurement;
mod metrics;
mod monitors;
mod not_decoded;
mod output;
mod pattern;
mod persistence;
mod pipeline;
mod procfs;
mod replace_file;
mod report;
mod runtime;
mod server;
mod server_error;
mod session;
mod shared_state;
mod stats;
mod subcommand;
mod system_error;
#[cfg(test)]
mod test_server;
mod tls;
mod transaction;
mod users;
mod version;
mod write_keys;

pub use config::config_option::{ConfigOption, OptionGroup};
pub use config::{
    BindAddress, ClientCertificates, Config, ConfigError, ConfigFile, DebugCommand, HttpPort,
    OptionValueError, OutputLimit,
};
pub use hash_key::{HashKey, HashKeyError};
pub use persistence::{DataReport, DurabilityError, FsyncPolicy, check_data, repair_data};
pub use server::{Server, ServerHandle};
pub use server_error::ServerError;
pub use tls::TlsError;
pub use users::UsersError;
