//! What a server counts of its work.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Numbers that only grow.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub commands: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    pub rejected: AtomicU64,
    pub expired_keys: AtomicU64,
    pub errors: AtomicU64,
}

/// Returns the time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the milliseconds since 1970.
pub(crate) fn now_millis() -> u64 {
    since_1970().as_millis() as u64
}
