//! Why a filter of Redis cannot be made, filled or loaded.

use std::fmt;

use crate::bits::OutOfMemory;

/// Why there is no [`RedisBloom`](crate::RedisBloom) of these options.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisBloomError {
    /// The rate is not between 0 and 1, or so small that its half is 0.
    Rate {
        /// The rate asked for.
        rate: f64,
    },
    /// The capacity is not from 1 to 2³⁰.
    Capacity {
        /// The capacity asked for.
        capacity: u64,
    },
    /// The expansion is above 32,768.
    Expansion {
        /// The expansion asked for.
        expansion: u32,
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
                    "the rate {rate:e} is no usable probability: give one above 1e-300 and below 1"
                )
            }
            Self::Capacity { capacity } => {
                write!(f, "the capacity {capacity} is out of range: give 1 to 1073741824 items")
            }
            Self::Expansion { expansion } => {
                write!(f, "the expansion {expansion} is out of range: give 0 to 32768")
            }
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisBloomError {}

/// Why a filter of Redis did not take an item. The filter is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisInsertError {
    /// The filter is full and was made not to grow.
    Full {
        /// The items it holds.
        items: u64,
    },
    /// The next layer of a Bloom filter would have rate 0, which no number of bits has.
    Rate,
    /// The next part would be larger than any memory, or one more than can be counted.
    TooLarge,
    /// The next part would take more than the caller allows.
    OverLimit {
        /// The size of the next part.
        bytes: u64,
        /// What [`RedisBloom::limit_growth`](crate::RedisBloom::limit_growth) or that of a cuckoo filter allows.
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
                    "the filter is full at {items} items and was made not to grow: reserve a larger one"
                )
            }
            Self::Rate => f.write_str(
                "the filter has grown so often that its rate has no half: reserve a larger one",
            ),
            Self::TooLarge => f.write_str(
                "the filter cannot grow any more: reserve one of larger capacity at first",
            ),
            Self::OverLimit { bytes, max_bytes } => write!(
                f,
                "the filter is full, and its next part would take {bytes} bytes, where {max_bytes} are allowed: reserve a larger one"
            ),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisInsertError {}

/// Why bytes are not the header of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisHeaderError {
    /// Name of the field.
    pub field: &'static str,
    /// Byte offset at which the field, or the layer it is part of, starts.
    pub at: usize,
    /// What is wrong with it.
    pub kind: RedisHeaderErrorKind,
}

/// What is wrong with a field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisHeaderErrorKind {
    /// The header is shorter or longer than it says.
    Length {
        /// The length it has.
        found: usize,
    },
    /// No server writes this value, or not beside the other fields.
    Value,
    /// There is not enough memory for the filter.
    Memory(OutOfMemory),
}

impl fmt::Display for RedisHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, at, kind } = self;
        match kind {
            RedisHeaderErrorKind::Length { found } => {
                write!(
                    f,
                    "a header of {found} bytes is cut or no header: feed what SCANDUMP gave first"
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
    /// The position is not above 0, or less than the chunk is long; for a cuckoo filter also an empty
    /// chunk.
    Position,
    /// The chunk begins before the first byte of the filter or behind its last.
    Outside,
    /// The chunk runs over the end of the part that it begins in.
    TooLong,
}

impl fmt::Display for RedisChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Position => "the position is impossible for a chunk of this length",
            Self::Outside => "the chunk begins outside the filter: load the header it came with",
            Self::TooLong => {
                "the chunk is longer than what it belongs to: load the header it came with"
            }
        })
    }
}

impl std::error::Error for RedisChunkError {}
