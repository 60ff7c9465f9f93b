//! The errors of creating, filling and loading filters of Redis.

use std::fmt;

use tamis::OutOfMemory;

/// Why a [`RedisBloom`](crate::RedisBloom) with these options cannot be created.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisBloomError {
    /// The rate is not between 0 and 1, or is so small that half of it rounds to 0.
    Rate {
        /// The requested rate.
        rate: f64,
    },
    /// The capacity is zero, or the first layer would be too large for any memory.
    Capacity {
        /// The requested capacity.
        capacity: u64,
    },
    /// There is not enough memory.
    Memory(OutOfMemory),
}

impl fmt::Display for RedisBloomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { rate } => {
                write!(
                    f,
                    "the rate {rate:e} is not a usable probability: give one above 1e-300 and \
                    below 1"
                )
            }
            Self::Capacity { capacity } => {
                write!(f, "the capacity {capacity} is out of range: give 1 to 10^15 items")
            }
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisBloomError {}

/// Why a filter of Redis rejected an item. The filter is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisInsertError {
    /// The filter is full and does not grow.
    Full {
        /// The number of items that it holds.
        items: u64,
    },
    /// The next layer of a Bloom filter would have rate 0, which no number of bits can keep.
    Rate,
    /// The next part would be too large for any memory, or the number of parts would exceed its
    /// counter.
    TooLarge,
    /// The next part would exceed the caller's limit.
    OverLimit {
        /// The size of the next part.
        bytes: u64,
        /// The limit of [`RedisBloom::limit_growth`](crate::RedisBloom::limit_growth), or of the
        /// same method of a cuckoo filter.
        max_bytes: u64,
    },
    /// There is not enough memory for the next part.
    Memory(OutOfMemory),
}

impl fmt::Display for RedisInsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { items } => {
                write!(
                    f,
                    "the filter is full at {items} items and cannot grow by its options: reserve a \
                    larger one"
                )
            }
            Self::Rate => f.write_str(
                "the rate of the next layer would be zero, after many growths: reserve a larger \
                one",
            ),
            Self::TooLarge => {
                f.write_str("the filter cannot grow any more: reserve one of larger capacity")
            }
            Self::OverLimit { bytes, max_bytes } => write!(
                f,
                "the filter is full, and its next part would take {bytes} bytes, above the limit \
                of {max_bytes}: reserve a larger one"
            ),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisInsertError {}

/// Why bytes are not the header of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisHeaderError {
    /// The name of the field.
    pub field: &'static str,
    /// The byte offset of the field, or of the layer that contains it.
    pub at: usize,
    /// What is wrong with the field.
    pub kind: RedisHeaderErrorKind,
}

/// What is wrong with a field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisHeaderErrorKind {
    /// The length of the header differs from the length that its fields require.
    Length {
        /// The length of the header.
        found: usize,
    },
    /// No server writes this value, or no server writes it together with the other fields.
    Value,
    /// There is not enough memory for the filter.
    Memory(OutOfMemory),
}

impl RedisHeaderError {
    pub(crate) fn new(field: &'static str, at: usize, kind: RedisHeaderErrorKind) -> Self {
        Self { field, at, kind }
    }

    /// Creates the error of a field with an impossible value.
    pub(crate) fn value(field: &'static str, at: usize) -> Self {
        Self::new(field, at, RedisHeaderErrorKind::Value)
    }
}

impl fmt::Display for RedisHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, at, kind } = self;
        match kind {
            RedisHeaderErrorKind::Length { found } => {
                write!(
                    f,
                    "a header of {found} bytes is truncated or not a header: load the first reply \
                    of SCANDUMP"
                )
            }
            RedisHeaderErrorKind::Value => {
                write!(f, "the header has an impossible {field} at byte {at}: it is damaged")
            }
            RedisHeaderErrorKind::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisHeaderError {}

/// Why bytes are not a chunk of this filter. Nothing was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisChunkError {
    /// The position is not above 0, or it is less than the length of the chunk. For a cuckoo
    /// filter, also an empty chunk.
    Position,
    /// The chunk begins before the first byte of the filter or after its last.
    Outside,
    /// The chunk extends beyond the part in which it begins.
    TooLong,
}

impl fmt::Display for RedisChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Position => "the position is impossible for a chunk of this length",
            Self::Outside => {
                "the chunk begins outside the filter: load the header of the same dump"
            }
            Self::TooLong => {
                "the chunk extends beyond its part of the filter: load the header of the same dump"
            }
        })
    }
}

impl std::error::Error for RedisChunkError {}
