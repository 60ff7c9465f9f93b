//! An exact window: a ring of exact sets, one for each slice.
//!
//! ```text
//!              4   3   2   1  slices ago   current
//! dropped ◀─ │   │   │   │   │           │         │ ◀─ records      when a slice begins, the oldest set is
//!            └───┴───┴───┴───┘ read only └─────────┘ grows           dropped and an empty one is current
//! ```
//!
//! A digest is in the set of the slice in which the digest was new. With `--refresh`, a digest is
//! in the set of each slice in which the digest occurred. Only the current set grows. The current
//! set may use the memory that the other sets do not use.

use tamis::{Answers, DigestSet, OutOfMemory};

use crate::commands::dedup::digest::Width;

/// A ring of sets of digests.
pub struct Ring<D: Width> {
    // The sets, from the oldest set to the current set. Invariant: the number of sets is one more
    // than the number of slices of the window.
    sets: Vec<DigestSet<D>>,
    refreshes: bool,
    max_bytes: u64,
    scratch: Scratch<D>,
}

#[derive(Default)]
struct Scratch<D> {
    found: Answers,
    unseen: Vec<D>,
    places: Vec<usize>,
    new: Answers,
}

/// The number of digests whose memory is prefetched before the first comparison. For each digest,
/// one cache line of each set is prefetched.
const PREFETCH_DISTANCE: usize = 32;

impl<D: Width> Ring<D> {
    /// Creates an empty ring of at most `max_bytes` for a window of `slices` slices.
    pub fn new(slices: u32, refreshes: bool, max_bytes: u64) -> Self {
        Self {
            sets: (0..=slices).map(|_| DigestSet::within(max_bytes)).collect(),
            refreshes,
            max_bytes,
            scratch: Scratch::default(),
        }
    }

    /// Advances the window by `slices`.
    pub fn advance(&mut self, slices: u64) {
        let last = self.sets.len() - 1;
        for _ in 0..slices.min(self.sets.len() as u64) {
            self.sets.rotate_left(1);
            self.sets[last] = DigestSet::new();
            self.sets[last] = DigestSet::within(self.max_bytes.saturating_sub(self.memory_bytes()));
        }
    }

    /// Inserts digests in order. Sets bit `i` of `new` if digest `i` was not in the ring before its
    /// insertion.
    ///
    /// # Errors
    ///
    /// Returns an error and inserts nothing if the digests exceed the memory.
    pub fn insert_each(&mut self, digests: &[D], new: &mut Answers) -> Result<(), OutOfMemory> {
        let (present, older) = self.sets.split_last_mut().expect("at least two sets");
        let Scratch { found, unseen, places, new: own } = &mut self.scratch;
        find(older, digests, found);
        if found.count_ones() == 0 {
            return present.insert_each(digests, new);
        }
        if self.refreshes {
            present.insert_each(digests, own)?;
            let words = new.reset(digests.len()).iter_mut().zip(own.words()).zip(found.words());
            words.for_each(|((word, own), found)| *word = own & !found);
            return Ok(());
        }
        places.clear();
        places.extend(found.zeros());
        unseen.clear();
        unseen.extend(places.iter().map(|&place| digests[place]));
        present.insert_each(unseen, own)?;
        new.reset(digests.len());
        own.ones().for_each(|i| new.set(places[i], true));
        Ok(())
    }

    /// Returns the number of digests in all sets. A refreshed digest counts once for each slice in
    /// which it occurred.
    pub fn len(&self) -> u64 {
        self.sets.iter().map(DigestSet::len).sum()
    }

    /// Counts the distinct digests in all sets. With `--refresh`, the method reads all digests.
    pub fn remembered(&self) -> u64 {
        if !self.refreshes {
            return self.len();
        }
        let newest_of = |(i, set): (usize, &DigestSet<D>)| {
            let newer = &self.sets[i + 1..];
            set.iter().filter(|&digest| !newer.iter().any(|set| set.contains(digest))).count()
                as u64
        };
        self.sets.iter().enumerate().map(newest_of).sum()
    }

    /// Returns the memory of all sets in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.sets.iter().map(DigestSet::memory_bytes).sum()
    }
}

/// Sets bit `i` of `found` if at least one set holds digest `i`.
fn find<D: Width>(sets: &[DigestSet<D>], digests: &[D], found: &mut Answers) {
    found.reset(digests.len());
    // Empty sets have no memory to prefetch.
    let sets: Vec<_> = sets.iter().rev().filter(|set| !set.is_empty()).collect();
    if sets.is_empty() {
        return;
    }
    for (group, digests) in digests.chunks(PREFETCH_DISTANCE).enumerate() {
        for &digest in digests {
            sets.iter().for_each(|set| set.prefetch(digest));
        }
        for (i, &digest) in digests.iter().enumerate() {
            let i = group * PREFETCH_DISTANCE + i;
            let is_found = sets.iter().any(|set| set.contains(digest));
            found.set(i, is_found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_remembers_what_a_slow_model_does(
            slices in 1_u32..6,
            refreshes: bool,
            batches in prop::collection::vec((0_u64..4, prop::collection::vec(0_u64..40, 0..200)), 0..30),
        ) {
            let mut ring = Ring::new(slices, refreshes, u64::MAX);
            let mut model = HashMap::new();
            let (mut now, mut new) = (0, Answers::new());
            for (passed, digests) in batches {
                now += passed;
                ring.advance(passed);
                ring.insert_each(&digests, &mut new).unwrap();
                let is_live = |slice: &u64| now - slice <= u64::from(slices);
                for (i, digest) in digests.iter().enumerate() {
                    let is_new = !model.get(digest).is_some_and(is_live);
                    prop_assert_eq!(new.get(i), is_new);
                    if is_new || refreshes {
                        model.insert(*digest, now);
                    }
                }
                let remembered = model.values().filter(|slice| is_live(slice)).count() as u64;
                prop_assert_eq!(ring.remembered(), remembered);
                prop_assert!(ring.len() >= remembered);
            }
        }
    }

    #[test]
    fn the_limit_is_that_of_all_sets_together() {
        let max_bytes = 100 << 10;
        let mut ring = Ring::<u64>::new(4, false, max_bytes);
        let mut new = Answers::new();
        let mut next = 1_u64;
        for round in 0..40 {
            let digests: Vec<_> =
                (next..next + 1000).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            next += 1000;
            match ring.insert_each(&digests, &mut new) {
                Ok(()) => assert_eq!(new.count_ones(), 1000),
                Err(_) => assert!(ring.len() > 5000, "{round}: {}", ring.len()),
            }
            assert!(ring.memory_bytes() <= max_bytes);
            ring.advance(u64::from(round % 3 == 2));
        }
        ring.advance(u64::MAX);
        assert_eq!((ring.len(), ring.memory_bytes()), (0, 0));
    }
}
