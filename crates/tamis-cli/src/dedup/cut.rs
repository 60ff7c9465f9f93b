//! A batch of neighbouring records of one block, and their digests.

use memchr::memchr_iter;
use tamis::{Digest, Hasher};

use crate::key::KeyRule;

/// How many records are judged together: their digests stay in the first cache.
pub const BATCH: usize = 1024;

/// Neighbouring records of a block.
pub struct Batch<'a> {
    block: &'a [u8],
    // Record `i` is `block[bounds[i]..bounds[i + 1]]`, its delimiter included.
    bounds: &'a [usize],
    delimiter: u8,
}

impl<'a> Batch<'a> {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Returns record `i` without its delimiter.
    #[inline]
    pub fn record(&self, i: usize) -> &'a [u8] {
        let record = &self.block[self.bounds[i]..self.bounds[i + 1]];
        match record {
            [record @ .., last] if *last == self.delimiter => record,
            // Only the last record of an input has none.
            _ => record,
        }
    }

    /// Returns records `from..to` with their delimiters, as they lie in the input.
    #[inline]
    pub fn span(&self, from: usize, to: usize) -> &'a [u8] {
        &self.block[self.bounds[from]..self.bounds[to]]
    }

    /// Tells whether the last record lacks its delimiter.
    pub fn is_unterminated(&self) -> bool {
        self.block[..self.bounds[self.len()]].last() != Some(&self.delimiter)
    }

    /// Returns the byte that ends a record.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }
}

/// Cuts a block of whole records into batches.
///
/// # Errors
///
/// The first error of `each`.
pub fn each_batch<E>(
    block: &[u8],
    delimiter: u8,
    bounds: &mut Vec<usize>,
    mut each: impl FnMut(&Batch<'_>) -> Result<(), E>,
) -> Result<(), E> {
    bounds.clear();
    bounds.push(0);
    for end in memchr_iter(delimiter, block) {
        bounds.push(end + 1);
        if bounds.len() > BATCH {
            each(&Batch { block, bounds, delimiter })?;
            bounds.clear();
            bounds.push(end + 1);
        }
    }
    if bounds.last() != Some(&block.len()) {
        bounds.push(block.len());
    }
    if bounds.len() > 1 {
        each(&Batch { block, bounds, delimiter })?;
    }
    Ok(())
}

/// Finds the key of each record.
pub struct Keys {
    rule: KeyRule,
    scratch: Vec<u8>,
    /// How many records had no such key and were compared as a whole.
    pub keyless: u64,
}

impl Keys {
    /// Finds keys by `rule`.
    pub fn new(rule: KeyRule) -> Self {
        Self { rule, scratch: Vec::new(), keyless: 0 }
    }

    /// Returns the key of `record`, and whether it has one. A record without a key is compared as a
    /// whole, with others of its sort only, so that none is lost for the want of a field.
    pub fn of<'a>(&'a mut self, record: &'a [u8]) -> (&'a [u8], bool) {
        match self.rule.of(record, &mut self.scratch) {
            Some(key) => (key, true),
            None => {
                self.keyless += 1;
                (record, false)
            }
        }
    }

    /// Tells whether records are their own keys.
    pub fn are_whole(&self) -> bool {
        self.rule.is_whole()
    }

    /// Computes the digests of a batch.
    #[inline]
    pub fn digest_each<D: Width>(&mut self, hasher: &Hasher, batch: &Batch<'_>, out: &mut Vec<D>) {
        out.clear();
        if self.rule.is_whole() {
            out.extend((0..batch.len()).map(|i| D::digest(hasher, batch.record(i))));
        } else {
            out.extend((0..batch.len()).map(|i| {
                let (key, found) = self.of(batch.record(i));
                let digest = D::digest(hasher, key);
                if found { digest } else { digest.keyless() }
            }));
        }
    }
}

/// A digest that records can be reduced to.
pub trait Width: Digest + Default {
    /// Hashes a key.
    fn digest(hasher: &Hasher, key: &[u8]) -> Self;

    /// Returns another digest, for a record that has no key: it must not meet an equal key.
    fn keyless(self) -> Self;

    /// Appends the digest's bytes, little-endian.
    fn write_to(self, bytes: &mut Vec<u8>);

    /// Reads digests written by [`write_to`](Self::write_to).
    fn read_each(bytes: &[u8], out: &mut Vec<Self>);
}

impl Width for u64 {
    #[inline]
    fn digest(hasher: &Hasher, key: &[u8]) -> Self {
        hasher.hash(key)
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

    fn cut(block: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let mut found = Vec::new();
        each_batch(block, b'\n', &mut Vec::new(), |batch| {
            for i in 0..batch.len() {
                let is_last = i + 1 == batch.len();
                found.push((batch.record(i).to_vec(), is_last && batch.is_unterminated()));
            }
            Ok::<(), ()>(())
        })
        .unwrap();
        found
    }

    #[test]
    fn batches_hold_every_record_once() {
        assert_eq!(cut(b""), []);
        assert_eq!(cut(b"\n"), [(vec![], false)]);
        assert_eq!(
            cut(b"a\n\nb"),
            [(b"a".to_vec(), false), (vec![], false), (b"b".to_vec(), true)]
        );
        for len in [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH] {
            assert_eq!(cut(&b"x\n".repeat(len)).len(), len);
        }
    }

    #[test]
    fn a_record_without_a_key_meets_no_equal_key() {
        let hasher = Hasher::default();
        assert_ne!(u64::digest(&hasher, b"a"), u64::digest(&hasher, b"a").keyless());
        assert_ne!(u128::digest(&hasher, b"a"), u128::digest(&hasher, b"a").keyless());
    }
}
