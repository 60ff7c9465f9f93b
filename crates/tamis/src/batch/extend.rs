//! Inserts the items of an iterator, a chunk at a time.

use crate::batch::chunks::{CHUNK, with_buffer};
use crate::filter::Insert;
use crate::item::Item;

/// Inserts every item of an iterator, in chunks.
pub(crate) fn extend<I: Item>(filter: &mut impl Insert, items: impl IntoIterator<Item = I>) {
    let hasher = filter.hasher();
    let items = items.into_iter();
    let len = items.size_hint().1.unwrap_or(usize::MAX);
    let mut hashes = items.map(|item| hasher.hash_item(&item)).peekable();
    with_buffer(len, |buffer| {
        let mut answers = [0; CHUNK / 64];
        while hashes.peek().is_some() {
            let mut len = 0;
            // The slots are the first iterator of `zip`. If the hashes came first, `zip` would take
            // and lose one additional hash after the last slot.
            for (slot, hash) in buffer.iter_mut().zip(&mut hashes) {
                *slot = hash;
                len += 1;
            }
            filter.insert_hashes(&buffer[..len], &mut answers[..len.div_ceil(64)]);
        }
    });
}
