//! The digests of records.

use std::ops::Not;

use tamis::{Digest, Hasher, Item as _};

/// A digest of a fixed width.
pub trait Width: Digest + Default + Not<Output = Self> {
    /// Hashes a key.
    fn digest(hasher: &Hasher, key: &[u8]) -> Self;

    /// Hashes keys: `digests[i]` is the digest of `keys[i]`.
    fn digest_each(hasher: &Hasher, keys: &[&[u8]], digests: &mut [Self]);

    /// Returns the bytes of the digest, little-endian.
    fn to_bytes(self) -> impl AsRef<[u8]>;

    /// Decodes a digest from `bytes`, which has the width of the digest.
    fn of_bytes(bytes: &[u8]) -> Self;

    /// Returns the digest for a record without a key. The result differs from the digest of an
    /// equal key.
    fn keyless(self) -> Self {
        !self
    }

    /// Decodes consecutive digests, and replaces the contents of `out` with these digests.
    fn read_each(bytes: &[u8], out: &mut Vec<Self>) {
        out.clear();
        out.extend(bytes.chunks_exact(size_of::<Self>()).map(Self::of_bytes));
    }
}

impl Width for u64 {
    #[inline]
    fn digest(hasher: &Hasher, key: &[u8]) -> Self {
        hasher.hash(key)
    }

    fn digest_each(hasher: &Hasher, keys: &[&[u8]], digests: &mut [Self]) {
        <&[u8]>::hash_each(keys, hasher, digests);
    }

    fn to_bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl Width for u128 {
    #[inline]
    fn digest(hasher: &Hasher, key: &[u8]) -> Self {
        hasher.hash128(key)
    }

    fn digest_each(hasher: &Hasher, keys: &[&[u8]], digests: &mut [Self]) {
        hasher.hash128_each(keys, digests);
    }

    fn to_bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("sixteen bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_key_meets_no_equal_key() {
        let hasher = Hasher::default();
        assert_ne!(u64::digest(&hasher, b"a"), u64::digest(&hasher, b"a").keyless());
        assert_ne!(u128::digest(&hasher, b"a"), u128::digest(&hasher, b"a").keyless());
    }
}
