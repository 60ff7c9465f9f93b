//! How large the next part of a growing filter may be.

use super::error::RedisInsertError;

/// The most bytes that one growth of a filter may take.
///
/// It belongs to the process and not to the filter: dumps do not hold it, and filters that differ in it alone are equal.
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
    /// Rejects a part of `bytes` bytes if that is above the limit.
    pub fn check(self, bytes: u64) -> Result<(), RedisInsertError> {
        if bytes > self.max_bytes {
            return Err(RedisInsertError::OverLimit { bytes, max_bytes: self.max_bytes });
        }
        Ok(())
    }
}
