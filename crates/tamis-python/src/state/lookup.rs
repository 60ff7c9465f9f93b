//! Lookups of batches in an exact set of digests.

use tamis::{Answers, Digest, DigestSet};

/// The number of digests whose memory is loaded ahead.
const AHEAD: usize = 16;

/// Tests digests. Answer `i` is true if the set holds digest `i`.
pub fn contains_each<D: Digest>(set: &DigestSet<D>, digests: &[D], answers: &mut Answers) {
    answers.fill_with(digests.len(), |i| {
        if let Some(&later) = digests.get(i + AHEAD) {
            set.prefetch(later);
        }
        set.contains(digests[i])
    });
}
