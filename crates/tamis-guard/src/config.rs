//! The configuration of a guard: a TOML file with the proxy, the sets of ids, and the routes.
//!
//! Paths in the file are relative to the folder of the file.

mod admin;
mod authorize;
mod checked;
mod error;
mod file;
mod ids;
mod learn;
mod max_tables;
mod one_route;
mod proxy;
mod read;
mod refusal;
mod route;
#[cfg(feature = "sources")]
mod secret_url;
mod set;
mod setting;
mod snapshot_folder;
mod snapshots;
mod source;
mod sources;
mod units;

pub use checked::Config;
pub use error::ConfigError;
pub use one_route::OneRoute;
pub(crate) use set::{SetConfig, SnapshotsConfig};
pub(crate) use snapshot_folder::SnapshotFolder;
