//! The fold hash, which was the default before the [mix hash](super::mix). Files that were written
//! then need the fold hash. The two functions differ only for items of up to eight bytes.

use crate::hash::mix::{self, Keys, finish_folds, fold_pair, small_number};

/// Hashes `bytes`.
pub(super) fn hash(bytes: &[u8], keys: Keys) -> u64 {
    match bytes.len() {
        len @ 0..=8 => finish_folds(fold_pair(small_number(bytes), 0, keys), len as u64),
        _ => mix::hash(bytes, keys),
    }
}
