//! Limits for the memory of a filter.

use tamis::{Bitmap, OutOfMemory};

use crate::error::RedisInsertError;

/// The maximum number of bytes that one growth step of a filter may allocate. Dumps of the filter
/// do not contain the growth limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowthLimit {
    /// The limit in bytes.
    pub(crate) max_bytes: u64,
}

impl Default for GrowthLimit {
    fn default() -> Self {
        Self { max_bytes: u64::MAX }
    }
}

impl GrowthLimit {
    /// Returns an error if a new layer or sub-filter of `bytes` bytes exceeds the limit.
    pub(crate) fn check(self, bytes: u64) -> Result<(), RedisInsertError> {
        if bytes > self.max_bytes {
            return Err(RedisInsertError::OverLimit { bytes, max_bytes: self.max_bytes });
        }
        Ok(())
    }
}

/// Checks that `bytes` is at most `max_bytes`, and that the process can allocate `bytes` bytes. The
/// caller must call this function before allocating the parts of a filter. The operating system
/// maps the pages of a large allocation only on first access, so the check costs only two system
/// calls.
pub(crate) fn can_allocate(bytes: u64, max_bytes: u64) -> Result<(), OutOfMemory> {
    if bytes > max_bytes {
        return Err(OutOfMemory { bytes });
    }
    Bitmap::zeroed(bytes.checked_mul(8).ok_or(OutOfMemory { bytes })?).map(|_| ())
}
