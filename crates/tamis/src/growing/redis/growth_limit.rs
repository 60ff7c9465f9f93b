//! The limit for the growth of a filter.

use super::error::RedisInsertError;

/// The most bytes that one growth of a filter may take.
///
/// The limit belongs to the process and not to the filter: dumps do not contain it, and filters that differ only in it
/// are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowthLimit {
    /// In bytes.
    pub max_bytes: u64,
}

impl Default for GrowthLimit {
    fn default() -> Self {
        Self { max_bytes: u64::MAX }
    }
}

impl PartialEq for GrowthLimit {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for GrowthLimit {}

impl GrowthLimit {
    /// Rejects a part of `bytes` bytes if it is above the limit.
    pub fn check(self, bytes: u64) -> Result<(), RedisInsertError> {
        if bytes > self.max_bytes {
            return Err(RedisInsertError::OverLimit { bytes, max_bytes: self.max_bytes });
        }
        Ok(())
    }
}
