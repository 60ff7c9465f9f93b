//! The default strategy: split-block Bloom with 512-bit blocks, by the rule in
//! `strategy/block_rules/split_block.rs`.

use std::ops::Range;

use crate::arch;
use crate::batch::answers::answer_each;
use crate::batch::chunks::CHUNK;
use crate::bits::{AtomicBitmap, Bits as _, Word};
use crate::plan::{Kind, Plan};
use crate::strategy::block_rules::split_block::{WORDS, first_word};
use crate::strategy::by_stripe::ByStripe;
use crate::strategy::lanes::{lanes_items, lanes_rate};
use crate::strategy::rule::{Construct, Strategy, Token, insert_one_by_one};

/// Split-block Bloom with 512-bit blocks: one cache line for each lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitBlock {
    /// The CPU level, which selects the kernels. The strategy stores the level, so that the level
    /// stays in a register and is not queried for each item.
    level: arch::Level,
}

/// The maximum number of hashes that a batch tests one by one. A kernel that inserts or tests a
/// whole batch first fills buffers. A batch of one hash took 54 ns in the kernel, and takes 5 ns
/// without the kernel.
const ONE_BY_ONE_MAX: usize = 8;

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
        // If all bits are already set, no lock is needed, because set bits stay set.
        if arch::contains_one_512(self.level, words, hash) {
            return false;
        }
        let _stripe = bits.lock(bits.stripe(first_word(hash, words.len())));
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
        arch::prefetch_index(words, first_word(hash, words.len()));
    }

    #[inline]
    fn prefetch_shared(&self, bits: &AtomicBitmap, hash: u64) {
        arch::prefetch_write(bits.words(), first_word(hash, bits.words().len()));
    }

    fn estimate_items<W: Word>(&self, words: &[W]) -> f64 {
        lanes_items(words)
    }

    fn estimate_rate<W: Word>(&self, words: &[W]) -> f64 {
        lanes_rate(words, WORDS, 64)
    }
}

#[cfg(test)]
mod tests {
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
}
