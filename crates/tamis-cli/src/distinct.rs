//! The distinct hashes of a stream, when all of them are needed before the first is used.

/// A growing list of hashes. It is sorted and rid of repeats each time it is full, and given more room
/// only if that did not free half of it: so it takes at most twice the room of the distinct ones.
pub struct Distinct {
    hashes: Vec<u64>,
    max_hashes: usize,
}

/// The distinct hashes do not fit.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany {
    /// How many there are, at least.
    pub items: u64,
}

/// Sorting less often costs nothing: 8 MiB.
const FIRST_HASHES: usize = 1 << 20;

impl Distinct {
    /// Makes an empty list that takes at most `max_bytes`.
    pub fn new(max_bytes: u64) -> Self {
        Self {
            hashes: Vec::new(),
            max_hashes: usize::try_from(max_bytes / 8).unwrap_or(usize::MAX),
        }
    }

    /// Adds `hashes`.
    ///
    /// # Errors
    ///
    /// [`TooMany`] if the distinct ones do not fit in memory.
    pub fn extend(&mut self, mut hashes: &[u64]) -> Result<(), TooMany> {
        while !hashes.is_empty() {
            if self.hashes.len() == self.hashes.capacity() {
                self.make_room()?;
            }
            let room = self.hashes.capacity() - self.hashes.len();
            let (now, later) = hashes.split_at(room.min(hashes.len()));
            self.hashes.extend_from_slice(now);
            hashes = later;
        }
        Ok(())
    }

    /// Returns the distinct hashes in order.
    pub fn into_sorted(mut self) -> Vec<u64> {
        self.compact();
        self.hashes
    }

    fn compact(&mut self) {
        self.hashes.sort_unstable();
        self.hashes.dedup();
    }

    fn make_room(&mut self) -> Result<(), TooMany> {
        self.compact();
        let (len, capacity) = (self.hashes.len(), self.hashes.capacity());
        if capacity > 0 && len <= capacity / 2 {
            return Ok(());
        }
        // Growing may copy: the old list and the new one are there at once.
        let wanted = (2 * capacity).max(FIRST_HASHES);
        let wanted = if wanted.saturating_add(len) > self.max_hashes {
            self.max_hashes.saturating_sub(len)
        } else {
            wanted
        };
        let too_many = TooMany { items: len as u64 };
        if wanted <= len {
            // A little room left is used before giving up, but not by sorting for each hash.
            return if len + len / 8 < capacity { Ok(()) } else { Err(too_many) };
        }
        self.hashes.try_reserve_exact(wanted - len).map_err(|_| too_many)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_hash_is_kept_once_in_order() {
        let mut distinct = Distinct::new(u64::MAX);
        let mut expected = BTreeSet::new();
        for round in 0..40_u64 {
            let hashes: Vec<u64> = (0..100_000)
                .map(|i| (i * round % 1_500_000).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            distinct.extend(&hashes).unwrap();
            expected.extend(hashes);
        }
        assert!(distinct.hashes.capacity() <= 2 * expected.len().max(FIRST_HASHES));
        assert_eq!(distinct.into_sorted(), expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn repeats_need_no_room() {
        let mut distinct = Distinct::new(16 << 20);
        for _ in 0..100 {
            distinct.extend(&(0..100_000).collect::<Vec<u64>>()).unwrap();
        }
        assert_eq!(distinct.into_sorted().len(), 100_000);
    }

    #[test]
    fn too_many_distinct_hashes_are_refused() {
        let mut distinct = Distinct::new(1 << 20);
        let hashes: Vec<u64> = (0..200_000).collect();
        assert!(distinct.extend(&hashes).is_err());
        assert!(Distinct::new(0).extend(&[1]).is_err());
    }
}
