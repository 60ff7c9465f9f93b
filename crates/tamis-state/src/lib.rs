//! A durable set of digests: an append-only file of the hashes of items that a program has seen.
//! The file survives `kill -9` and a power loss at any time.
//!
//! | type | for |
//! | --- | --- |
//! | [`SeenLog`] | a program that only appends digests, such as a crawler |
//! | [`StateFile`] | a program that reads inputs and writes an output, such as `tamis dedup --state`: after a kill, the next run continues at the last checkpoint |
//! | [`KilledRun`], [`FinishedRun`] | the last runs of a [`StateFile`] |
//! | [`Replay`] | the digests of a file |
//! | [`StateError`] | all errors |
//!
//! Both types read and write the same format, which `docs/formats/state.md` specifies. The header of
//! a file stores the hash function with its key, and a description of the items. A process locks the
//! file, so only one process at a time uses the file. All reads are in blocks, so the memory does
//! not depend on the length of the file. The caller holds the digests in memory, for example in a
//! [`DigestSet`](tamis::DigestSet).
#![forbid(unsafe_code)]

mod block;
mod create;
mod digest;
mod disk;
mod error;
mod header;
mod log_file;
#[cfg(test)]
mod power_loss;
mod replay;
mod scan;
mod seen_log;
mod state_file;
mod synced;

pub use digest::StoredDigest;
pub use error::StateError;
pub use header::Requirements;
pub use replay::Replay;
pub use scan::{FinishedRun, KilledRun};
pub use seen_log::SeenLog;
pub use state_file::StateFile;
