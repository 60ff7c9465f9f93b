//! The Tamis server: serves a keyspace over sockets to any Redis client.
//!
//! ```text
//! socket ──▶ argv of complete commands ──▶ batches on one key ──▶ replies, one write
//!            tamis-resp                    tamis-commands, on the server's keyspace
//! ```
//!
//! Each thread serves its own connections. All threads share the [keyspace](keyspace::Keyspace) and
//! hold its locks for at most one batch.

mod acceptor;
mod change_replies;
mod chunked;
mod clients;
mod config;
mod config_file;
mod connection;
mod cross_protocol;
mod decoding;
mod gauge;
mod handlers;
mod hash_key;
mod held_memory;
mod http;
pub mod keyspace;
mod loading;
mod metrics;
mod monitors;
mod output;
mod pattern;
mod persistence;
mod replace_file;
mod report;
mod server;
mod session;
mod stats;
mod system_error;
mod tls;
mod transaction;
mod users;

pub use config::{
    BindAddress, Config, ConfigError, ConfigOption, DebugCommand, HttpPort, NoAddress, OptionGroup,
    OutputLimit, OutputLimitError,
};
pub use config_file::ConfigFile;
pub use hash_key::{HashKey, HashKeyError};
pub use persistence::{DataReport, DurabilityError, Sync, check_data, repair_data};
pub use server::{Renewer, Server, ServerError, Stopper};
pub use tls::{ClientCertificates, TlsError};
pub use users::UsersError;
