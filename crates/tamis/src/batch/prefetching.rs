//! Batches of hashes: the memory of a group is prefetched while the previous group is tested.

use crate::batch::answers::check_words;

/// Writes the answer to each hash, in order, to a bit mask. Prefetches the memory of a group of
/// hashes while testing the previous group. If `answer` writes to the memory, `prefetch` has only a
/// pointer to the memory instead of a reference.
///
/// # Panics
///
/// If the length of `answers` is not one word for each 64 hashes, rounded up.
#[inline(always)]
pub(crate) fn in_batches(
    hashes: &[u64],
    answers: &mut [u64],
    prefetch: impl Fn(u64),
    mut answer: impl FnMut(u64) -> bool,
) {
    check_words(answers, hashes.len());
    for &hash in hashes.iter().take(GROUP) {
        prefetch(hash);
    }
    for (word, first) in answers.iter_mut().zip((0..hashes.len()).step_by(64)) {
        let mut mask = 0;
        for (i, &hash) in hashes[first..].iter().take(64).enumerate() {
            if i % GROUP == 0 {
                for &hash in coming(hashes, first + i) {
                    prefetch(hash);
                }
            }
            mask |= u64::from(answer(hash)) << i;
        }
        *word = mask;
    }
}

/// The number of items that are prefetched at a time. A group is so small that a core can load the
/// cache lines of the group while the core tests other items.
pub(crate) const GROUP: usize = 16;

/// Returns the group that follows the group that starts at hash number `at`.
#[inline(always)]
pub(crate) fn coming(hashes: &[u64], at: usize) -> &[u64] {
    let from = hashes.len().min(at + GROUP);
    &hashes[from..hashes.len().min(from + GROUP)]
}
