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
//! | [`Server`], [`ServerHandle`] | a running server; a handle that stops the server from another thread |
//! | [`Config`], [`ConfigFile`], [`ConfigOption`] | the options of a server; a file of options; the description of one option |
//! | [`check_data`], [`repair_data`], [`DataReport`] | verify or repair the data folder of a stopped server |
//! | [`HashKey`] | the secret key with which the server hashes items |
//! | [`keyspace::Keyspace`] | the keys and their values, for a program that embeds the keyspace without sockets |
//!
//! Each thread serves its own connections. All threads share the [keyspace](keyspace::Keyspace). A
//! thread holds the locks of the keyspace for at most one batch of commands.

mod config;
mod connection;
mod handlers;
mod http;
pub mod keyspace;
mod pattern;
mod persistence;
mod server;
mod server_error;
mod session;
mod shared_state;
mod stats;
mod system;
#[cfg(test)]
mod test_server;
mod users;
mod version;

pub use config::config_option::{ConfigOption, OptionGroup};
pub use config::hash_key::{HashKey, HashKeyError};
pub use config::{
    BindAddress, ClientCertificates, Config, ConfigError, ConfigFile, DebugCommand, HttpPort,
    OptionValueError, OutputLimit,
};
pub use connection::input_limit;
pub use connection::tls::TlsError;
pub use persistence::{DataReport, DurabilityError, FsyncPolicy, check_data, repair_data};
pub use server::{Server, ServerHandle};
pub use server_error::ServerError;
pub use users::UsersError;
