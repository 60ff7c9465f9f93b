//! The fold hash, which was the default before the [mix hash](super::mix). Files from that time need
//! the fold hash. The two functions differ for items of up to 8 bytes and of 33 to 48
//! bytes.

use crate::hash::mix::{
    self, Keys, finish_folds, fold_pair, second_half, small_number, sum_of_pairs,
};

/// Hashes `bytes`.
pub(super) fn hash(bytes: &[u8], keys: Keys) -> u64 {
    let mixed = match bytes.len() {
        0..=8 => fold_pair(small_number(bytes), 0, keys),
        // The mix hash leaves out this half.
        33..=48 => sum_of_pairs(bytes, keys).wrapping_add(second_half::<1>(bytes, keys)),
        _ => return mix::hash(bytes, keys),
    };
    finish_folds(mixed, bytes.len() as u64)
}
