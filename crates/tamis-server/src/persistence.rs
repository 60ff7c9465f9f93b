//! Keeps data across restarts: a log of all changes, and snapshots that keep the log short.
//!
//! ```text
//! dir/ lock               locked by the one server that uses the folder
//!      manifest           the number of the newest log
//!      snapshot-3.tamis   every key, read after log-3 began
//!      log-3.tamis        all changes since that snapshot began
//! ```
//!
//! A change is appended to the log while the lock of its key is held, so the log contains the
//! changes of each key in order. One state machine (`log/state.rs`) orders frames, files, syncs and
//! answers. A model test explores it (`model.rs`).
//!
//! A change is logged with all its parameters: the replay reads no setting. A new filter is logged
//! as its parameters, items of a Bloom filter as their hashes, any other change as the command.
//!
//! A snapshot begins with a new log, and then writes key after key while the server works. The
//! position of a serialization determines which changes of the new log it contains: the replay
//! skips those. Bits of a reserved Bloom filter only change from 0 to 1, so the server writes its
//! serialization while clients insert: a repeated insert changes nothing.
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
