//! Batches of hashes: the memory of a group is prefetched while the previous group is answered.

use crate::batch::answers::check_words;

/// The step of [`in_batches`] that the caller runs for a hash.
pub(crate) enum Step {
    /// Prefetch the memory that the answer will touch. The returned value is ignored.
    Prefetch,
    /// Return the answer.
    Answer,
}

/// Writes the answer to each hash, in order, to a bit mask. Prefetches the memory of a group of
/// hashes while it answers the previous group.
///
/// # Panics
///
/// If `answers` does not have one word for each 64 hashes.
#[inline(always)]
pub(crate) fn in_batches(
    hashes: &[u64],
    answers: &mut [u64],
    mut step: impl FnMut(Step, u64) -> bool,
) {
    check_words(answers, hashes.len());
    for &hash in hashes.iter().take(GROUP) {
        step(Step::Prefetch, hash);
    }
    for (word, first) in answers.iter_mut().zip((0..hashes.len()).step_by(64)) {
        let mut mask = 0;
        for (i, &hash) in hashes[first..].iter().take(64).enumerate() {
            if i % GROUP == 0 {
                for &hash in coming(hashes, first + i) {
                    step(Step::Prefetch, hash);
                }
            }
            mask |= u64::from(step(Step::Answer, hash)) << i;
        }
        *word = mask;
    }
}

/// How many items are prefetched at a time. They are so few that a core can load their lines while
/// it answers other items.
pub(crate) const GROUP: usize = 16;

/// Returns the group after the one that starts at `at`.
#[inline(always)]
pub(crate) fn coming(hashes: &[u64], at: usize) -> &[u64] {
    let from = hashes.len().min(at + GROUP);
    &hashes[from..hashes.len().min(from + GROUP)]
}
