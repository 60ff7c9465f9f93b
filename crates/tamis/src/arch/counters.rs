//! Counters in bit slices, for counting filters.
//!
//! ```text
//! block, 4-bit counters: | ones: 2 words | twos | fours | eights |    a cache line
//! counter of bit b of a narrow block: bit b of each
//! ```
//!
//! One register contains bit p of all counters of a block. An increment adds a carry to one
//! register after the other. Therefore an insert increments its eight counters at once, in about
//! forty instructions. If the bits of a counter were adjacent in a word, an increment would take
//! over a hundred instructions.

use std::ops::Range;

use crate::arch::level::Level;
use crate::arch::prefetch::prefetch_lines;
use crate::batch::prefetching::in_batches;
use crate::filter::removed::Removed;
use crate::strategy::block_rules::narrow::Narrow;
use crate::strategy::block_rules::scale::scale;

/// The number of words in a slice. A slice contains one bit of each counter of a block.
pub(crate) const SLICE_WORDS: usize = Narrow::WORDS;

type Slice = [u64; SLICE_WORDS];

/// A block with `P` bits for each counter.
struct Block<'a, const P: usize>(&'a mut [Slice]);

/// The state of the counters of one item.
struct CounterState {
    /// The bits of the item whose counters are zero.
    missing: Slice,
    /// The bits of the item whose counters have their highest value.
    full: Slice,
}

impl CounterState {
    #[inline(always)]
    fn of<const P: usize>(slices: &[Slice], mask: &Slice) -> Self {
        let (mut any, mut full) = ([0; SLICE_WORDS], *mask);
        for slice in &slices[..P] {
            for i in 0..SLICE_WORDS {
                any[i] |= slice[i];
                full[i] &= slice[i];
            }
        }
        Self { missing: std::array::from_fn(|i| mask[i] & !any[i]), full }
    }

    #[inline(always)]
    fn is_missing(&self) -> bool {
        self.missing.iter().fold(0, |all, lane| all | lane) != 0
    }

    /// Returns true if all eight counters of the item have their highest value.
    #[inline(always)]
    fn is_full(&self, mask: &Slice) -> bool {
        (0..SLICE_WORDS).fold(0, |all, i| all | (self.full[i] ^ mask[i])) == 0
    }
}

impl<const P: usize> Block<'_, P> {
    #[inline(always)]
    fn count_up(&mut self, mask: &Slice) -> bool {
        let held = CounterState::of::<P>(self.0, mask);
        let mut carry: Slice = std::array::from_fn(|i| mask[i] & !held.full[i]);
        for slice in &mut self.0[..P] {
            for i in 0..SLICE_WORDS {
                let bits = slice[i];
                slice[i] = bits ^ carry[i];
                carry[i] &= bits;
            }
        }
        held.is_missing()
    }

    #[inline(always)]
    fn count_down(&mut self, mask: &Slice) -> Removed {
        let held = CounterState::of::<P>(self.0, mask);
        if held.is_missing() {
            return Removed::Absent;
        }
        if held.is_full(mask) {
            return Removed::Saturated;
        }
        let mut borrow: Slice = std::array::from_fn(|i| mask[i] & !held.full[i]);
        for slice in &mut self.0[..P] {
            for i in 0..SLICE_WORDS {
                let bits = slice[i];
                slice[i] = bits ^ borrow[i];
                borrow[i] &= !bits;
            }
        }
        Removed::Yes
    }
}

/// Returns the first slice of the block of `hash` in `len_words` words.
#[inline(always)]
fn first_slice<const P: usize>(len_words: usize, hash: u64) -> usize {
    scale(hash, (len_words / (SLICE_WORDS * P)) as u64) as usize * P
}

/// Returns the words of the block of `hash` in `len_words` words.
#[inline(always)]
fn place<const P: usize>(len_words: usize, hash: u64) -> Range<usize> {
    let first = first_slice::<P>(len_words, hash) * SLICE_WORDS;
    first..first + P * SLICE_WORDS
}

#[inline(always)]
fn contains_each<const P: usize>(words: &[u64], hashes: &[u64], answers: &mut [u64]) {
    let prefetch = |hash| prefetch_lines(words, place::<P>(words.len(), hash));
    in_batches(hashes, answers, prefetch, |hash| contains::<P>(words, hash));
}

#[inline(always)]
fn contains<const P: usize>(words: &[u64], hash: u64) -> bool {
    let first = first_slice::<P>(words.len(), hash);
    !CounterState::of::<P>(&words.as_chunks().0[first..first + P], &Narrow::mask(hash)).is_missing()
}

#[inline(always)]
fn insert_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    let all: *const [u64] = words;
    let prefetch = |hash| prefetch_lines(all, place::<P>(all.len(), hash));
    in_batches(hashes, answers, prefetch, |hash| insert::<P>(words, hash));
}

#[inline(always)]
fn insert<const P: usize>(words: &mut [u64], hash: u64) -> bool {
    let first = first_slice::<P>(words.len(), hash);
    Block::<P>(&mut words.as_chunks_mut().0[first..first + P]).count_up(&Narrow::mask(hash))
}

#[inline(always)]
fn remove_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    let all: *const [u64] = words;
    let prefetch = |hash| prefetch_lines(all, place::<P>(all.len(), hash));
    in_batches(hashes, answers, prefetch, |hash| remove::<P>(words, hash) == Removed::Yes);
}

#[inline(always)]
fn remove<const P: usize>(words: &mut [u64], hash: u64) -> Removed {
    let first = first_slice::<P>(words.len(), hash);
    Block::<P>(&mut words.as_chunks_mut().0[first..first + P]).count_down(&Narrow::mask(hash))
}

/// The kernels for counters of one size.
#[derive(Clone, Copy)]
pub(crate) struct CounterKernels {
    /// Tests items. The answer is 1 if all counters of the item are above zero.
    pub contains_each: fn(words: &[u64], hashes: &[u64], answers: &mut [u64]),
    /// Increments the counters of items. The answer is 1 if the item is new.
    pub insert_each: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
    /// Decrements the counters of items. The answer is 1 if the item was present and was removed.
    pub remove_each: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
    /// Tests one item.
    pub contains: fn(words: &[u64], hash: u64) -> bool,
    /// Increments the counters of one item. Returns true if the item is new.
    pub insert: fn(words: &mut [u64], hash: u64) -> bool,
    /// Decrements the counters of one item.
    pub remove: fn(words: &mut [u64], hash: u64) -> Removed,
}

/// Returns the kernels in plain Rust, for every CPU.
const fn plain<const P: usize>() -> CounterKernels {
    CounterKernels {
        contains_each: contains_each::<P>,
        insert_each: insert_each::<P>,
        remove_each: remove_each::<P>,
        contains: contains::<P>,
        insert: insert::<P>,
        remove: remove::<P>,
    }
}

/// The kernels for AVX2, with each slice in a register. Each function is written out, because the
/// compiler does not compile closures with the target features of the function around them.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx2 {
    use super::{CounterKernels, Removed, Slice, first_slice, place};
    use crate::arch::avx2::{Narrow, each_ahead};

    #[inline]
    #[target_feature(enable = "avx2")]
    fn count_up(block: &mut [Slice], hash: u64) -> bool {
        let mask = Narrow::mask(hash);
        let mut any = Narrow::load(&block[0]);
        any.xor(mask).store(&mut block[0]);
        let mut carry = mask.and(any);
        for slice in &mut block[1..] {
            let bits = Narrow::load(slice);
            bits.xor(carry).store(slice);
            (any, carry) = (any.or(bits), carry.and(bits));
        }
        // The counters marked in `carry` had their highest value, and the increment set them to
        // zero. The loop below restores the highest value of the counters marked in `carry`.
        // Counters rarely overflow, so checking all slices before each increment would cost more.
        if !carry.is_zero() {
            for slice in block {
                Narrow::load(slice).or(carry).store(slice);
            }
        }
        !any.holds(mask)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn count_down(block: &mut [Slice], hash: u64) -> Removed {
        let mask = Narrow::mask(hash);
        let (mut any, mut full) = (Narrow::load(&block[0]), Narrow::load(&block[0]).and(mask));
        for slice in &block[1..] {
            let bits = Narrow::load(slice);
            (any, full) = (any.or(bits), full.and(bits));
        }
        if !any.holds(mask) {
            return Removed::Absent;
        }
        let mut borrow = mask.without(full);
        if borrow.is_zero() {
            return Removed::Saturated;
        }
        for slice in block {
            let bits = Narrow::load(slice);
            bits.xor(borrow).store(slice);
            borrow = borrow.without(bits);
        }
        Removed::Yes
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn contains<const P: usize>(words: &[u64], hash: u64) -> bool {
        let first = first_slice::<P>(words.len(), hash);
        let block = &words.as_chunks().0[first..first + P];
        let mut any = Narrow::load(&block[0]);
        for slice in &block[1..] {
            any = any.or(Narrow::load(slice));
        }
        any.holds(Narrow::mask(hash))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn insert<const P: usize>(words: &mut [u64], hash: u64) -> bool {
        let first = first_slice::<P>(words.len(), hash);
        count_up(&mut words.as_chunks_mut().0[first..first + P], hash)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn remove<const P: usize>(words: &mut [u64], hash: u64) -> Removed {
        let first = first_slice::<P>(words.len(), hash);
        count_down(&mut words.as_chunks_mut().0[first..first + P], hash)
    }

    #[target_feature(enable = "avx2")]
    fn contains_each<const P: usize>(words: &[u64], hashes: &[u64], answers: &mut [u64]) {
        let place = |hash| place::<P>(words.len(), hash);
        each_ahead(words, place, hashes, answers, |hash| contains::<P>(words, hash));
    }

    #[target_feature(enable = "avx2")]
    fn insert_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        let all: *const [u64] = words;
        let place = |hash| place::<P>(all.len(), hash);
        each_ahead(all, place, hashes, answers, |hash| insert::<P>(words, hash));
    }

    #[target_feature(enable = "avx2")]
    fn remove_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        let all: *const [u64] = words;
        let place = |hash| place::<P>(all.len(), hash);
        each_ahead(all, place, hashes, answers, |hash| remove::<P>(words, hash) == Removed::Yes);
    }

    pub(super) const fn kernels<const P: usize>() -> CounterKernels {
        CounterKernels {
            // SAFETY: this table is used only if the CPU supports AVX2.
            contains_each: |words, hashes, answers| unsafe {
                contains_each::<P>(words, hashes, answers);
            },
            // SAFETY: this table is used only if the CPU supports AVX2.
            insert_each: |words, hashes, answers| unsafe {
                insert_each::<P>(words, hashes, answers);
            },
            // SAFETY: this table is used only if the CPU supports AVX2.
            remove_each: |words, hashes, answers| unsafe {
                remove_each::<P>(words, hashes, answers);
            },
            // SAFETY: this table is used only if the CPU supports AVX2.
            contains: |words, hash| unsafe { contains::<P>(words, hash) },
            // SAFETY: this table is used only if the CPU supports AVX2.
            insert: |words, hash| unsafe { insert::<P>(words, hash) },
            // SAFETY: this table is used only if the CPU supports AVX2.
            remove: |words, hash| unsafe { remove::<P>(words, hash) },
        }
    }
}

/// Returns the kernels for counters of 4, 8 or 16 bits.
pub(crate) fn kernels(level: Level, counter_bits: u32) -> CounterKernels {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    if level >= Level::Avx2 {
        return match counter_bits {
            4 => avx2::kernels::<4>(),
            8 => avx2::kernels::<8>(),
            _ => avx2::kernels::<16>(),
        };
    }
    let _ = level;
    match counter_bits {
        4 => plain::<4>(),
        8 => plain::<8>(),
        _ => plain::<16>(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::level::available;

    proptest! {
        #[test]
        fn every_level_counts_alike(
            counter_bits in prop::sample::select(vec![4_u32, 8, 16]),
            blocks in 1_usize..20,
            hashes in prop::collection::vec(any::<u64>(), 0..300),
        ) {
            let mut words = vec![0; blocks * SLICE_WORDS * counter_bits as usize];
            let mut expected = words.clone();
            let (mut one, mut other) = (vec![0; hashes.len().div_ceil(64)], vec![0; hashes.len().div_ceil(64)]);
            let scalar = kernels(Level::Scalar, counter_bits);
            for level in available() {
                let kernels = kernels(level, counter_bits);
                for _ in 0..3 {
                    (kernels.insert_each)(&mut words, &hashes, &mut one);
                    (scalar.insert_each)(&mut expected, &hashes, &mut other);
                    prop_assert_eq!((&words, &one), (&expected, &other));
                }
                (kernels.contains_each)(&words, &hashes, &mut one);
                (scalar.contains_each)(&expected, &hashes, &mut other);
                prop_assert_eq!(&one, &other);
                (kernels.remove_each)(&mut words, &hashes, &mut one);
                (scalar.remove_each)(&mut expected, &hashes, &mut other);
                prop_assert_eq!((&words, &one), (&expected, &other));
                for &hash in &hashes {
                    prop_assert_eq!((kernels.remove)(&mut words, hash), (scalar.remove)(&mut expected, hash));
                }
                prop_assert_eq!(&words, &expected);
            }
        }
    }
}
