//! Moves fingerprints of the newest sub-filters to free slots of older sub-filters. Removals free
//! slots of older sub-filters.

use crate::cuckoo::RedisCuckoo;
use crate::cuckoo::sub_filter::{Candidate, EMPTY};

impl RedisCuckoo {
    /// Moves fingerprints from newer to older sub-filters, like `CF.COMPACT`. Frees each newest
    /// sub-filter that is empty after the moves. Reads all sub-filters except the first sub-filter.
    pub fn compact(&mut self) {
        self.compact_sub_filters(false);
    }

    /// Compacts the sub-filters, starting with the newest sub-filter. If `stops_at_failure` is
    /// true, stops at the first sub-filter that is not empty after the moves. If a removal starts
    /// the compaction, RedisBloom also stops at the first sub-filter that is not empty.
    pub(super) fn compact_sub_filters(&mut self, stops_at_failure: bool) {
        for index in (1..self.sub_filters.len()).rev() {
            if !self.empty_sub_filter(index) && stops_at_failure {
                break;
            }
        }
        self.removed = 0;
    }

    /// Moves each fingerprint of a sub-filter to the oldest sub-filter with a free slot for the
    /// fingerprint. If the newest sub-filter is empty after the moves, frees the newest sub-filter.
    /// Returns true if all fingerprints have moved.
    fn empty_sub_filter(&mut self, index: usize) -> bool {
        let (older, rest) = self.sub_filters.split_at_mut(index);
        let (sub_filter, slots) = (&mut rest[0], u64::from(self.bucket_size));
        let mut all_moved = true;
        for bucket in 0..sub_filter.buckets() {
            for slot in bucket * slots..(bucket + 1) * slots {
                let fingerprint = sub_filter.slot(slot);
                if fingerprint == EMPTY {
                    continue;
                }
                let candidate = Candidate::in_bucket(fingerprint, bucket);
                if older.iter_mut().any(|sub_filter| sub_filter.put(candidate)) {
                    sub_filter.clear(slot);
                } else {
                    all_moved = false;
                }
            }
        }
        if all_moved && rest.len() == 1 {
            self.sub_filters.pop();
        }
        all_moved
    }
}
