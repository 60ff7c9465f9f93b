//! Keys and their values, shared between threads.
//!
//! ```text
//! gate ──▶ shard of the key ──▶ cell ──▶ value
//! shared    map, locked for      locked shared by readers and by inserts that only set bits,
//!           a lookup             exclusively by everything else
//! ```
//!
//! Every thread takes the locks in the order of the drawing and holds no lock across an await. Some
//! commands need all keys at the same time: a transaction, `RENAME`, `FLUSHALL`. A command that
//! needs all keys takes the [gate](Keyspace::exclusive) exclusively, and no other command runs
//! while the gate is locked exclusively.

mod access;
mod cell;
mod freeing;
mod leases;
mod listed_key;
mod measuring;
mod shards;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod writing;

pub use access::{ExclusiveAccess, KeyspaceAccess, KeyspaceRef, SharedAccess};
pub use freeing::RemovedKeys;
pub use shards::Keyspace;
