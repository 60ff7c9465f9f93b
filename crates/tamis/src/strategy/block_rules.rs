//! The rules that map a hash to the bits of one block. The rules are pure functions. Kernels and
//! strategies use the rules of this module.

pub(crate) mod narrow;
pub(crate) mod parquet;
pub(crate) mod scale;
pub(crate) mod split_block;
