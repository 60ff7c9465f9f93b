//! Counters in slices of bits, for counting filters.
//!
//! ```text
//! block, 4-bit counters: | ones: 8 words | twos | fours | eights |    a cache line each
//! counter of bit b in lane i: bit b of word i of each
//! ```
//!
//! Bit p of all counters of a block is one line, so that counting up is the ripple of a carry through whole
//! registers: eight counters at once, in some forty instructions, where counters side by side in words
//! took over a hundred.

use crate::filter::{Removed, Step, in_batches};
use crate::strategy::{SplitBlock, scale};

use super::{Level, prefetch_index};

/// Words in a slice of a block, and lanes.
pub(crate) const LANES: usize = SplitBlock::WORDS;

type Lanes = [u64; LANES];

/// Words with `P` bits a counter.
struct Block<'a, const P: usize>(&'a mut [Lanes]);

/// What the counters of one item are.
struct Held {
    /// The bits whose counters are zero.
    missing: Lanes,
    /// The bits whose counters stick.
    full: Lanes,
}

impl Held {
    #[inline(always)]
    fn of<const P: usize>(slices: &[Lanes], mask: &Lanes) -> Self {
        let (mut any, mut full) = ([0; LANES], *mask);
        for slice in &slices[..P] {
            for i in 0..LANES {
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

    /// Tells whether all eight counters stick.
    #[inline(always)]
    fn is_full(&self, mask: &Lanes) -> bool {
        (0..LANES).fold(0, |all, i| all | (self.full[i] ^ mask[i])) == 0
    }
}

impl<const P: usize> Block<'_, P> {
    #[inline(always)]
    fn count_up(&mut self, mask: &Lanes) -> bool {
        let held = Held::of::<P>(self.0, mask);
        let mut carry: Lanes = std::array::from_fn(|i| mask[i] & !held.full[i]);
        for slice in &mut self.0[..P] {
            for i in 0..LANES {
                let bits = slice[i];
                slice[i] = bits ^ carry[i];
                carry[i] &= bits;
            }
        }
        held.is_missing()
    }

    #[inline(always)]
    fn count_down(&mut self, mask: &Lanes) -> Removed {
        let held = Held::of::<P>(self.0, mask);
        if held.is_missing() {
            return Removed::Absent;
        }
        if held.is_full(mask) {
            return Removed::Saturated;
        }
        let mut borrow: Lanes = std::array::from_fn(|i| mask[i] & !held.full[i]);
        for slice in &mut self.0[..P] {
            for i in 0..LANES {
                let bits = slice[i];
                slice[i] = bits ^ borrow[i];
                borrow[i] &= !bits;
            }
        }
        Removed::Yes
    }
}

/// The slices of the block of `hash`, and the bits of the item in each.
#[inline(always)]
fn locate<const P: usize>(words: &[u64], hash: u64) -> (usize, Lanes) {
    let blocks = words.len() / (LANES * P);
    let (block, mask) = SplitBlock::locate(hash, blocks);
    (block * P, mask)
}

#[inline(always)]
fn ask<const P: usize>(words: &[u64], hash: u64) {
    let block = scale(hash, (words.len() / (LANES * P)) as u64) as usize;
    for slice in 0..P {
        prefetch_index(words, (block * P + slice) * LANES);
    }
}

#[inline(always)]
fn contains_each<const P: usize>(words: &[u64], hashes: &[u64], answers: &mut [u64]) {
    in_batches(hashes, answers, |step, hash| match step {
        Step::Ask => {
            ask::<P>(words, hash);
            false
        }
        Step::Answer => contains::<P>(words, hash),
    });
}

#[inline(always)]
fn contains<const P: usize>(words: &[u64], hash: u64) -> bool {
    let (first, mask) = locate::<P>(words, hash);
    !Held::of::<P>(&words.as_chunks().0[first..first + P], &mask).is_missing()
}

#[inline(always)]
fn insert_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    in_batches(hashes, answers, |step, hash| match step {
        Step::Ask => {
            ask::<P>(words, hash);
            false
        }
        Step::Answer => {
            let (first, mask) = locate::<P>(words, hash);
            Block::<P>(&mut words.as_chunks_mut().0[first..first + P]).count_up(&mask)
        }
    });
}

#[inline(always)]
fn remove_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
    in_batches(hashes, answers, |step, hash| match step {
        Step::Ask => {
            ask::<P>(words, hash);
            false
        }
        Step::Answer => remove::<P>(words, hash) == Removed::Yes,
    });
}

#[inline(always)]
fn remove<const P: usize>(words: &mut [u64], hash: u64) -> Removed {
    let (first, mask) = locate::<P>(words, hash);
    Block::<P>(&mut words.as_chunks_mut().0[first..first + P]).count_down(&mask)
}

/// The kernels for counters of one size.
#[derive(Clone, Copy)]
pub(crate) struct CounterKernels {
    /// Tests items: bit set if none of its counters is zero.
    pub contains_each: fn(words: &[u64], hashes: &[u64], answers: &mut [u64]),
    /// Counts items up: bit set if the item is new.
    pub insert_each: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
    /// Counts items down: bit set if it was there and does not stick.
    pub remove_each: fn(words: &mut [u64], hashes: &[u64], answers: &mut [u64]),
    /// Counts one item down.
    pub remove: fn(words: &mut [u64], hash: u64) -> Removed,
}

/// The same code for whatever the compiler takes every CPU to have.
const fn plain<const P: usize>() -> CounterKernels {
    CounterKernels {
        contains_each: contains_each::<P>,
        insert_each: insert_each::<P>,
        remove_each: remove_each::<P>,
        remove: remove::<P>,
    }
}

/// The same with a lane's half in a register of AVX2. Written out: the compiler keeps closures of plain
/// code plain, and masks that are stored word by word are not there yet when a whole register loads them.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx2 {
    use super::{CounterKernels, Removed, ask};
    use crate::arch::avx2::Slice;
    use crate::filter::{GROUP, coming};
    use crate::strategy::scale;

    /// Returns the bits with a counter above zero, and those of `mask` whose counter sticks.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn held(block: &[[u64; 8]], mask: Slice) -> (Slice, Slice) {
        let (mut any, mut full) = (Slice::load(&block[0]), Slice::load(&block[0]).and(mask));
        for slice in &block[1..] {
            let slice = Slice::load(slice);
            (any, full) = (any.or(slice), full.and(slice));
        }
        (any, full)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn count_up(block: &mut [[u64; 8]], hash: u64) -> bool {
        let mask = Slice::mask(hash);
        let mut any = Slice::load(&block[0]);
        any.xor(mask).store(&mut block[0]);
        let mut carry = mask.and(any);
        for slice in &mut block[1..] {
            let bits = Slice::load(slice);
            bits.xor(carry).store(slice);
            (any, carry) = (any.or(bits), carry.and(bits));
        }
        // Counters that were at their highest value are zero now: they stick, and get it back. Rare, so that a
        // look at all slices beforehand would cost more.
        if !carry.is_zero() {
            for slice in block {
                Slice::load(slice).or(carry).store(slice);
            }
        }
        !mask.without(any).is_zero()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn count_down(block: &mut [[u64; 8]], hash: u64) -> Removed {
        let mask = Slice::mask(hash);
        let (any, full) = held(block, mask);
        if !mask.without(any).is_zero() {
            return Removed::Absent;
        }
        let mut borrow = mask.without(full);
        if borrow.is_zero() {
            return Removed::Saturated;
        }
        for slice in block {
            let bits = Slice::load(slice);
            bits.xor(borrow).store(slice);
            borrow = borrow.without(bits);
        }
        Removed::Yes
    }

    /// The slices of the block of `hash`.
    #[inline(always)]
    fn first_slice<const P: usize>(len_slices: usize, hash: u64) -> usize {
        scale(hash, (len_slices / P) as u64) as usize * P
    }

    /// Smaller filters lie in the second cache, whose latency the CPU hides by itself.
    const PREFETCH_FROM_WORDS: usize = (1 << 18) / 8;

    /// As `in_batches`, whose closures would not be compiled for AVX2.
    macro_rules! each {
        ($P:ident, $words:expr, $hashes:ident, $answers:ident, |$hash:ident| $answer:expr) => {
            assert_eq!($answers.len(), $hashes.len().div_ceil(64), "a word for each 64 hashes");
            let is_large = $words.len() >= PREFETCH_FROM_WORDS && $hashes.len() > 1;
            if is_large {
                $hashes.iter().take(GROUP).for_each(|&hash| ask::<$P>($words, hash));
            }
            for (word, first) in $answers.iter_mut().zip((0..$hashes.len()).step_by(64)) {
                let mut mask = 0;
                for (i, &$hash) in $hashes[first..].iter().take(64).enumerate() {
                    if is_large && i % GROUP == 0 {
                        let coming = coming($hashes, first + i);
                        coming.iter().for_each(|&hash| ask::<$P>($words, hash));
                    }
                    mask |= u64::from($answer) << i;
                }
                *word = mask;
            }
        };
    }

    #[target_feature(enable = "avx2")]
    fn contains_each<const P: usize>(words: &[u64], hashes: &[u64], answers: &mut [u64]) {
        let slices = words.as_chunks::<8>().0;
        each!(P, words, hashes, answers, |hash| {
            let first = first_slice::<P>(slices.len(), hash);
            let mask = Slice::mask(hash);
            mask.without(held(&slices[first..first + P], mask).0).is_zero()
        });
    }

    #[target_feature(enable = "avx2")]
    fn insert_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        each!(P, words, hashes, answers, |hash| {
            let slices = words.as_chunks_mut::<8>().0;
            let first = first_slice::<P>(slices.len(), hash);
            count_up(&mut slices[first..first + P], hash)
        });
    }

    #[target_feature(enable = "avx2")]
    fn remove_each<const P: usize>(words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        each!(P, words, hashes, answers, |hash| remove::<P>(words, hash) == Removed::Yes);
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn remove<const P: usize>(words: &mut [u64], hash: u64) -> Removed {
        let slices = words.as_chunks_mut::<8>().0;
        let first = first_slice::<P>(slices.len(), hash);
        count_down(&mut slices[first..first + P], hash)
    }

    pub(super) const fn kernels<const P: usize>() -> CounterKernels {
        CounterKernels {
            // SAFETY: this table is used only after the level was detected.
            contains_each: |words, hashes, answers| unsafe {
                contains_each::<P>(words, hashes, answers);
            },
            // SAFETY: this table is used only after the level was detected.
            insert_each: |words, hashes, answers| unsafe {
                insert_each::<P>(words, hashes, answers);
            },
            // SAFETY: this table is used only after the level was detected.
            remove_each: |words, hashes, answers| unsafe {
                remove_each::<P>(words, hashes, answers);
            },
            // SAFETY: this table is used only after the level was detected.
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
    use crate::arch::available;

    proptest! {
        #[test]
        fn every_level_counts_alike(
            counter_bits in prop::sample::select(vec![4_u32, 8, 16]),
            blocks in 1_usize..20,
            hashes in prop::collection::vec(any::<u64>(), 0..300),
        ) {
            let mut words = vec![0; blocks * LANES * counter_bits as usize];
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
