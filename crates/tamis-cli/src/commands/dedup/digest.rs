//! The digests of records.

use std::ops::Not;

use tamis::{Hasher, Item as _};
use tamis_state::StoredDigest;

/// A digest of a fixed width.
pub trait Width: StoredDigest + Default + Not<Output = Self> {
    /// Hashes a key.
    fn digest(hasher: &Hasher, key: &[u8]) -> Self;

    /// Hashes keys: `digests[i]` is the digest of `keys[i]`.
    fn digest_each(hasher: &Hasher, keys: &[&[u8]], digests: &mut [Self]);

    /// Returns the digest for a record without a key. The result differs from the digest of an
    /// equal key.
    fn keyless(self) -> Self {
        !self
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
}

impl Width for u128 {
    #[inline]
    fn digest(hasher: &Hasher, key: &[u8]) -> Self {
        hasher.hash128(key)
    }

    fn digest_each(hasher: &Hasher, keys: &[&[u8]], digests: &mut [Self]) {
        hasher.hash128_each(keys, digests);
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
