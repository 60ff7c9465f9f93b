//! Counts the items first, then builds a filter of the required size.

use std::path::PathBuf;

use tamis::{Answers, AnyFilter, Hasher, InsertError, Kind, TryInsert as _};

use crate::arguments::numbers::HumanCount;
use crate::commands::build::{Args, BUCKET_OF_COPIES};
use crate::exit::Failure;
use crate::records::items::{ItemEncoding, RecordCount};
use crate::records::repeats::{RepeatPolicy, full};
use crate::records::secret_set::SecretSet;

impl Args {
    /// Returns the maximum number of occurrences of an item that the filter counts, including the
    /// first occurrence.
    fn most_copies(&self) -> u64 {
        match (self.kind(), self.counter_bits.as_deref()) {
            (Some(Kind::Counting), Some("8")) => 255,
            (Some(Kind::Counting), Some("16")) => 65_535,
            (Some(Kind::Counting), _) => 15,
            _ => 2 * u64::from(BUCKET_OF_COPIES),
        }
    }

    fn full(&self, kind: Kind, error: &InsertError) -> Failure {
        let repeats = if self.repeats.copies { RepeatPolicy::Each } else { RepeatPolicy::Once };
        full(&self.output, kind, error, repeats.advice(kind))
    }

    /// Returns how many of `max_bytes` the sets of hashes may use. The filter is built from the
    /// sets, and must fit in the bytes that the sets do not use.
    fn bytes_beside_filter(&self, max_bytes: u64) -> Result<u64, Failure> {
        if max_bytes == u64::MAX {
            return Ok(max_bytes);
        }
        // Plan for the number of items whose hashes alone fill the memory. A hash takes eight
        // bytes, and the set uses three quarters of its slots.
        let items = max_bytes / 32 * 3;
        let filter_bytes = self.plan(items, u64::MAX)?.bytes() as f64;
        Ok((max_bytes as f64 / (1.0 + filter_bytes / max_bytes as f64)) as u64)
    }

    /// Collects the distinct hashes of all items, then builds the filter from these hashes.
    pub(super) fn count_first(
        &self,
        paths: &[PathBuf],
        max_bytes: u64,
    ) -> Result<(AnyFilter, RecordCount), Failure> {
        let hasher = self.hasher()?;
        let counts = self.kind().is_some_and(Kind::can_remove)
            && self.repeats.of(self.kind())? == RepeatPolicy::Each;
        let sets_bytes = self.bytes_beside_filter(max_bytes)?;
        let distinct_bytes = if counts { sets_bytes / 3 * 2 } else { sets_bytes };
        let mut distinct = SecretSet::within(distinct_bytes)?;
        let mut answers = Answers::new();
        let mut repeats = RepeatedHashes::new(self.most_copies());
        let reader = self.items_from.reader(paths);
        let count = reader.each_batch(ItemEncoding::Hash(hasher), |batch| {
            let hashes = batch.hashes();
            distinct.insert_each(hashes, &mut answers).map_err(|_| {
                Failure::new(format!(
                    "counting over {} distinct items takes more memory than --memory allows: give \
                     their number with --items N",
                    HumanCount(distinct.len())
                ))
            })?;
            if counts {
                let repeats_bytes = sets_bytes - distinct_bytes;
                repeats.add(answers.zeros().map(|i| hashes[i]), repeats_bytes)?;
            }
            Ok(())
        })?;
        if self.kind().is_some_and(Kind::stores_copies) {
            return Ok((self.cuckoo(distinct, repeats.finish(), hasher, max_bytes)?, count));
        }
        let mut filter = self.empty(&self.plan(distinct.len(), max_bytes)?, hasher)?;
        let mut inserted = Ok(());
        let mut insert = |hashes: &[u64]| {
            if inserted.is_ok() {
                inserted = filter.try_insert_copy_hashes(hashes, answers.reset(hashes.len()));
            }
        };
        // The set releases its memory while `drain_each` removes the hashes.
        distinct.drain_each(&mut insert);
        insert(repeats.finish());
        inserted.map_err(|error| self.full(filter.plan().kind(), &error))?;
        Ok((filter, count))
    }

    /// Builds the smallest cuckoo filter that holds the given items and copies.
    ///
    /// Copies of an item share the two buckets of the item, so a table with many copies is full
    /// earlier than planned. The function raises the planned capacity until all items fit in the
    /// filter. The limit of the capacity is four times the number of items and copies.
    fn cuckoo(
        &self,
        distinct: SecretSet,
        repeats: &[u64],
        hasher: Hasher,
        max_bytes: u64,
    ) -> Result<AnyFilter, Failure> {
        // The hashes are sorted, because the insertion order changes the bytes of the filter, and
        // the order of the set differs from run to run.
        let mut hashes = Vec::with_capacity(distinct.len() as usize);
        distinct.drain_each(|some| hashes.extend_from_slice(some));
        hashes.sort_unstable();
        let mut answers = Answers::new();
        let mut places = (hashes.len() + repeats.len()) as u64;
        let most_places = 4 * places;
        loop {
            let mut filter = self.empty(&self.plan(places, max_bytes)?, hasher)?;
            let mut insert =
                |hashes: &[u64]| filter.try_insert_copy_hashes(hashes, answers.reset(hashes.len()));
            match insert(&hashes).and_then(|()| insert(repeats)) {
                Ok(()) => return Ok(filter),
                Err(_) if places < most_places => {
                    places = (places + places / 8 + 1).min(most_places);
                }
                Err(error) => return Err(self.full(Kind::Cuckoo, &error)),
            }
        }
    }
}

/// The hashes of items that occur again: each occurrence of an item after its first occurrence adds
/// one hash. `thin` removes the occurrences that exceed the largest count of the filter.
struct RepeatedHashes {
    hashes: Vec<u64>,
    most_copies: u64,
    // When the list reaches this length, `thin` removes copies beyond `most_copies`.
    thin_at: usize,
}

impl RepeatedHashes {
    fn new(most_copies: u64) -> Self {
        Self { hashes: Vec::new(), most_copies, thin_at: 1 << 16 }
    }

    fn add(&mut self, hashes: impl Iterator<Item = u64>, max_bytes: u64) -> Result<(), Failure> {
        self.hashes.extend(hashes);
        let needed_bytes = |hashes: &Vec<u64>| hashes.capacity() as u64 * 8;
        if self.hashes.len() < self.thin_at && needed_bytes(&self.hashes) <= max_bytes {
            return Ok(());
        }
        self.thin();
        self.thin_at = (2 * self.hashes.len()).max(1 << 16);
        self.hashes.shrink_to(self.thin_at);
        if self.hashes.len() as u64 * 8 > max_bytes {
            return Err(Failure::new(
                "counting repeated items takes more memory than --memory allows: give the number \
                 of items with --items N, or allow more memory",
            ));
        }
        Ok(())
    }

    /// Removes the copies of an item that exceed the largest count of the filter. The first copy of
    /// an item is not in the list, but counts as a copy.
    fn thin(&mut self) {
        self.hashes.sort_unstable();
        let (mut last, mut times) = (None, 0);
        self.hashes.retain(|&hash| {
            times = if last == Some(hash) { times + 1 } else { 1 };
            last = Some(hash);
            times < self.most_copies
        });
    }

    fn finish(&mut self) -> &[u64] {
        self.thin();
        &self.hashes
    }
}
