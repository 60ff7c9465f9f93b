//! Limits for the memory of a filter.

use tamis::{Bitmap, OutOfMemory};

use crate::error::RedisInsertError;

/// The most bytes that one growth of a filter may take. The limit belongs to the process and not to
/// the filter.
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
    /// Rejects a part of `bytes` bytes if it is above the limit.
    pub(crate) fn check(self, bytes: u64) -> Result<(), RedisInsertError> {
        if bytes > self.max_bytes {
            return Err(RedisInsertError::OverLimit { bytes, max_bytes: self.max_bytes });
        }
        Ok(())
    }
}

/// Checks that `bytes` bytes are within `max_bytes` and can be allocated. The caller checks this
/// before it allocates the parts. The operating system does not touch the pages of a large
/// allocation, so the check costs only two system calls.
pub(crate) fn can_allocate(bytes: u64, max_bytes: u64) -> Result<(), OutOfMemory> {
    if bytes > max_bytes {
        return Err(OutOfMemory { bytes });
    }
    Bitmap::zeroed(bytes.checked_mul(8).ok_or(OutOfMemory { bytes })?).map(|_| ())
}
