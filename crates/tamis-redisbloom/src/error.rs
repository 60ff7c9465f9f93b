//! The errors of the filters of RedisBloom.

use std::fmt;

use tamis::OutOfMemory;

/// The reason why [`RedisBloom::new`](crate::RedisBloom::new) cannot create a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisBloomError {
    /// The rate is not above 0 and below 1, or half of the rate rounds to 0.
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

/// The reason why a filter rejected an item. A rejected item leaves the filter unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisInsertError {
    /// The filter is full and does not grow.
    Full {
        /// The number of items in the filter.
        items: u64,
    },
    /// The next layer of a Bloom filter would have a rate of 0, which no number of bits can keep.
    Rate,
    /// The next layer or sub-filter would be too large for any memory, or the number of sub-filters
    /// would exceed the server's counter.
    TooLarge,
    /// The next layer or sub-filter would exceed the caller's limit.
    OverLimit {
        /// The size of the next layer or sub-filter.
        bytes: u64,
        /// The limit that the caller set with `limit_growth`.
        max_bytes: u64,
    },
    /// There is not enough memory for the next layer or sub-filter.
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

/// The reason why bytes are not the header of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisHeaderError {
    /// The name of the field.
    pub field: &'static str,
    /// The byte offset of the field, or of the layer that contains the field.
    pub at: usize,
    /// The reason why the field is invalid.
    pub kind: RedisHeaderErrorKind,
}

/// The reason why a field of a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisHeaderErrorKind {
    /// The length of the header differs from the length that the fields require.
    Length {
        /// The length of the header.
        found: usize,
    },
    /// No server writes the value of this field, or no server writes this value together with the
    /// values of all other fields.
    Value,
    /// There is not enough memory for the filter.
    Memory(OutOfMemory),
}

impl RedisHeaderError {
    pub(crate) fn new(field: &'static str, at: usize, kind: RedisHeaderErrorKind) -> Self {
        Self { field, at, kind }
    }

    /// Creates the error for a field with an impossible value.
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

/// The reason why bytes are not a chunk of a filter. A rejected chunk leaves the filter unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisChunkError {
    /// The position is not above 0, or the position is below the length of the chunk. A cuckoo
    /// filter also returns `Position` for an empty chunk.
    Position,
    /// The chunk begins before the first byte or after the last byte of the filter.
    Outside,
    /// The chunk extends beyond the layer or sub-filter that contains the start of the chunk.
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
