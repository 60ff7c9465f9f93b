//! What a server keeps over its end: a log of all changes, and snapshots that make it short.
//!
//! ```text
//! dir/ lock               one server a folder
//!      manifest           the number of the newest log
//!      snapshot-3.tamis   every key, as it was while log-3 began
//!      log-3.tamis        changes from shortly before that snapshot on
//! ```
//!
//! A change is appended to the log while the lock of its key is held, so the log has the changes of each key in order. What
//! orders frames, files, syncs and answers is one state machine (`state.rs`), which a model test explores (`model.rs`).
//!
//! A change is logged with all its parameters: replaying it reads no setting. A new filter is logged as its parameters,
//! items of a Bloom filter as their hashes, any other change as the command.
//!
//! A snapshot begins with a new log, and then writes key after key while the server works. The position of an image says
//! which changes of the new log it has: they are passed over when the log is replayed. Bits of a reserved Bloom filter only
//! ever go from 0 to 1, so its image is written while others insert: inserting again changes nothing.
//!
//! The files are drawn in `docs/formats/server.md`.

mod check;
mod disk;
mod error;
mod folder;
mod frame;
mod frames;
mod header;
mod log;
mod log_file;
mod manifest;
#[cfg(test)]
mod model;
mod record;
mod recover;
mod repair;
mod replay;
mod salvage;
#[cfg(test)]
mod sim_disk;
mod snapshot;
mod state;
mod storage;

pub use check::{DataReport, check_data};
pub(crate) use disk::{Disk, OsDisk};
pub use error::DurabilityError;
pub(crate) use log::Log;
pub(crate) use record::Record;
pub(crate) use recover::{forget, lock, recover};
pub use repair::repair_data;
pub(crate) use snapshot::save;
pub use state::Sync;
pub(crate) use storage::{Durable, save_if_due, save_in_background};
