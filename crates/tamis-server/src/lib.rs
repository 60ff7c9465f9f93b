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
mod background_save;
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
mod gauge;
mod handlers;
mod hash_key;
mod held_memory;
mod http;
pub mod keyspace;
mod loading;
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

pub use config::{
    BindAddress, ClientCertificates, Config, ConfigError, ConfigFile, ConfigOption, DebugCommand,
    HttpPort, NoAddress, OptionGroup, OutputLimit, OutputLimitError,
};
pub use hash_key::{HashKey, HashKeyError};
pub use persistence::{DataReport, DurabilityError, Sync, check_data, repair_data};
pub use server::{Renewer, Server, Stopper};
pub use server_error::ServerError;
pub use tls::TlsError;
pub use users::UsersError;
