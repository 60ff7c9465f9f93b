//! The digests in a state file.

use tamis::Digest;

/// A digest that a state file stores: `u64` or `u128`, as little-endian bytes.
///
/// # Examples
///
/// ```
/// use tamis_state::StoredDigest;
///
/// let bytes = [1_u64.to_bytes().as_ref(), 2_u64.to_bytes().as_ref()].concat();
/// let mut digests = Vec::new();
/// u64::read_each(&bytes, &mut digests);
/// assert_eq!(digests, [1, 2]);
/// ```
pub trait StoredDigest: Digest + Ord {
    /// Returns the bytes of the digest, little-endian.
    fn to_bytes(self) -> impl AsRef<[u8]>;

    /// Decodes a digest.
    ///
    /// # Panics
    ///
    /// Panics if the length of `bytes` is not the width of the digest.
    fn of_bytes(bytes: &[u8]) -> Self;

    /// Decodes consecutive digests, and replaces the contents of `out` with these digests. Ignores
    /// bytes at the end that are shorter than a digest.
    fn read_each(bytes: &[u8], out: &mut Vec<Self>) {
        out.clear();
        out.extend(bytes.chunks_exact(size_of::<Self>()).map(Self::of_bytes));
    }
}

impl StoredDigest for u64 {
    fn to_bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl StoredDigest for u128 {
    fn to_bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("sixteen bytes"))
    }
}
