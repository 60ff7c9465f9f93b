//! Filling a filter from many items at once.

use super::Bloom;
use crate::bits::BitsMut;
use crate::filter::{CHUNK, Filter as _, Insert as _};
use crate::item::Item;
use crate::strategy::Strategy;

impl<I: Item, S: Strategy, B: BitsMut> Extend<I> for Bloom<S, B> {
    /// Inserts every item, in batches.
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        let hasher = self.hasher();
        let mut hashes = [0; CHUNK];
        let mut answers = [0; CHUNK / 64];
        let mut items = items.into_iter().map(|item| hasher.hash_item(&item)).peekable();
        while items.peek().is_some() {
            let mut len = 0;
            for (slot, hash) in hashes.iter_mut().zip(&mut items) {
                *slot = hash;
                len += 1;
            }
            self.insert_hashes(&hashes[..len], &mut answers[..len.div_ceil(64)]);
        }
    }
}
