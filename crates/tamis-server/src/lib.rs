//! The Tamis server: a keyspace on sockets, for any Redis client.
//!
//! ```text
//! socket ──▶ words of all complete commands ──▶ neighbours on one key as one batch ──▶ replies, written once
//!            tamis-resp                          tamis-commands, on a keyspace of ours
//! ```
//!
//! Each thread runs its own connections; they share the [keyspace](keyspace::Keyspace), whose locks are held for
//! a batch at most.

mod change_replies;
mod clients;
mod config;
mod config_file;
mod connection;
mod cross_protocol;
mod decoding;
mod door;
mod durability;
mod durable;
mod gauge;
mod hash_key;
mod held_memory;
mod host;
mod http;
pub mod keyspace;
mod loading;
mod metrics;
mod monitors;
mod output;
mod pattern;
mod report;
mod server;
mod session;
mod slices;
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
pub use durability::{DataReport, DurabilityError, Sync, check_data, repair_data};
pub use hash_key::{HashKey, HashKeyError};
pub use server::{Renewer, Server, ServerError, Stopper};
pub use tls::{ClientCertificates, TlsError};
pub use users::UsersError;
