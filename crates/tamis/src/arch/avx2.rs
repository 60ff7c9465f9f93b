//! Kernels for AVX2: a block of the default filter takes two registers, a Parquet block takes one
//! register.

mod batches;
mod blocks;
mod cuckoo;
mod parquet;
mod split_block;

pub(in crate::arch) use blocks::{Narrow, Wide, each_ahead};
pub(in crate::arch) use cuckoo::{contains_pairs, keys};
pub(in crate::arch) use parquet::contains_one_256;
pub(in crate::arch) use split_block::{contains_one_512, insert_512_shared, insert_one_512};

use crate::arch::kernels::{Kernels, OwnedKernels};
use crate::bits::Word;

pub(super) static KERNELS: OwnedKernels = OwnedKernels {
    // SAFETY: this table is used only if the CPU supports AVX2.
    insert_512: |words, hashes, answers| unsafe { split_block::insert(words, hashes, answers) },
    // SAFETY: this table is used only if the CPU supports AVX2.
    insert_256: |words, hashes, answers| unsafe { parquet::insert(words, hashes, answers) },
};

pub(super) fn readers<W: Word>() -> Kernels<W> {
    Kernels {
        // SAFETY: this table is used only if the CPU supports AVX2.
        contains_512: |words, hashes, answers| unsafe {
            split_block::contains(words, hashes, answers);
        },
        // SAFETY: this table is used only if the CPU supports AVX2.
        contains_256: |words, hashes, answers| unsafe {
            parquet::contains(words, hashes, answers);
        },
    }
}
