//! Measures the cost of memory access and hashing alone. No filter can be much faster than these
//! floors.

use tamis::{Bitmap, Bits as _, BitsMut as _, Hasher, Kind, Plan};

use crate::contender::Contender;
use crate::items::Source;

/// Hashes the item and tests one bit of one random line.
pub struct OneBit {
    bits: Bitmap,
    hasher: Hasher,
}

impl OneBit {
    /// Creates the same number of bits as a filter of `bits` bits, on the same kind of pages. Half
    /// of the bits are set.
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

/// Random lines of memory, accessed with prefetch but without a hash or a test.
pub struct Lines {
    bits: Bitmap,
}

/// The number of lines in a prefetch group. This number was the fastest in measurements. A smaller
/// group leaves the memory idle. A core keeps at most twice as many loads in flight.
const GROUP: usize = 16;

impl Lines {
    /// Creates the same number of bits as a filter of `bits` bits, on the same kind of pages.
    pub fn new(bits: u64) -> Self {
        let mut lines = Self::zeroed(bits);
        lines.bits.words_mut().fill(1);
        lines
    }

    /// Creates the same number of bits, but does not touch their pages.
    pub fn zeroed(bits: u64) -> Self {
        Self { bits: Bitmap::zeroed(bits.next_multiple_of(512)).expect("memory for the floor") }
    }

    #[inline(always)]
    fn first_word(&self, item: u64) -> usize {
        // The items are random numbers, so no hash is needed.
        ((u128::from(item) * (self.bits.words().len() as u128 / 8)) >> 64) as usize * 8
    }

    /// Reads one line for each item, up to the last whole group. Returns the number of lines.
    #[inline(never)]
    pub fn read(&self, items: &[u64]) -> u64 {
        let words = self.bits.words();
        let mut sum = 0;
        // Before the first group, all lines are the first line.
        let mut before = [0; GROUP];
        for group in items.chunks_exact(GROUP) {
            let firsts = self.ask_for(group);
            for first in before {
                sum += words[first] & 1;
            }
            before = firsts;
        }
        sum
    }

    /// Sets one bit in one line for each item, up to the last whole group. Returns the number of
    /// lines.
    #[inline(never)]
    pub fn modify(&mut self, items: &[u64]) -> u64 {
        let mut before = [0; GROUP];
        for group in items.chunks_exact(GROUP) {
            let firsts = self.ask_for(group);
            let words = self.bits.words_mut();
            for (first, item) in before.into_iter().zip(group) {
                words[first] |= 1 << (item & 63);
            }
            before = firsts;
        }
        (items.len() / GROUP * GROUP) as u64
    }

    #[inline(always)]
    fn ask_for(&self, group: &[u64]) -> [usize; GROUP] {
        let mut firsts = [0; GROUP];
        for (first, &item) in firsts.iter_mut().zip(group) {
            *first = self.first_word(item);
            tamis::prefetch(self.bits.words(), *first);
        }
        firsts
    }
}
