//! What time it is: the library never asks.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the milliseconds since 1970, or those of `SOURCE_DATE_EPOCH` (whole seconds), by which builds are
/// repeated to the byte; anything else in that variable counts as unset, as elsewhere.
pub fn now_millis() -> u64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    match fixed {
        Some(seconds) => seconds.saturating_mul(1000),
        // A clock before 1970 is one that was never set.
        None => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
    }
}
