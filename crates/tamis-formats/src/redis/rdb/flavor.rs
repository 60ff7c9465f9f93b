//! The servers whose snapshots can be read.

use crate::redis::rdb_encoding::{MAX_RDB_VERSION, MAX_VALKEY_VERSION};

/// The server that wrote a snapshot. Some type numbers have different meanings in Redis and in Valkey 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavor {
    /// Redis, and Valkey before version 9.
    Redis,
    /// Valkey 9 and later.
    Valkey,
}

impl Flavor {
    /// Returns the flavor of a snapshot, which the first bytes of the snapshot show.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        [Flavor::Redis, Flavor::Valkey].into_iter().find(|it| bytes.starts_with(it.magic()))
    }

    pub(super) const fn magic(self) -> &'static [u8] {
        match self {
            Flavor::Redis => b"REDIS",
            Flavor::Valkey => b"VALKEY",
        }
    }

    /// Returns the newest RDB version whose types are all known.
    pub(super) const fn max_version(self) -> u32 {
        match self {
            Flavor::Redis => MAX_RDB_VERSION,
            Flavor::Valkey => MAX_VALKEY_VERSION,
        }
    }
}
