//! Reads the clock. The library never reads it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the milliseconds since 1970. `SOURCE_DATE_EPOCH` (in whole seconds) replaces the clock
/// for builds that must be identical to the byte. An invalid value counts as unset, as in other
/// programs.
pub fn now_millis() -> u64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    match fixed {
        Some(seconds) => seconds.saturating_mul(1000),
        // A clock before 1970 was never set.
        None => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
    }
}
