//! Keys and their values, shared between threads.
//!
//! ```text
//! gate ──▶ shard of the key ──▶ cell ──▶ value
//! shared    map, locked for      locked shared by readers and by inserts that only set bits,
//!           a lookup             exclusively by everything else
//! ```
//!
//! Every thread takes the locks in this order and holds none of them across an await. A command
//! that must see several keys at once (a transaction, `RENAME`, `FLUSHALL`) takes the
//! [gate](Keyspace::exclusive) exclusively, so no other command runs meanwhile.

mod access;
mod cell;
mod freeing;
mod leases;
mod listed_key;
mod measuring;
mod shards;
mod table;
#[cfg(test)]
mod tests;
mod writing;

pub use access::{ExclusiveAccess, KeyspaceAccess, KeyspaceRef, SharedAccess};
pub use freeing::RemovedKeys;
pub use shards::Keyspace;
