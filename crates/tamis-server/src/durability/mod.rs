//! What a server keeps over its end: a log of all changes, and snapshots that make it short.
//!
//! ```text
//! dir/ lock               one server a folder
//!      snapshot-3.tamis   every key, as it was while log-3 began
//!      log-3.tamis        changes from shortly before that snapshot on
//! ```
//!
//! A change is written to the log while the lock of its key is held, so the log has the changes of each key in
//! order. A writer thread writes what has gathered, all connections' together, and syncs it to the disk as
//! `appendfsync` says.
//!
//! A snapshot begins with a new log, and then writes key after key while the server works. What a key's image
//! already has of the new log is told by its position: changes before it are passed over when the log is read.
//! Bits of a reserved Bloom filter only ever go from 0 to 1, so its image is written while others insert: doing
//! an insert again does nothing.
//!
//! Both files are drawn in `docs/formats/server.md`.

mod error;
mod frame;
mod log;
mod record;
mod recover;
mod snapshot;

pub use error::DurabilityError;
pub use log::Sync;
pub(crate) use log::{Log, NOT_BEGUN, create};
pub(crate) use record::Record;
pub(crate) use recover::{forget, recover};
pub(crate) use snapshot::save;
