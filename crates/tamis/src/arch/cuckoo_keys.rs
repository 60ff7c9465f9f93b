//! The values that the batch kernels of the cuckoo filter take and return.

/// The parameters of a cuckoo table whose buckets fit in one read and whose slot numbers fit in 32
/// bits.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri), not(loom))),
    expect(dead_code, reason = "only kernels read them")
)]
pub(crate) struct Pairs {
    /// The number of positions at which a bucket can start, in one half of the table.
    pub starts: u64,
    /// The first slot of the right half.
    pub right: u64,
    pub fingerprints: u64,
    /// The multiplier of a fingerprint, to compute the second bucket of an item from its first
    /// bucket.
    pub multiplier: u64,
    /// The number of bits in a slot.
    pub width: u64,
    /// A fingerprint times `spread`, plus `offsets`, is the content of a bucket with this
    /// fingerprint in every slot.
    pub spread: u64,
    pub offsets: u64,
    /// The lowest bit of every slot of a bucket.
    pub ones: u64,
    /// The highest bit of every slot of a bucket.
    pub highs: u64,
}

/// The number of items in a batch of keys.
pub(crate) const BATCH: usize = 64;

/// The keys of a batch: the result of `Table::key` for each item.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Keys {
    pub fingerprints: [u64; BATCH],
    /// The first slots of the left buckets and of the right buckets.
    pub starts: [[u64; BATCH]; 2],
}

impl Keys {
    pub(crate) const NONE: Self = Self { fingerprints: [0; BATCH], starts: [[0; BATCH]; 2] };
}
