//! Places of several blocks, for window filters: an item's bits are the same in each block of its place.

use crate::filter::{Step, in_batches};
use crate::strategy::{SplitBlock, scale};

use super::{Level, contains_any_512, insert_one_512, prefetch_index};

/// Where the blocks of a window filter are: words that are whole places of `slots` blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// How many places there are.
    pub len: u64,
    /// Blocks in a place.
    pub slots: usize,
}

impl Places {
    /// Returns the first word of the place of `hash`.
    #[inline(always)]
    pub(crate) fn first_word(self, hash: u64) -> usize {
        scale(hash, self.len) as usize * self.len_words()
    }

    /// Returns the words of a place.
    #[inline(always)]
    pub(crate) const fn len_words(self) -> usize {
        self.slots * SplitBlock::WORDS
    }

    #[inline(always)]
    fn prefetch(self, words: &[u64], hash: u64) {
        let first = self.first_word(hash);
        for slot in 0..self.slots {
            prefetch_index(words, first + slot * SplitBlock::WORDS);
        }
    }
}

/// Tests items in all blocks of their places: bit set if one holds it.
pub(crate) fn contains_each(
    level: Level,
    words: &[u64],
    places: Places,
    hashes: &[u64],
    answers: &mut [u64],
) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level == Level::Avx2 {
        // SAFETY: the level was detected.
        return unsafe { avx2::contains_each(words, places, hashes, answers) };
    }
    in_batches(hashes, answers, |step, hash| match step {
        Step::Ask => {
            places.prefetch(words, hash);
            false
        }
        Step::Answer => {
            let first = places.first_word(hash);
            contains_any_512(level, &words[first..first + places.len_words()], hash)
        }
    });
}

/// Sets the bits of items in block `slot` of their places: all of them if `always`, else those that no block
/// holds. Bit set if none held it; returns how many were not in that block before and are now.
pub(crate) fn insert_each(
    level: Level,
    words: &mut [u64],
    places: Places,
    (slot, always): (usize, bool),
    hashes: &[u64],
    answers: &mut [u64],
) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level == Level::Avx2 {
        // SAFETY: the level was detected.
        return unsafe { avx2::insert_each(words, places, (slot, always), hashes, answers) };
    }
    let mut stored = 0;
    in_batches(hashes, answers, |step, hash| match step {
        Step::Ask => {
            places.prefetch(words, hash);
            false
        }
        Step::Answer => {
            let first = places.first_word(hash);
            let place = &mut words[first..first + places.len_words()];
            let is_new = !contains_any_512(level, place, hash);
            if is_new || always {
                let first = slot * SplitBlock::WORDS;
                let block = &mut place[first..first + SplitBlock::WORDS];
                stored += u64::from(insert_one_512(level, block, hash));
            }
            is_new
        }
    });
    stored
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx2 {
    use super::Places;
    use crate::arch::avx2::Slice;
    use crate::filter::{GROUP, coming};

    /// Smaller filters lie in the second cache, whose latency the CPU hides by itself.
    const PREFETCH_FROM_WORDS: usize = (1 << 18) / 8;

    /// Asks for the places of the group to come, where one begins; before the first item for that of the first too.
    #[inline(always)]
    fn ask(words: &[u64], places: Places, hashes: &[u64], at: usize) {
        if at == 0 {
            hashes.iter().take(GROUP).for_each(|&hash| places.prefetch(words, hash));
        }
        if at.is_multiple_of(GROUP) {
            coming(hashes, at).iter().for_each(|&hash| places.prefetch(words, hash));
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn contains_each(
        words: &[u64],
        places: Places,
        hashes: &[u64],
        answers: &mut [u64],
    ) {
        let is_large = words.len() >= PREFETCH_FROM_WORDS;
        for (word, first) in answers.iter_mut().zip((0..hashes.len()).step_by(64)) {
            let mut answer = 0;
            for (i, &hash) in hashes[first..].iter().take(64).enumerate() {
                if is_large {
                    ask(words, places, hashes, first + i);
                }
                let first = places.first_word(hash);
                let place = words[first..first + places.len_words()].as_chunks::<8>().0;
                let numbers = Slice::numbers(hash);
                let mut found = false;
                for block in place {
                    found |= Slice::load(block).holds(numbers);
                }
                answer |= u64::from(found) << i;
            }
            *word = answer;
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn insert_each(
        words: &mut [u64],
        places: Places,
        (slot, always): (usize, bool),
        hashes: &[u64],
        answers: &mut [u64],
    ) -> u64 {
        let is_large = words.len() >= PREFETCH_FROM_WORDS;
        let mut stored = 0;
        for (word, first) in answers.iter_mut().zip((0..hashes.len()).step_by(64)) {
            let mut answer = 0;
            for (i, &hash) in hashes[first..].iter().take(64).enumerate() {
                if is_large {
                    ask(words, places, hashes, first + i);
                }
                let first = places.first_word(hash);
                let place = words[first..first + places.len_words()].as_chunks_mut::<8>().0;
                let numbers = Slice::numbers(hash);
                let mut found = false;
                for block in &*place {
                    found |= Slice::load(block).holds(numbers);
                }
                // No branch on the answer: what is not to be stored is nothing.
                let mask = numbers.bits().masked(!found | always);
                let block = Slice::load(&place[slot]);
                stored += u64::from(!mask.without(block).is_zero());
                block.or(mask).store(&mut place[slot]);
                answer |= u64::from(!found) << i;
            }
            *word = answer;
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::available;

    proptest! {
        #[test]
        fn every_level_keeps_places_alike(
            len in 1_u64..40,
            slots in 2_usize..7,
            slot in 0_usize..7,
            always: bool,
            hashes in prop::collection::vec(any::<u64>(), 0..400),
        ) {
            let places = Places { len, slots };
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
                let asked: Vec<u64> = hashes.iter().map(|hash| hash.rotate_left(1)).collect();
                contains_each(level, &words, places, &asked, &mut one);
                contains_each(Level::Scalar, &expected, places, &asked, &mut other);
                prop_assert_eq!(&one, &other);
            }
        }
    }
}
