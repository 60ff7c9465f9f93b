//! Keeps data across restarts: writes a log of all changes, and snapshots that keep the log short.
//!
//! ```text
//! dir/ lock               locked by the one server that uses the folder
//!      manifest           the number of the newest log
//!      snapshot-3.tamis   every key, read after log-3 began
//!      log-3.tamis        all changes since that snapshot began
//! ```
//!
//! The log contains the changes of each key in order, because the server appends a change while the
//! server holds the lock of the key. One state machine (`log/state.rs`) orders the frames, the
//! files, the syncs and the replies. A model test (`model.rs`) explores the state machine of the
//! log.
//!
//! The log contains all parameters of a change, so the replay reads no option. The log records the
//! creation of a filter as the parameters of the filter. The log records the new items of a Bloom
//! filter as their hashes. The log records any other change as the command.
//!
//! A snapshot starts a new log, and writes one key after another while the server serves clients.
//! The position of a serialized value in the log shows which changes the value already contains.
//! The replay skips the changes that the value already contains. In a reserved Bloom filter, an
//! insert only sets bits, so a repeated insert changes nothing. The server can serialize a reserved
//! Bloom filter while clients insert, because a repeated insert changes nothing.
//!
//! `docs/formats/server.md` shows the layout of the files.

pub(crate) mod background_save;
mod check;
mod disk;
mod error;
mod folder;
mod header;
pub(crate) mod loading;
mod log;
mod manifest;
#[cfg(test)]
mod model;
mod recover;
mod repair;
#[cfg(test)]
mod sim_disk;
mod snapshot;
mod storage;
#[cfg(test)]
mod test_files;

pub use check::{DataReport, check_data};
pub use error::DurabilityError;
pub(crate) use log::record::Record;
pub use log::state::FsyncPolicy;
pub(crate) use log::{Log, LogGroup};
pub use repair::repair_data;
pub(crate) use storage::Durable;
