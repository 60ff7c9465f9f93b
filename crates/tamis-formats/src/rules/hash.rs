//! The hash functions of other systems, including their defects.

pub(crate) mod abloom;
pub(crate) mod jenkins;
pub(crate) mod leveldb;
pub(crate) mod murmur2;
pub(crate) mod murmur3;
pub(crate) mod orc;
pub(crate) mod polynomial;
pub(crate) mod xxh3_preview;
