//! What the kernels of the default filter know of a batch before they touch its blocks.

/// Items in a batch: the lines of all of them are under way while those before are answered.
pub(super) const BATCH: usize = 64;

/// What a batch needs of its items.
// Aligned: a vector store across two lines would not forward to the loads that follow. In this order:
// assembly finds `lanes` 512 bytes behind `starts`.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Located {
    /// The byte at which the block starts.
    pub starts: [u64; BATCH],
    /// What the bits in the lanes are made of, as the kernel likes it.
    pub lanes: [u64; BATCH],
}

impl Located {
    pub const NONE: Self = Self { starts: [0; BATCH], lanes: [0; BATCH] };
}
