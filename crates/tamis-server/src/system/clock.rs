//! The current time of the system.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time as a duration since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now_millis() -> u64 {
    since_1970().as_millis() as u64
}
