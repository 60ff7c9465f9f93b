//! Places of window filters. A place is a group of adjacent blocks, one block for each slice of the
//! window. An item has the same bits in each block of its place.

use std::ops::Range;

use crate::batch::prefetching::in_batches;
use crate::strategy::block_rules::narrow::Narrow;
use crate::strategy::block_rules::parquet;
use crate::strategy::block_rules::scale::scale;

use crate::arch::level::Level;
use crate::arch::prefetch::prefetch_lines;

/// The positions of the blocks of a window filter. The words of the filter consist of whole places,
/// each with `slots` blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The number of places.
    pub len: u64,
    /// The number of blocks in a place.
    pub slots: usize,
    /// The number of words in a block. If a place has two blocks, a block has the size of Parquet's
    /// block. If a place has more than two blocks, a block has the size of a narrow block.
    pub block_words: usize,
}

impl Places {
    /// Returns the words of the place of `hash`.
    #[inline(always)]
    pub(crate) fn words(self, hash: u64) -> Range<usize> {
        let first = scale(hash, self.len) as usize * self.len_words();
        first..first + self.len_words()
    }

    /// Returns the words of block `slot` in its place.
    #[inline(always)]
    pub(crate) const fn block(self, slot: usize) -> Range<usize> {
        slot * self.block_words..(slot + 1) * self.block_words
    }

    /// Returns how many words a place has.
    #[inline(always)]
    pub(crate) const fn len_words(self) -> usize {
        self.slots * self.block_words
    }

    #[inline(always)]
    const fn is_narrow(self) -> bool {
        self.block_words == Narrow::WORDS
    }
}

/// Tests one item in adjacent blocks of its place. Returns true if at least one block contains the
/// item.
#[inline]
pub(crate) fn contains(level: Level, blocks: &[u64], places: Places, hash: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level >= Level::Avx2 {
        // SAFETY: the detected level is AVX2 or higher.
        return unsafe {
            match places.is_narrow() {
                true => avx2::narrow::contains(blocks, hash),
                false => avx2::wide::contains(blocks, hash),
            }
        };
    }
    let _ = level;
    match places.is_narrow() {
        true => scalar::contains(blocks, Narrow::mask(hash)),
        false => scalar::contains(blocks, parquet::mask(hash)),
    }
}

/// Tests items in all blocks of their places. The answer is 1 if at least one block contains the
/// item.
pub(crate) fn contains_each(
    level: Level,
    words: &[u64],
    places: Places,
    hashes: &[u64],
    answers: &mut [u64],
) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level >= Level::Avx2 {
        // SAFETY: the detected level is AVX2 or higher.
        return unsafe {
            match (places.is_narrow(), places.slots) {
                (true, 4) => avx2::narrow::contains_each::<4>(words, places, hashes, answers),
                (true, _) => avx2::narrow::contains_each::<0>(words, places, hashes, answers),
                (false, _) => avx2::wide::contains_each::<2>(words, places, hashes, answers),
            }
        };
    }
    let prefetch = |hash| prefetch_lines(words, places.words(hash));
    in_batches(hashes, answers, prefetch, |hash| {
        contains(level, &words[places.words(hash)], places, hash)
    });
}

/// Sets the bits of items in block `slot` of their places. If `always` is true, sets the bits of
/// all items. If `always` is false, sets only the bits of items that no block of their place
/// contains. The answer is 1 if no block of its place contained the item. Returns how many items
/// changed block `slot`.
pub(crate) fn insert_each(
    level: Level,
    words: &mut [u64],
    places: Places,
    how: (usize, bool),
    hashes: &[u64],
    answers: &mut [u64],
) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level >= Level::Avx2 {
        // SAFETY: the detected level is AVX2 or higher.
        return unsafe {
            match (places.is_narrow(), places.slots) {
                (true, 4) => avx2::narrow::insert_each::<4>(words, places, how, hashes, answers),
                (true, _) => avx2::narrow::insert_each::<0>(words, places, how, hashes, answers),
                (false, _) => avx2::wide::insert_each::<2>(words, places, how, hashes, answers),
            }
        };
    }
    let _ = level;
    let mut stored = 0;
    let all: *const [u64] = words;
    let prefetch = |hash| prefetch_lines(all, places.words(hash));
    in_batches(hashes, answers, prefetch, |hash| {
        let place = &mut words[places.words(hash)];
        match places.is_narrow() {
            true => scalar::insert(place, how, Narrow::mask(hash), &mut stored),
            false => scalar::insert(place, how, parquet::mask(hash), &mut stored),
        }
    });
    stored
}

/// The kernels in plain Rust, one item at a time.
mod scalar {
    #[inline]
    pub(super) fn contains<const N: usize>(blocks: &[u64], mask: [u64; N]) -> bool {
        // No branch depends on an answer, because a misprediction costs more than the test of all
        // blocks.
        blocks.as_chunks().0.iter().fold(false, |found, block| found | holds(block, &mask))
    }

    #[inline]
    pub(super) fn insert<const N: usize>(
        place: &mut [u64],
        (slot, always): (usize, bool),
        mask: [u64; N],
        stored: &mut u64,
    ) -> bool {
        let is_new = !contains(place, mask);
        if is_new || always {
            let block = &mut place.as_chunks_mut::<N>().0[slot];
            *stored += u64::from(!holds(block, &mask));
            block.iter_mut().zip(mask).for_each(|(word, mask)| *word |= mask);
        }
        is_new
    }

    #[inline]
    fn holds<const N: usize>(block: &[u64; N], mask: &[u64; N]) -> bool {
        (0..N).fold(0, |missing, i| missing | (mask[i] & !block[i])) == 0
    }
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx2 {
    use super::Places;

    /// Replaces parameters of `places` by constants, which saves a quarter of the time of a kernel.
    /// If `SLOTS` is zero, `slots` keeps its value.
    #[inline(always)]
    const fn known<const SLOTS: usize, const WORDS: usize>(places: Places) -> Places {
        let slots = if SLOTS == 0 { places.slots } else { SLOTS };
        Places { len: places.len, slots, block_words: WORDS }
    }

    /// Defines the kernels for blocks of type `$block`.
    macro_rules! kernels {
        ($name:ident, $block:ident) => {
            pub(super) mod $name {
                use super::{Places, known};
                use crate::arch::avx2::{each_ahead, $block};

                #[target_feature(enable = "avx2")]
                pub(in super::super) fn contains(blocks: &[u64], hash: u64) -> bool {
                    any_holds(blocks, $block::mask(hash))
                }

                #[target_feature(enable = "avx2")]
                pub(in super::super) fn contains_each<const SLOTS: usize>(
                    words: &[u64],
                    places: Places,
                    hashes: &[u64],
                    answers: &mut [u64],
                ) {
                    let places = known::<SLOTS, { $block::WORDS }>(places);
                    each_ahead(
                        words,
                        |hash| places.words(hash),
                        hashes,
                        answers,
                        |hash| any_holds(&words[places.words(hash)], $block::mask(hash)),
                    );
                }

                #[target_feature(enable = "avx2")]
                pub(in super::super) fn insert_each<const SLOTS: usize>(
                    words: &mut [u64],
                    places: Places,
                    (slot, always): (usize, bool),
                    hashes: &[u64],
                    answers: &mut [u64],
                ) -> u64 {
                    let places = known::<SLOTS, { $block::WORDS }>(places);
                    let mut stored = 0;
                    let all: *const [u64] = words;
                    each_ahead(
                        all,
                        |hash| places.words(hash),
                        hashes,
                        answers,
                        |hash| {
                            let place = &mut words[places.words(hash)];
                            let mask = $block::mask(hash);
                            let found = any_holds(place, mask);
                            // No branch depends on the answer. If the item must not be stored, the
                            // mask is zero.
                            let mask = mask.masked(!found | always);
                            let words = &mut place.as_chunks_mut().0[slot];
                            let block = $block::load(words);
                            stored += u64::from(!block.holds(mask));
                            block.or(mask).store(words);
                            !found
                        },
                    );
                    stored
                }

                #[inline]
                #[target_feature(enable = "avx2")]
                fn any_holds(blocks: &[u64], mask: $block) -> bool {
                    let mut found = false;
                    for block in blocks.as_chunks().0 {
                        found |= $block::load(block).holds(mask);
                    }
                    found
                }
            }
        };
    }

    kernels!(narrow, Narrow);
    kernels!(wide, Wide);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::level::available;

    proptest! {
        #[test]
        fn every_level_keeps_places_alike(
            len in 1_u64..40,
            slots in 2_usize..7,
            slot in 0_usize..7,
            always: bool,
            hashes in prop::collection::vec(any::<u64>(), 0..400),
        ) {
            let block_words = if slots == 2 { parquet::WORDS } else { Narrow::WORDS };
            let places = Places { len, slots, block_words };
            let slot = slot % slots;
            let mut expected = vec![0; len as usize * places.len_words()];
            let mut words = expected.clone();
            let len_answers = hashes.len().div_ceil(64);
            let (mut one, mut other) = (vec![0; len_answers], vec![0; len_answers]);
            for level in available() {
                for slot in [slot, 0] {
                    let stored = insert_each(level, &mut words, places, (slot, always), &hashes, &mut one);
                    let alike = insert_each(Level::Scalar, &mut expected, places, (slot, always), &hashes, &mut other);
                    prop_assert_eq!((&words, &one, stored), (&expected, &other, alike));
                }
                let lookups: Vec<u64> = hashes.iter().map(|hash| hash.rotate_left(1)).collect();
                contains_each(level, &words, places, &lookups, &mut one);
                contains_each(Level::Scalar, &expected, places, &lookups, &mut other);
                prop_assert_eq!(&one, &other);
                for (i, &hash) in lookups.iter().enumerate() {
                    let found = contains(level, &words[places.words(hash)], places, hash);
                    prop_assert_eq!(found, one[i / 64] >> (i % 64) & 1 == 1);
                }
            }
        }
    }
}
