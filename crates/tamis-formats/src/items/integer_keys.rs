//! Converts keys to integers, for exact sets of integers.

use crate::errors::ChangeError;

/// Returns the smallest and the largest value of a set, for display.
pub(crate) fn min_and_max(min: Option<u64>, max: Option<u64>) -> Vec<(&'static str, String)> {
    let ends = [("least", min), ("greatest", max)];
    ends.into_iter().filter_map(|(name, end)| Some((name, end?.to_string()))).collect()
}

/// Returns the integer of a key. A key of 4 bytes is a signed integer, and a key of 8 bytes is an unsigned integer.
/// Returns `None` for a negative integer and for a key whose length is not 4 or 8 bytes.
pub(crate) fn value(key: &[u8]) -> Option<u64> {
    if let Ok(bytes) = key.try_into() {
        return Some(u64::from_le_bytes(bytes));
    }
    key.try_into().ok().and_then(|bytes| i32::from_le_bytes(bytes).try_into().ok())
}

pub(crate) fn no_value() -> ChangeError {
    ChangeError::refused(
        "not a non-negative integer: such an item has no bit, and the original rejects it too",
    )
}
