//! The digests of records.

use tamis::{Digest, Hasher, Item as _};

/// A digest of a fixed width.
pub trait Width: Digest + Default {
    /// Hashes a key.
    fn digest(hasher: &Hasher, key: &[u8]) -> Self;

    /// Hashes keys: `digests[i]` is the digest of `keys[i]`.
    fn digest_each(hasher: &Hasher, keys: &[&[u8]], digests: &mut [Self]);

    /// Converts the digest of a record without a key. The result must differ from the digest of an
    /// equal key.
    fn keyless(self) -> Self;

    /// Appends the bytes of the digest, little-endian, to `bytes`.
    fn write_to(self, bytes: &mut Vec<u8>);

    /// Reads digests written by [`write_to`](Self::write_to), and replaces the contents of `out` by
    /// them.
    fn read_each(bytes: &[u8], out: &mut Vec<Self>);
}

impl Width for u64 {
    #[inline]
    fn digest(hasher: &Hasher, key: &[u8]) -> Self {
        hasher.hash(key)
    }

    fn digest_each(hasher: &Hasher, keys: &[&[u8]], digests: &mut [Self]) {
        <&[u8]>::hash_each(keys, hasher, digests);
    }

    #[inline]
    fn keyless(self) -> Self {
        !self
    }

    fn write_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn read_each(bytes: &[u8], out: &mut Vec<Self>) {
        out.clear();
        out.extend(bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
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

    #[inline]
    fn keyless(self) -> Self {
        !self
    }

    fn write_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn read_each(bytes: &[u8], out: &mut Vec<Self>) {
        out.clear();
        out.extend(bytes.as_chunks::<16>().0.iter().map(|bytes| u128::from_le_bytes(*bytes)));
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
