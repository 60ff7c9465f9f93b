//! The values that the kernels of the default filter compute for a batch before they access its blocks.

/// Items in a batch. The lines of all of them are loaded while the batch before is answered.
pub(super) const BATCH: usize = 64;

/// The computed values of the items of a batch.
// Aligned, because a vector store across two lines would not be forwarded to later loads. The order of the fields is
// fixed: assembly finds `lanes` 512 bytes behind `starts`.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Located {
    /// The first byte of the block.
    pub starts: [u64; BATCH],
    /// The values from which the kernel computes the bits in the lanes.
    pub lanes: [u64; BATCH],
}

impl Located {
    pub const NONE: Self = Self { starts: [0; BATCH], lanes: [0; BATCH] };
}
