//! Inserts the items of an iterator, a chunk at a time.
//!
//! `extend` inserts into filters that accept every item, and `try_extend` into filters that may
//! refuse items.

use std::convert::Infallible;

use crate::batch::chunks::{CHUNK, with_buffer};
use crate::filter::{Insert, InsertError, TryInsert};
use crate::hash::Hasher;
use crate::item::Item;

/// Inserts every item of an iterator, in chunks, into a filter that accepts every item.
pub(crate) fn extend<I: Item>(filter: &mut impl Insert, items: impl IntoIterator<Item = I>) {
    let Ok(_) = each_chunk_of(filter.hasher(), items, |hashes, answers| {
        filter.insert_hashes(hashes, answers);
        Ok::<(), Infallible>(())
    });
}

/// Inserts every item of an iterator, in chunks, until the filter refuses an item. Returns the
/// number of new items.
pub(crate) fn try_extend<I: Item>(
    filter: &mut impl TryInsert,
    items: impl IntoIterator<Item = I>,
) -> Result<u64, InsertError> {
    let mut before = 0;
    each_chunk_of(filter.hasher(), items, |hashes, answers| {
        filter
            .try_insert_hashes(hashes, answers)
            .map_err(|error| InsertError { inserted: error.inserted + before, ..error })?;
        before += hashes.len();
        Ok(())
    })
}

/// Passes the hashes of an iterator to `insert`, in chunks, with a bit mask for the answers. Returns
/// the number of answers that are true.
fn each_chunk_of<I: Item, E>(
    hasher: Hasher,
    items: impl IntoIterator<Item = I>,
    mut insert: impl FnMut(&[u64], &mut [u64]) -> Result<(), E>,
) -> Result<u64, E> {
    let items = items.into_iter();
    let len = items.size_hint().1.unwrap_or(usize::MAX);
    let mut hashes = items.map(|item| hasher.hash_item(&item)).peekable();
    with_buffer(len, |buffer| {
        let (mut answers, mut new) = ([0_u64; CHUNK / 64], 0);
        while hashes.peek().is_some() {
            let mut len = 0_usize;
            // The slots are the first iterator of `zip`. If the hashes came first, `zip` would take
            // and lose one additional hash after the last slot.
            for (slot, hash) in buffer.iter_mut().zip(&mut hashes) {
                *slot = hash;
                len += 1;
            }
            let answers = &mut answers[..len.div_ceil(64)];
            insert(&buffer[..len], answers)?;
            new += answers.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        Ok(new)
    })
}
