//! The values that the kernels of the default filter compute for a batch before the kernels access
//! the blocks.

/// The number of items in a batch. While the answers of one batch are computed, the cache lines of
/// the next batch are loaded.
pub(super) const BATCH: usize = 64;

/// The computed values of the items of a batch.
// The type is aligned to a cache line, because the CPU does not forward a vector store across two
// cache lines to later loads. The order of the fields is fixed: the assembly reads `lanes` 512
// bytes after `starts`.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Located {
    /// For each item, the number of the first byte of its block.
    pub starts: [u64; BATCH],
    /// For each item, the value from which the kernel computes the bits in the lanes.
    pub lanes: [u64; BATCH],
}

impl Located {
    pub const NONE: Self = Self { starts: [0; BATCH], lanes: [0; BATCH] };
}
