//! Converts between words of 64 bits and bytes.

use std::io;

/// Converts bytes to words. The first byte of a word is the least significant byte. The last word is padded with zeros.
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

/// Writes words in chunks of a few thousand words. `to_bytes` converts a word to bytes.
pub(crate) fn write_words(
    words: &[u64],
    out: &mut dyn io::Write,
    to_bytes: impl Fn(u64) -> [u8; 8],
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for words in words.chunks(8192) {
        bytes.clear();
        bytes.extend(words.iter().map(|&word| to_bytes(word)));
        out.write_all(bytes.as_flattened())?;
    }
    Ok(())
}

/// Iterates over the positions of the bits that are set.
pub(crate) fn ones(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(at)
    })
}
