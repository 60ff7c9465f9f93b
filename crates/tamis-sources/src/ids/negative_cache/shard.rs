//! A shard of the negative cache: a table of 404 responses with a maximum size.
//!
//! ```text
//! index     hash of the id → positions          5 bytes per bucket, at most 7/8 full
//! entries   digest 16 │ hash of the id 8 │ time 8
//! ```
//!
//! The entries are in one vector without gaps: the last entry fills the gap of a removed entry.
//!
//! A full shard replaces a **random** entry. If a full shard replaced the oldest entry, an attacker could have slightly
//! more false positives than the shard has entries, and send the requests in a fixed order. The shard would then always
//! drop the request that comes next, and every request would pass.

use hashbrown::HashTable;

/// The maximum number of requests that the cache stores for one id.
pub(super) const MAX_REQUESTS: usize = 16;

/// The number of entries whose age an insert tests. The number is above 1, so that inserts remove expired entries
/// faster than inserts add entries.
const TESTED: usize = 2;

/// A 404 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The digest of the id and the request.
    pub(super) digest: u128,
    /// The hash of the id.
    pub(super) id: u64,
    /// The time of the response, in nanoseconds.
    pub(super) at: u64,
}

/// The entries of a shard.
#[derive(Debug, Default)]
pub(super) struct Shard {
    entries: Vec<Entry>,
    /// The positions in `entries`, found by the hash of the id. An id has one position for each of its requests.
    index: HashTable<u32>,
    /// The position whose age the next insert tests.
    tested: usize,
    /// The state of the generator of random positions. The digests of the entries enter the state, so an attacker
    /// cannot predict the positions.
    random: u64,
}

impl Shard {
    /// Returns the time of the entry with a digest. `id` is the hash of the id.
    pub(super) fn time_of(&self, id: u64, digest: u128) -> Option<u64> {
        let is_entry = |&at: &u32| self.entries[at as usize].digest == digest;
        self.index.find(id, is_entry).map(|&at| self.entries[at as usize].at)
    }

    /// Returns the time of the last entry for an id.
    pub(super) fn last_time_of(&self, id: u64) -> Option<u64> {
        self.positions_of(id).map(|at| self.entries[at].at).max()
    }

    /// Inserts an entry. Entries with a time of at most `expired` are expired. If the shard has `max` entries, the new
    /// entry replaces a random entry. `max` must not be 0.
    ///
    /// The shard ignores an entry if the shard has an entry with the same digest, or [`MAX_REQUESTS`] entries for the
    /// id.
    pub(super) fn insert(&mut self, entry: Entry, max: usize, expired: Option<u64>) {
        let is_expired = |entry: &Entry| expired.is_some_and(|expired| entry.at <= expired);
        for _ in 0..TESTED {
            if self.tested >= self.entries.len() {
                self.tested = 0;
            }
            match self.entries.get(self.tested) {
                // Another entry takes the position of the removed entry.
                Some(tested) if is_expired(tested) => self.remove_at(self.tested),
                _ => self.tested += 1,
            }
        }
        loop {
            let at = self.positions_of(entry.id).find(|&at| is_expired(&self.entries[at]));
            let Some(at) = at else { break };
            self.remove_at(at);
        }
        let is_known = self.time_of(entry.id, entry.digest).is_some();
        if is_known || self.positions_of(entry.id).count() >= MAX_REQUESTS {
            return;
        }
        if self.entries.len() >= max {
            let at = self.random_position(entry.digest as u64);
            self.remove_at(at);
        }
        let Self { entries, index, .. } = self;
        if entries.len() == entries.capacity() {
            // The vector doubles, but does not grow beyond the maximum.
            entries.reserve_exact(entries.len().max(4).min(max - entries.len()));
        }
        let at = entries.len() as u32;
        entries.push(entry);
        index.insert_unique(entry.id, at, |&at| entries[at as usize].id);
    }

    /// Removes all entries of an id. `id` is the hash of the id.
    pub(super) fn remove(&mut self, id: u64) {
        loop {
            let at = self.positions_of(id).next();
            let Some(at) = at else { break };
            self.remove_at(at);
        }
    }

    /// Removes all entries, and frees their memory.
    pub(super) fn clear(&mut self) {
        *self = Self { random: self.random, ..Self::default() };
    }

    fn positions_of(&self, id: u64) -> impl Iterator<Item = usize> {
        let positions = self.index.iter_hash(id).map(|&at| at as usize);
        positions.filter(move |&at| self.entries[at].id == id)
    }

    fn remove_at(&mut self, at: usize) {
        let removed = self.entries[at].id;
        let number = |at: usize| move |&other: &u32| other as usize == at;
        let found = self.index.find_entry(removed, number(at));
        _ = found.expect("each entry is in the index").remove();
        let last = self.entries.len() - 1;
        if at != last {
            let moved = self.index.find_mut(self.entries[last].id, number(last));
            *moved.expect("each entry is in the index") = at as u32;
        }
        self.entries.swap_remove(at);
    }

    fn random_position(&mut self, digest: u64) -> usize {
        // The constant is from Knuth, The Art of Computer Programming, volume 2, section 3.3.4.
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(digest);
        (((self.random >> 32) * self.entries.len() as u64) >> 32) as usize
    }
}

#[cfg(test)]
impl Shard {
    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the memory of the entries and the index in bytes.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.index.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, digest: u128, at: u64) -> Entry {
        Entry { digest, id, at }
    }

    #[test]
    fn a_removed_entry_leaves_all_other_entries() {
        let mut shard = Shard::default();
        // All ids share the hash bits that the index tests first.
        let id = |i: u64| i << 8;
        for i in 0..100 {
            for request in 0..3 {
                shard.insert(entry(id(i), u128::from(i * 3 + request), i), 1000, None);
            }
        }
        for removed in (0..100).rev().step_by(3) {
            shard.remove(id(removed));
        }
        assert_eq!(shard.len(), 66 * 3);
        for i in 0..100 {
            let is_removed = i % 3 == 0;
            for request in 0..3 {
                let time = shard.time_of(id(i), u128::from(i * 3 + request));
                assert_eq!(time, (!is_removed).then_some(i), "{i}");
            }
            assert_eq!(shard.last_time_of(id(i)), (!is_removed).then_some(i), "{i}");
        }
    }

    #[test]
    fn inserts_remove_expired_entries() {
        let mut shard = Shard::default();
        for i in 0..1000 {
            shard.insert(entry(i, i.into(), 10), 1000, None);
        }
        for i in 1000..2000 {
            shard.insert(entry(i, i.into(), 20), 1000, Some(10));
        }
        assert_eq!(shard.len(), 1000);
        assert!((1000..2000).all(|i| shard.time_of(i, i.into()) == Some(20)));
    }

    #[test]
    fn a_further_response_does_not_lengthen_the_time_of_an_entry() {
        let mut shard = Shard::default();
        shard.insert(entry(7, 1, 10), 10, None);
        shard.insert(entry(7, 1, 20), 10, Some(5));
        assert_eq!((shard.time_of(7, 1), shard.len()), (Some(10), 1));
        shard.insert(entry(7, 1, 30), 10, Some(10));
        assert_eq!((shard.time_of(7, 1), shard.len()), (Some(30), 1));
    }

    #[test]
    fn an_id_has_a_maximum_number_of_requests() {
        let mut shard = Shard::default();
        for digest in 0..100 {
            shard.insert(entry(7, digest, 10), 1000, None);
        }
        assert_eq!(shard.len(), MAX_REQUESTS);
        // The expired entries make room.
        shard.insert(entry(7, 500, 20), 1000, Some(10));
        assert_eq!((shard.len(), shard.last_time_of(7)), (1, Some(20)));
    }

    /// The order of the requests is the worst order for a cache that replaces the oldest entry.
    #[test]
    fn more_requests_than_entries_in_a_fixed_order_do_not_displace_all_entries() {
        let mut shard = Shard::default();
        let mut passed = 0;
        for round in 0..20 {
            passed = 0;
            for id in 0..1100_u64 {
                let digest = u128::from(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                if shard.time_of(id, digest).is_none() {
                    passed += 1;
                    shard.insert(entry(id, digest, round), 1000, None);
                }
            }
            assert_eq!(shard.len(), 1000);
        }
        // The share s of the requests that pass satisfies 1 - s = exp(-1.1 s), so s is 0.18.
        assert!((100..300).contains(&passed), "{passed}");
    }
}
