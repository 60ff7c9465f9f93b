//! Operations on batches compute the keys of several items at a time, and prefetch the memory of
//! these keys.

use crate::arch::cuckoo::{BATCH, Keys, Pairs, contains_pairs, keys};
use crate::arch::prefetch_write;
use crate::batch::answers::check_words;
use crate::batch::prefetching::in_batches;
use crate::filter::cuckoo::table::{Key, MULTIPLIER, Table};

impl Table {
    /// Returns the parameters of the kernels. Returns `None` if no kernel supports the table.
    fn pairs(&self) -> Option<Pairs> {
        let &Self { starts, right, fingerprints, .. } = self;
        let pairs = self.lanes().pairs().filter(|_| right < 1 << 31)?;
        Some(Pairs { starts, right, fingerprints, multiplier: MULTIPLIER, ..pairs })
    }

    /// Tests a batch of hashes and writes the answers to a bit mask.
    ///
    /// # Panics
    ///
    /// Panics if the length of `answers` is not one word for each 64 hashes, rounded up.
    pub(crate) fn contains_each(&self, words: &[u64], hashes: &[u64], answers: &mut [u64]) {
        check_words(answers, hashes.len());
        if self.pairs().is_some_and(|pairs| contains_pairs(words, &pairs, hashes, answers)) {
            return;
        }
        // The loop uses a copy of the table, so that the fields of the table stay in registers.
        // With a reference to the table, the compiler must assume that a write to the mask may
        // change the fields.
        let table = *self;
        let prefetch = |hash| {
            if table.is_large() {
                table.prefetch(words, hash);
            }
        };
        in_batches(hashes, answers, prefetch, |hash| table.contains(words, hash));
    }

    /// Calls `change` with the key of each hash, in order, and writes the answers to a bit mask.
    /// Between the calls of `change`, prefetches the memory of later keys.
    ///
    /// # Panics
    ///
    /// Panics if the length of `answers` is not one word for each 64 hashes, rounded up.
    #[inline(always)]
    pub(crate) fn change_each(
        &self,
        words: &mut [u64],
        hashes: &[u64],
        answers: &mut [u64],
        mut change: impl FnMut(&mut [u64], Key) -> bool,
    ) {
        check_words(answers, hashes.len());
        let pairs = self.pairs();
        let is_large = self.is_large();
        let mut ring = [Keys::NONE; 2];
        let mut batches = hashes.chunks(BATCH).zip(answers).enumerate().peekable();
        if let Some((_, (first, _))) = batches.peek() {
            self.locate(pairs.as_ref(), first, &mut ring[0]);
            for i in 0..if is_large { first.len() } else { 0 } {
                self.prefetch_key(words, &ring[0], i);
            }
        }
        while let Some((at, (batch, word))) = batches.next() {
            let next = batches.peek().map_or(&[][..], |(_, (next, _))| next);
            self.locate(pairs.as_ref(), next, &mut ring[(at + 1) % 2]);
            let (keys, coming) = (&ring[at % 2], &ring[(at + 1) % 2]);
            let len_coming = if is_large { next.len() } else { 0 };
            let mut mask = 0;
            for i in 0..batch.len() {
                if i < len_coming {
                    self.prefetch_key(words, coming, i);
                }
                let starts = [keys.starts[0][i], keys.starts[1][i]];
                let key = Key { fingerprint: keys.fingerprints[i], starts };
                mask |= u64::from(change(words, key)) << i;
            }
            *word = mask;
        }
    }

    /// Returns true if the table is so large that prefetches save time.
    #[inline(always)]
    const fn is_large(&self) -> bool {
        self.len_words() >= PREFETCH_FROM_WORDS
    }

    /// Computes the keys of a batch.
    #[inline(always)]
    fn locate(&self, pairs: Option<&Pairs>, hashes: &[u64], located: &mut Keys) {
        if pairs.is_some_and(|pairs| keys(pairs, hashes, located)) {
            return;
        }
        for (i, &hash) in hashes.iter().enumerate() {
            let Key { fingerprint, starts } = self.key(hash);
            located.fingerprints[i] = fingerprint;
            (located.starts[0][i], located.starts[1][i]) = (starts[0], starts[1]);
        }
    }

    /// Prefetches the memory that an insert or a removal of key number `i` writes.
    #[inline(always)]
    fn prefetch_key(&self, words: &[u64], keys: &Keys, i: usize) {
        for starts in &keys.starts {
            prefetch_write(words, (self.lanes().bit(starts[i]) / 64) as usize);
        }
    }
}

/// The minimum size of a table for prefetches. A table below `PREFETCH_FROM_WORDS` fits in the L2
/// cache, whose latency the CPU hides without prefetches.
const PREFETCH_FROM_WORDS: u64 = (1 << 18) / 8;
