//! What a cuckoo filter of RedisBloom is made by.

use std::fmt;

use crate::bits::OutOfMemory;

/// What a [`RedisCuckoo`](crate::RedisCuckoo) is made by: the arguments of `CF.RESERVE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisCuckooOptions {
    /// Slots of the first sub-filter, from twice the bucket size to 2³⁰. The number of buckets is
    /// rounded up to a power of two.
    pub capacity: u64,
    /// Slots of a bucket, from 1 to 255.
    pub bucket_size: u16,
    /// How many fingerprints an insert moves before the filter grows, from 1 to 65,535.
    pub max_iterations: u16,
    /// How many times as large as the last sub-filter the next one is, up to 32,768, rounded up to a
    /// power of two; 0 allows no second one.
    pub expansion: u16,
}

impl Default for RedisCuckooOptions {
    /// What a server makes of a `CF.ADD` to an absent key.
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

/// Why there is no [`RedisCuckoo`](crate::RedisCuckoo) of these options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisCuckooError {
    /// The bucket size is not from 1 to 255.
    BucketSize {
        /// The bucket size asked for.
        bucket_size: u16,
    },
    /// No iterations are allowed.
    MaxIterations,
    /// The expansion is above 32,768.
    Expansion {
        /// The expansion asked for.
        expansion: u16,
    },
    /// The capacity is not from twice the bucket size to 2³⁰.
    Capacity {
        /// The capacity asked for.
        capacity: u64,
        /// The least that this bucket size allows.
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
            Self::MaxIterations => f.write_str("no iterations are allowed: give 1 to 65535"),
            Self::Expansion { expansion } => {
                write!(f, "the expansion {expansion} is out of range: give 0 to 32768")
            }
            Self::Capacity { capacity, least } => {
                write!(
                    f,
                    "the capacity {capacity} is out of range: give {least} to 1073741824 items"
                )
            }
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisCuckooError {}

/// What a server accepts as arguments.
const MAX_CAPACITY: u64 = 1 << 30;
pub(super) const MAX_BUCKET_SIZE: u16 = 255;
pub(super) const MAX_EXPANSION: u16 = 1 << 15;
