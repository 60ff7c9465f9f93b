//! Compaction: moves the newest sub-filters into slots that removals freed in older ones.

use super::RedisCuckoo;
use super::sub_filter::{Candidate, EMPTY};

impl RedisCuckoo {
    /// Moves fingerprints from newer sub-filters to older ones, and frees the newest ones if they are then empty:
    /// `CF.COMPACT`. Reads all slots except those of the first sub-filter.
    pub fn compact(&mut self) {
        for index in (1..self.sub_filters.len()).rev() {
            self.empty_sub_filter(index);
        }
        self.removed = 0;
    }

    /// Compacts after a removal, until a sub-filter cannot be emptied.
    pub(super) fn compact_until_failure(&mut self) {
        for index in (1..self.sub_filters.len()).rev() {
            if !self.empty_sub_filter(index) {
                break;
            }
        }
        self.removed = 0;
    }

    /// Moves the fingerprints of a sub-filter to the oldest one with a free slot. Frees the sub-filter if it is the
    /// newest and all of them moved. Returns true if all moved.
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
