//! The cuckoo filter: fingerprints in one of two buckets each, so that items can be deleted and counted.
//!
//! The rules are in `table`, the room for new items in `search`, the sizes in `plan`.

mod lanes;
pub(crate) mod plan;
mod redis;
mod search;
mod table;

use crate::bits::{Bitmap, Bits, BitsMut, OutOfMemory};
use crate::filter::{InsertError, NoRoom, Removed, Step, in_batches};
use crate::hash::Hasher;
pub use redis::{RedisCuckoo, RedisCuckooError, RedisCuckooOptions};
use search::Search;
pub(crate) use table::Table;
use table::{Added, Full, Key};

/// A cuckoo filter over bits `B`: items can be deleted, and an item counted up to four times or more.
///
/// It takes about log₂(1/rate) + 2.5 bits an item. An item may be in several times; each copy takes a
/// slot. A filter of buckets of two counts to four: an item inserted so often stays for good. Both
/// [`contains`](crate::Filter::contains) and delete read two cache lines.
///
/// The order of inserts and deletes decides where an entry lies, and so the bytes; answers depend on
/// it only where the filter is full.
#[derive(Clone, Debug)]
pub struct Cuckoo<B = Bitmap> {
    table: Table,
    hasher: Hasher,
    bits: B,
    /// The slots taken, once they have been counted.
    items: Option<u64>,
    search: Search,
}

/// Of smaller tables much lies in the second cache: to find the buckets twice, first to ask for them,
/// costs more than it saves.
const PREFETCH_FROM_WORDS: u64 = (2 << 20) / 8;

impl Cuckoo<Bitmap> {
    /// Makes an empty filter of this geometry.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the system has no such memory.
    pub(crate) fn empty(table: Table, hasher: Hasher) -> Result<Self, OutOfMemory> {
        let bits = Bitmap::zeroed(table.len_words().saturating_mul(64))?;
        Ok(Self { table, hasher, bits, items: Some(0), search: Search::default() })
    }
}

impl<B: Bits<Word = u64>> Cuckoo<B> {
    /// Uses words that are there, such as those of a file; `None` if they are not as many as the table
    /// has. Their contents are not looked at: see [`is_valid`](Self::is_valid).
    pub(crate) fn over(table: Table, hasher: Hasher, bits: B) -> Option<Self> {
        let fits = bits.words().len() as u64 == table.len_words();
        fits.then(|| Self { table, hasher, bits, items: None, search: Search::default() })
    }

    /// Tells whether the words are those of a filter, every slot empty or an entry. Reads all of them.
    ///
    /// Words that are not give wrong answers, and nothing worse.
    pub(crate) fn is_valid(&self) -> bool {
        self.table.is_valid(self.bits.words())
    }

    /// Returns the geometry.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the hash function.
    pub(crate) fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Returns the storage.
    pub(crate) fn bits(&self) -> &B {
        &self.bits
    }

    /// Returns how many items are in, each as often as it is counted: the slots taken. Reads all of
    /// them if the words came from elsewhere and have not changed since.
    pub(crate) fn items(&self) -> u64 {
        self.items.unwrap_or_else(|| self.table.items(self.bits.words()))
    }

    /// Returns the chance that an absent item is taken for present, from the number of items.
    pub(crate) fn estimate_rate(&self) -> f64 {
        plan::rate_at(&self.table, self.items())
    }

    /// Tells whether an item with this hash may be in.
    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.table.contains(self.bits.words(), hash)
    }

    /// Tells so of many hashes into a mask.
    ///
    /// # Panics
    ///
    /// If `answers` has not one word for each 64 hashes.
    pub(crate) fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        // Copied, so that it stays in registers: the mask might overlap what is behind a reference.
        let (table, words) = (self.table, self.bits.words());
        let is_large = self.is_large();
        in_batches(hashes, answers, |step, hash| match step {
            Step::Ask => {
                if is_large {
                    table.prefetch(words, hash);
                }
                false
            }
            Step::Answer => table.contains(words, hash),
        });
    }

    /// Returns how often an item with this hash is in, at most; counting ends at
    /// [`max_count`](Self::max_count).
    #[inline]
    pub(crate) fn count_hash(&self, hash: u64) -> u64 {
        self.table.count(self.bits.words(), hash)
    }

    /// Returns the number at which counting ends.
    pub(crate) fn max_count(&self) -> u64 {
        self.table.most_copies()
    }

    /// Asks for the memory that an item with this hash will touch.
    #[inline]
    pub(crate) fn prefetch_hash(&self, hash: u64) {
        self.table.prefetch(self.bits.words(), hash);
    }

    fn is_large(&self) -> bool {
        self.table.len_words() >= PREFETCH_FROM_WORDS
    }
}

impl<B: BitsMut> Cuckoo<B> {
    /// Returns the words for writing, such as to read them from a file.
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.items = None;
        self.bits.words_mut()
    }

    /// Inserts an item by its hash; true if the item is new to the filter.
    ///
    /// # Errors
    ///
    /// [`InsertError`] if there is no room for it; nothing has changed then.
    #[inline]
    pub(crate) fn insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        let added =
            self.table.insert(self.bits.words_mut(), &mut self.search, self.table.key(hash));
        match added {
            Ok(added) => {
                if added != Added::Saturated {
                    self.items = self.items.map(|items| items + 1);
                }
                Ok(added == Added::New)
            }
            Err(Full) => Err(self.full(0)),
        }
    }

    /// Inserts many hashes in order; the mask tells which were new.
    ///
    /// # Errors
    ///
    /// [`InsertError`] at the first for which there is no room: those before it are in, and the mask
    /// tells of them.
    ///
    /// # Panics
    ///
    /// If `answers` has not one word for each 64 hashes.
    pub(crate) fn insert_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        let (table, is_large) = (self.table, self.is_large());
        let (words, search) = (self.bits.words_mut(), &mut self.search);
        let (mut inserted, mut copies, mut is_full) = (0, 0, false);
        in_batches(hashes, answers, |step, hash| match step {
            Step::Ask => {
                if is_large {
                    table.prefetch_write(words, hash);
                }
                false
            }
            Step::Answer if is_full => false,
            Step::Answer => match table.insert(words, search, table.key(hash)) {
                Ok(added) => {
                    inserted += 1;
                    copies += u64::from(added != Added::Saturated);
                    added == Added::New
                }
                Err(Full) => {
                    is_full = true;
                    false
                }
            },
        });
        self.items = self.items.map(|items| items + copies);
        if is_full { Err(self.full(inserted)) } else { Ok(()) }
    }

    #[cold]
    fn full(&self, inserted: usize) -> InsertError {
        InsertError { inserted, reason: NoRoom::Full { items: self.items() } }
    }

    /// Deletes an item by its hash, once if it was inserted several times.
    #[inline]
    pub(crate) fn remove_hash(&mut self, hash: u64) -> Removed {
        let removed = self.table.remove(self.bits.words_mut(), hash);
        if removed == Removed::Yes {
            self.items = self.items.map(|items| items.saturating_sub(1));
        }
        removed
    }

    /// Deletes many hashes in order; the mask tells which are [`Removed::Yes`].
    ///
    /// # Panics
    ///
    /// If `answers` has not one word for each 64 hashes.
    pub(crate) fn remove_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
        let (table, is_large) = (self.table, self.is_large());
        let words = self.bits.words_mut();
        let mut removed = 0;
        in_batches(hashes, answers, |step, hash| match step {
            Step::Ask => {
                if is_large {
                    table.prefetch_write(words, hash);
                }
                false
            }
            Step::Answer => {
                let is_gone = table.remove(words, hash) == Removed::Yes;
                removed += u64::from(is_gone);
                is_gone
            }
        });
        self.items = self.items.map(|items| items.saturating_sub(removed));
    }

    /// Takes in the items of another filter of this geometry and hash function, as if each were inserted
    /// as often as it is there. The caller has compared the layouts.
    ///
    /// # Errors
    ///
    /// [`NoRoom`] if they do not all fit, or if there is no memory for the copy of this filter that
    /// keeps it as it is then.
    pub(crate) fn merge_same(
        &mut self,
        other: &Cuckoo<impl Bits<Word = u64>>,
    ) -> Result<(), NoRoom> {
        let mut copy = Bitmap::zeroed(self.bits.len_bits()).map_err(NoRoom::Memory)?;
        copy.words_mut().copy_from_slice(self.bits.words());
        let keys = self.table.keys(other.bits.words());
        match insert_all(&self.table, copy.words_mut(), &mut self.search, keys) {
            Ok(copies) => {
                self.bits.words_mut().copy_from_slice(copy.words());
                self.items = self.items.map(|items| items + copies);
                Ok(())
            }
            Err(Full) => Err(NoRoom::Full { items: self.table.slots() }),
        }
    }
}

/// Inserts keys; returns how many slots they took.
fn insert_all(
    table: &Table,
    words: &mut [u64],
    search: &mut Search,
    keys: impl Iterator<Item = Key>,
) -> Result<u64, Full> {
    let mut copies = 0;
    for key in keys {
        copies += u64::from(table.insert(words, search, key)? != Added::Saturated);
    }
    Ok(copies)
}

#[cfg(test)]
mod tests;
