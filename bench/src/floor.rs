//! What memory and the hash alone cost: the floors that no filter can be far below.

use tamis::{Bitmap, Bits as _, BitsMut as _, Hasher, Kind, Plan};

use crate::contender::Contender;
use crate::items::Source;

/// Hashes the item and tests one bit of one random line.
pub struct OneBit {
    bits: Bitmap,
    hasher: Hasher,
}

impl OneBit {
    /// As many bits as a filter of `bits` bits, on the same kind of pages, half of them set.
    pub fn new(bits: u64) -> Self {
        let mut bits = Bitmap::zeroed(bits.next_multiple_of(512)).expect("memory for the floor");
        bits.words_mut().fill(0x5555_5555_5555_5555);
        Self { bits, hasher: Hasher::default() }
    }

    #[inline(always)]
    fn test<I: tamis::Item>(&self, item: &I) -> u64 {
        let hash = self.hasher.hash_item(item);
        let words = self.bits.words();
        let line = ((u128::from(hash) * (words.len() as u128 / 8)) >> 64) as usize;
        words[line * 8 + (hash & 7) as usize] >> (hash >> 3 & 63) & 1
    }
}

impl<S: Source> Contender<S> for OneBit {
    const NAME: &'static str = "floor: hash, one bit";

    fn empty(items: u64, rate: f64) -> Self {
        let plan = Plan::for_kind(Kind::SplitBlock, items, rate);
        Self::new(plan.expect("a sound plan").bits())
    }

    fn add(&mut self, _: S::Item<'_>) {}

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.test(&item) != 0
    }

    fn memory_bits(&self) -> u64 {
        self.bits.len_bits()
    }
}

/// Random lines of memory, asked for ahead: no hash, no test.
pub struct Lines {
    bits: Bitmap,
}

/// How far ahead a line is asked for.
const AHEAD: usize = 32;

impl Lines {
    /// As many bits as a filter of `bits` bits, on the same kind of pages.
    pub fn new(bits: u64) -> Self {
        let mut lines = Self::zeroed(bits);
        lines.bits.words_mut().fill(1);
        lines
    }

    /// The same, not yet touched.
    pub fn zeroed(bits: u64) -> Self {
        Self { bits: Bitmap::zeroed(bits.next_multiple_of(512)).expect("memory for the floor") }
    }

    #[inline(always)]
    fn first_word(&self, item: u64) -> usize {
        // The items are random already.
        ((u128::from(item) * (self.bits.words().len() as u128 / 8)) >> 64) as usize * 8
    }

    /// Reads one line for each item; returns how many.
    #[inline(never)]
    pub fn read(&self, items: &[u64]) -> u64 {
        let words = self.bits.words();
        let mut sum = 0;
        for (i, &item) in items.iter().enumerate() {
            if let Some(&next) = items.get(i + AHEAD) {
                tamis::prefetch(words, self.first_word(next));
            }
            sum += words[self.first_word(item)] & 1;
        }
        sum
    }

    /// Sets a bit in one line for each item; returns how many.
    #[inline(never)]
    pub fn modify(&mut self, items: &[u64]) -> u64 {
        for (i, &item) in items.iter().enumerate() {
            if let Some(&next) = items.get(i + AHEAD) {
                tamis::prefetch(self.bits.words(), self.first_word(next));
            }
            let first = self.first_word(item);
            self.bits.words_mut()[first] |= 1 << (item & 63);
        }
        items.len() as u64
    }
}
