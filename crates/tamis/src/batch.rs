//! Operations on many items at a time: their answers, and the loops over their hashes.

pub(crate) mod answers;
pub(crate) mod bins;
pub(crate) mod chunks;
pub(crate) mod extend;
#[cfg(all(feature = "rayon", not(loom)))]
pub(crate) mod parallel;
pub(crate) mod prefetching;
