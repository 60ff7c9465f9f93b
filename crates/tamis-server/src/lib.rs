//! The Tamis server: a keyspace on sockets, for any Redis client.
//!
//! ```text
//! socket ──▶ argv of all complete commands ──▶ neighbours on one key as one batch ──▶ replies, written once
//!            tamis-resp                          tamis-commands, on a keyspace of ours
//! ```
//!
//! Each thread runs its own connections; they share the [keyspace](keyspace::Keyspace), whose locks are held for
//! a batch at most.

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
