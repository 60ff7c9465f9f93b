//! The hash functions of other systems, as they are there: with their defects.

pub(crate) mod murmur3;
pub(crate) mod polynomial;
