//! The positions of bits and metadata in the keys of a filter.

pub(crate) mod bitmaps_filter;
pub(crate) mod bits;
pub(crate) mod draft;
pub(crate) mod generation;
pub(crate) mod generation_view;
pub(crate) mod geometry;
pub(crate) mod header;
pub(crate) mod helper_filter;
pub(crate) mod metadata;
pub(crate) mod redisson_filter;
pub(crate) mod shard_keys;
pub(crate) mod view;
