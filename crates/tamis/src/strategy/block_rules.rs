//! The rules from a hash to the bits of one block. They are pure, and kernels and strategies use
//! them.

pub(crate) mod narrow;
pub(crate) mod parquet;
pub(crate) mod scale;
pub(crate) mod split_block;
