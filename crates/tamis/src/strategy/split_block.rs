//! The default strategy: split-block Bloom with 512-bit blocks.
//!
//! ```text
//! hash ──┬─ high half of hash × blocks ─────────────▶ block, one 64-byte line
//!        └─ low 32 bits × γ = spread: from bit 8 14 20 26 32 38 44 50
//!                                               │  │  │  │  │  │  │  │   six bits each
//!                                        lane   0  1  2  3  4  5  6  7   ▼ one bit in each
//!                                             |64|64|64|64|64|64|64|64|
//! ```
//!
//! An item sets one bit in each of the eight lanes of one block, so a lookup is one memory access and one vector
//! instruction. The price is that blocks fill unevenly: the rate is the mean over the binomial number of items in a
//! block, not the classic formula (`plan/rates.rs`).
//!
//! The block comes from the top bits of the hash, so the lanes must use other bits. The low 32 bits, which the block
//! does not use, are spread over 64 bits by an odd γ. The bit numbers are taken from the middle of the product, where
//! every bit is uniform. It is one 32-bit multiplication, because vector units do eight of those at once, and a 64-bit
//! multiplication takes three times as long.
//!
//! Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007), §3. The lanes follow the
//! split-block filter of the Parquet format.

use std::ops::Range;

use super::by_stripe::ByStripe;
use super::sealed::{Construct, Token};
use super::{Strategy, insert_one_by_one, lanes_items, lanes_rate, scale};
use crate::answers::answer_each;
use crate::arch;
use crate::bits::{AtomicBitmap, Bits as _, Word};
use crate::chunks::CHUNK;
use crate::geometry::Geometry;
use crate::kind::Kind;
use crate::plan::{BlockSizing, Blocks, LANES, Plan};

/// Split-block Bloom with 512-bit blocks: one cache line for each lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitBlock {
    /// The level of the kernels. It is stored here and not queried for each item, so that it stays in a register.
    level: arch::Level,
}

impl SplitBlock {
    /// Words in a block.
    pub(crate) const WORDS: usize = 8;

    /// 2³² minus 2³² divided by the golden ratio: odd, and small enough for an immediate operand.
    pub(crate) const GAMMA: u64 = 0x61c8_8647;

    /// The first bit of lane `i`'s bit number in the spread hash.
    pub(crate) const SHIFTS: [u64; 8] = [8, 14, 20, 26, 32, 38, 44, 50];

    /// Returns the block of `hash`, below `blocks`.
    #[inline(always)]
    pub(crate) const fn block(hash: u64, blocks: usize) -> usize {
        scale(hash, blocks as u64) as usize
    }

    /// Returns the first word of the block of `hash` in `len_words` words.
    ///
    /// Equals eight times [`block`](Self::block), in fewer instructions: the hash is scaled to words and rounded down
    /// to a whole block.
    #[inline(always)]
    pub(crate) const fn first_word(hash: u64, len_words: usize) -> usize {
        const BLOCK: usize = !(SplitBlock::WORDS - 1);
        scale(hash, (len_words & BLOCK) as u64) as usize & BLOCK
    }

    /// Returns a hash that sets the bits of `hash`, whose block is `block`, in a part of 2^`part_log` blocks. The block
    /// has the same place in the part as in the filter's run of 2^`part_log` blocks.
    ///
    /// The highest bits contain the block, the low 32 bits determine the lanes' bits. `part_log` is 1 to 32.
    #[inline(always)]
    pub(crate) const fn hash_in_part(hash: u64, block: usize, part_log: u32) -> u64 {
        (block as u64) << (64 - part_log) | hash as u32 as u64
    }

    /// Returns the bits from which the lanes take their bit numbers.
    #[inline(always)]
    pub(crate) const fn spread(hash: u64) -> u64 {
        (hash as u32 as u64) * Self::GAMMA
    }

    /// Returns the block of `hash` and its bit in each lane.
    #[inline(always)]
    pub(crate) fn locate(hash: u64, blocks: usize) -> (usize, [u64; 8]) {
        let spread = Self::spread(hash);
        (Self::block(hash, blocks), Self::SHIFTS.map(|shift| 1 << (spread >> shift & 63)))
    }
}

/// Up to this many hashes are answered one by one. A kernel first fills buffers: a batch of one hash took 54 ns in the
/// kernel, and takes 5 ns outside it.
const ONE_BY_ONE_MAX: usize = 8;

/// The formulas for the sizes of this kind.
pub(crate) const SIZING: BlockSizing = BlockSizing {
    geometry: |number| (number == LANES).then_some(Geometry::Probes(LANES)),
    usual: &[Geometry::Probes(LANES)],
    blocks: |_| BLOCKS,
};

/// The blocks of every filter of this kind.
pub(crate) const BLOCKS: Blocks = Blocks::PLAIN;

impl Construct for SplitBlock {
    fn for_plan(_: &Plan, _: Token) -> Self {
        SplitBlock { level: arch::level() }
    }
}

impl Strategy for SplitBlock {
    const KIND: Kind = Kind::SplitBlock;

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: u64) -> bool {
        arch::contains_one_512(self.level, words, hash)
    }

    fn contains_each<W: Word>(&self, words: &[W], hashes: &[u64], answers: &mut [u64]) {
        if hashes.len() <= ONE_BY_ONE_MAX {
            return answer_each(hashes, answers, |&hash| self.contains(words, hash));
        }
        (self.level.readers::<W>().contains_512)(words, hashes, answers);
    }

    #[inline]
    fn insert(&self, words: &mut [u64], hash: u64) -> bool {
        arch::insert_one_512(self.level, words, hash)
    }

    fn insert_each(&self, words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        if hashes.len() <= ONE_BY_ONE_MAX {
            return answer_each(hashes, answers, |&hash| self.insert(words, hash));
        }
        (self.level.owned().insert_512)(words, hashes, answers);
    }

    #[inline]
    fn insert_shared(&self, bits: &AtomicBitmap, hash: u64) -> bool {
        let words = bits.words();
        // A repeat needs no lock, because set bits stay set.
        if arch::contains_one_512(self.level, words, hash) {
            return false;
        }
        let _stripe = bits.lock(bits.stripe(Self::first_word(hash, words.len())));
        arch::insert_one_512_shared(self.level, words, hash)
    }

    fn insert_each_shared(
        &self,
        bits: &AtomicBitmap,
        len: usize,
        mut hash: impl FnMut(Range<usize>, &mut [u64]),
        answers: &mut [u64],
    ) {
        let Some(part_len) = ByStripe::part_len(bits, len) else {
            return insert_one_by_one(self, bits, len, hash, answers);
        };
        let mut hashes = [0; CHUNK];
        for (first, answers) in (0..len).step_by(part_len).zip(answers.chunks_mut(part_len / 64)) {
            let end = len.min(first + part_len);
            let mut waiting = ByStripe::new(bits, end - first, answers);
            for start in (first..end).step_by(CHUNK) {
                let hashes = &mut hashes[..CHUNK.min(end - start)];
                hash(start..start + hashes.len(), hashes);
                waiting.push(hashes);
            }
            waiting.finish();
        }
    }

    #[inline]
    fn prefetch<W: Word>(&self, words: &[W], hash: u64) {
        arch::prefetch_index(words, Self::first_word(hash, words.len()));
    }

    #[inline]
    fn prefetch_shared(&self, bits: &AtomicBitmap, hash: u64) {
        arch::prefetch_write(bits.words(), Self::first_word(hash, bits.words().len()));
    }

    fn estimate_items<W: Word>(&self, words: &[W]) -> f64 {
        lanes_items(words)
    }

    fn estimate_rate<W: Word>(&self, words: &[W]) -> f64 {
        lanes_rate(words, Self::WORDS, 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_any_length_answers_as_single_items() {
        use crate::{Bloom, Filter as _, Insert as _};
        let hashes: Vec<u64> =
            (0..20_u64).map(|i| crate::Hasher::default().hash_item(&(i / 2))).collect();
        for len in 0..=hashes.len() {
            let (mut batch, mut single): (Bloom, Bloom) =
                (Bloom::for_items(100, 0.01).unwrap(), Bloom::for_items(100, 0.01).unwrap());
            let mut answers = vec![u64::MAX; len.div_ceil(64)];
            batch.insert_hashes(&hashes[..len], &mut answers);
            for (i, &hash) in hashes[..len].iter().enumerate() {
                assert_eq!(single.insert_hash(hash), answers[0] >> i & 1 == 1, "{len}");
            }
            assert_eq!(batch, single);
            batch.contains_hashes(&hashes[..len], &mut answers);
            assert!(answers.iter().all(|word| word.count_ones() as usize == len));
        }
    }

    #[test]
    fn the_block_is_the_scaled_hash() {
        assert_eq!(SplitBlock::block(0, 7), 0);
        assert_eq!(SplitBlock::block(u64::MAX, 7), 6);
        assert_eq!(SplitBlock::block(1 << 63, 10), 5);
    }

    #[test]
    fn the_first_word_is_that_of_the_block() {
        for hash in [0, 1, 1 << 63, u64::MAX / 3, u64::MAX] {
            for blocks in [1, 2, 7, 1000, 12_345_678] {
                for spare in [0, 5] {
                    let first = SplitBlock::first_word(hash, blocks * 8 + spare);
                    assert_eq!(first, SplitBlock::block(hash, blocks) * 8);
                }
            }
        }
    }

    #[test]
    fn a_hash_in_a_part_sets_the_same_bits_there() {
        for part_log in [1, 12, 32] {
            for hash in [0, 77, 1 << 63, u64::MAX / 3, u64::MAX] {
                let (block, mask) = SplitBlock::locate(hash, 1_234_567);
                let in_part = SplitBlock::hash_in_part(hash, block, part_log);
                let expected = (block % (1 << part_log), mask);
                assert_eq!(SplitBlock::locate(in_part, 1 << part_log), expected);
            }
        }
    }

    #[test]
    fn lanes_use_every_bit_number_in_a_block() {
        // Hashes of one block of a large filter share their top bits; each lane still varies.
        let blocks = 1 << 21;
        let mut used = [0_u64; 8];
        for i in 0..4096_u64 {
            let hash = (77 << 43) | crate::Hasher::default().hash_item(&i) >> 21;
            let (block, mask) = SplitBlock::locate(hash, blocks);
            assert_eq!(block, 77);
            for (used, mask) in used.iter_mut().zip(mask) {
                *used |= mask;
            }
        }
        assert_eq!(used, [u64::MAX; 8]);
    }
}
