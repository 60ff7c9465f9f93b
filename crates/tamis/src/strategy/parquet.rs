//! Parquet's split-block Bloom, by the rule in `strategy/block_rules/parquet.rs`.

use crate::arch;
use crate::bits::{AtomicBitmap, Bits as _, Word};
use crate::plan::{Kind, Plan};
use crate::strategy::block_rules::parquet::{WORDS, block, locate};
use crate::strategy::lanes::{lanes_items, lanes_rate};
use crate::strategy::rule::{Construct, Strategy, Token};

/// Split-block Bloom as defined by Parquet. With [`Hasher::xxh64`](crate::Hasher::xxh64)`(0)`, the
/// filter has the same bytes as the filter of a Parquet column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parquet(());

impl Construct for Parquet {
    fn for_plan(_: &Plan, _: Token) -> Self {
        Parquet(())
    }
}

impl Strategy for Parquet {
    const KIND: Kind = Kind::Parquet;

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: u64) -> bool {
        arch::contains_one_256(words, hash)
    }

    fn contains_each<W: Word>(&self, words: &[W], hashes: &[u64], answers: &mut [u64]) {
        (arch::level().readers::<W>().contains_256)(words, hashes, answers);
    }

    #[inline]
    fn insert(&self, words: &mut [u64], hash: u64) -> bool {
        arch::scalar::insert_one_256(words, hash)
    }

    fn insert_each(&self, words: &mut [u64], hashes: &[u64], answers: &mut [u64]) {
        (arch::kernels().insert_256)(words, hashes, answers);
    }

    #[inline]
    fn insert_shared(&self, bits: &AtomicBitmap, hash: u64) -> bool {
        let (block, mask) = locate(hash, bits.words().len() / WORDS);
        bits.set(block * WORDS, &mask)
    }

    #[inline]
    fn prefetch<W: Word>(&self, words: &[W], hash: u64) {
        arch::prefetch_index(words, block(hash, words.len() / WORDS) * WORDS);
    }

    fn estimate_items<W: Word>(&self, words: &[W]) -> f64 {
        lanes_items(words)
    }

    fn estimate_rate<W: Word>(&self, words: &[W]) -> f64 {
        lanes_rate(words, WORDS, 32)
    }
}
