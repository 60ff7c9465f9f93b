//! Copies chunks out of and into a sequence of byte arrays. The Bloom filter and the cuckoo filter
//! use the functions of this module for dumps.
//!
//! The byte arrays follow each other without gaps and are stored in words. Byte `i` consists of the
//! eight bits of word `i / 8` that start at bit `8·(i % 8)`. Positions in this module start at 0.
//! Positions in commands start at 1, because position 0 requests the header.

/// The maximum length of a chunk of a dump, in bytes.
pub(crate) const MAX_CHUNK_BYTES: u64 = 16 << 20;

/// Returns the index of the array that contains a position, and the position inside this array.
/// Returns `None` if the position is after the last array.
pub(crate) fn find(lens: impl Iterator<Item = u64>, mut position: u64) -> Option<(usize, u64)> {
    for (i, len) in lens.enumerate() {
        if position < len {
            return Some((i, position));
        }
        position -= len;
    }
    None
}

/// Copies `len` bytes out of `words`, starting at byte `at`. The caller must check that the range exists.
pub(crate) fn copy_out(words: &[u64], at: u64, len: u64) -> Vec<u8> {
    let (skip, len) = ((at % 8) as usize, len as usize);
    let first = (at / 8) as usize;
    let words = &words[first..first + (skip + len).div_ceil(8)];
    let bytes: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
    let mut bytes = bytes.into_flattened();
    bytes.truncate(skip + len);
    bytes.drain(..skip);
    bytes
}

/// Writes `bytes` into `words`, starting at byte `at`. The caller must check that the range exists.
pub(crate) fn copy_in(words: &mut [u64], at: u64, bytes: &[u8]) {
    let skip = (at % 8) as usize;
    let (head, rest) = bytes.split_at(bytes.len().min((8 - skip) % 8));
    let mut index = (at / 8) as usize;
    if !head.is_empty() {
        overwrite(&mut words[index], skip, head);
        index += 1;
    }
    let (whole, tail) = rest.as_chunks::<8>();
    for (word, bytes) in words[index..].iter_mut().zip(whole) {
        *word = u64::from_le_bytes(*bytes);
    }
    if !tail.is_empty() {
        overwrite(&mut words[index + whole.len()], 0, tail);
    }
}

/// Writes `bytes` into one word, starting at byte `at`.
fn overwrite(word: &mut u64, at: usize, bytes: &[u8]) {
    let mut all = word.to_le_bytes();
    all[at..at + bytes.len()].copy_from_slice(bytes);
    *word = u64::from_le_bytes(all);
}

/// Reads the fields of a header in order. Each field has a fixed length.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset of the next field.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the next `N` bytes. Returns `None` if fewer than `N` bytes remain.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.bytes.split_first_chunk()?;
        (self.bytes, self.at) = (rest, self.at + N);
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn copies_at_any_offset_are_those_of_bytes(
            words in prop::collection::vec(any::<u64>(), 1..12),
            at: prop::sample::Index,
            data in prop::collection::vec(any::<u8>(), 0..96),
        ) {
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let at = at.index(bytes.len() + 1);
            let data = &data[..data.len().min(bytes.len() - at)];
            prop_assert_eq!(copy_out(&words, at as u64, data.len() as u64), &bytes[at..at + data.len()]);
            let mut words = words;
            copy_in(&mut words, at as u64, data);
            bytes[at..at + data.len()].copy_from_slice(data);
            prop_assert_eq!(copy_out(&words, 0, bytes.len() as u64), bytes);
        }
    }

    #[test]
    fn positions_are_found_in_their_array() {
        let find = |position| find([3, 0, 2].into_iter(), position);
        assert_eq!(
            (find(0), find(2), find(3), find(4)),
            (Some((0, 0)), Some((0, 2)), Some((2, 0)), Some((2, 1)),)
        );
        assert_eq!((find(5), find(u64::MAX)), (None, None));
    }
}
