//! The options of the cuckoo filter of RedisBloom.

use std::fmt;

use tamis::OutOfMemory;

/// The options of a [`RedisCuckoo`](crate::RedisCuckoo), which are the arguments of `CF.RESERVE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisCuckooOptions {
    /// The number of slots of the first sub-filter, at least twice the bucket size. The filter
    /// rounds the number of buckets up to a power of two. RedisBloom 8 accepts a capacity of at
    /// most 2³⁰.
    pub capacity: u64,
    /// The number of slots of a bucket, from 1 to 255.
    pub bucket_size: u16,
    /// The maximum number of fingerprints that an insert moves before the filter grows, from 1 to
    /// 65,535.
    pub max_iterations: u16,
    /// The size of a new sub-filter divided by the size of the previous sub-filter, at most 32,768.
    /// The filter rounds the expansion up to a power of two. With an expansion of 0, the filter has
    /// only one sub-filter.
    pub expansion: u16,
}

impl Default for RedisCuckooOptions {
    /// Returns the options that a server uses if `CF.ADD` creates the key.
    fn default() -> Self {
        Self { capacity: 1024, bucket_size: 2, max_iterations: 20, expansion: 1 }
    }
}

impl RedisCuckooOptions {
    /// Checks that each option is in its range.
    pub(super) fn check(&self) -> Result<(), RedisCuckooError> {
        let &Self { capacity, bucket_size, max_iterations, expansion } = self;
        let least = 2 * u64::from(bucket_size);
        if max_iterations == 0 {
            Err(RedisCuckooError::MaxIterations)
        } else if !(1..=MAX_BUCKET_SIZE).contains(&bucket_size) {
            Err(RedisCuckooError::BucketSize { bucket_size })
        } else if expansion > MAX_EXPANSION {
            Err(RedisCuckooError::Expansion { expansion })
        } else if !(least..=MAX_CAPACITY).contains(&capacity) {
            Err(RedisCuckooError::Capacity { capacity, least })
        } else {
            Ok(())
        }
    }
}

/// The reason why [`RedisCuckoo::new`](crate::RedisCuckoo::new) cannot create a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisCuckooError {
    /// The bucket size is not from 1 to 255.
    BucketSize {
        /// The requested bucket size.
        bucket_size: u16,
    },
    /// The number of iterations is zero.
    MaxIterations,
    /// The expansion is above 32,768.
    Expansion {
        /// The requested expansion.
        expansion: u16,
    },
    /// The capacity is below twice the bucket size, or is too large for any memory.
    Capacity {
        /// The requested capacity.
        capacity: u64,
        /// The lowest capacity for this bucket size.
        least: u64,
    },
    /// There is not enough memory.
    Memory(OutOfMemory),
}

impl fmt::Display for RedisCuckooError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BucketSize { bucket_size } => {
                write!(f, "the bucket size {bucket_size} is out of range: give 1 to 255 slots")
            }
            Self::MaxIterations => f.write_str("the number of iterations is 0: give 1 to 65535"),
            Self::Expansion { expansion } => {
                write!(f, "the expansion {expansion} is out of range: give 0 to 32768")
            }
            Self::Capacity { capacity, least } => {
                write!(f, "the capacity {capacity} is out of range: give {least} to 10^15 items")
            }
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisCuckooError {}

/// The maximum capacity, which is more than fits in any memory. For the maximum capacity, the
/// number of buckets is below the maximum of a header.
const MAX_CAPACITY: u64 = 1 << 50;
/// The maximum bucket size and the maximum expansion that RedisBloom accepts as arguments.
pub(super) const MAX_BUCKET_SIZE: u16 = 255;
pub(super) const MAX_EXPANSION: u16 = 1 << 15;
