//! Finds the integers that occur more than once. The search starts with two sets, and changes to
//! two bitmaps when the sets become large.

use std::ops::RangeInclusive;

use tamis::{Answers, RepeatFinder};

use crate::commands::ints::memory::{Memory, THREADS_BYTES};
use crate::commands::ints::set::{IntSet, dense_bytes, window};
use crate::exit::Failure;

/// The set of all integers read so far, and the set of the integers that occurred more than once.
pub struct RepeatSearch {
    seen: IntSet,
    repeated: IntSet,
    /// Holds the integers of 32 bits after the change to bitmaps.
    finder: Option<RepeatFinder>,
    /// True if the search may change to bitmaps: the window is inside `u32`, and the memory limit
    /// allows two bitmaps.
    may_find: bool,
    bitmaps_bytes: u64,
    memory: Memory,
    threads: usize,
    check_at: u64,
    new: Answers,
    narrow: Vec<u32>,
    rest: Vec<u64>,
}

/// The default size in bytes of the integers that wait for a pass over the bitmaps. With the
/// default size, the whole command uses less than 1.05 GiB of memory.
const SCRATCH_BYTES: u64 = 24 << 20;

/// The maximum size in bytes of the waiting integers. A size above the maximum is not faster.
const MAX_SCRATCH_BYTES: u64 = 256 << 20;

/// The number of integers that move to the bitmaps in one call.
const FEED_ITEMS: usize = 1 << 16;

/// The number of new integers between two checks of the sets.
const CHECK_EVERY: u64 = 1 << 18;

impl RepeatSearch {
    /// Creates empty sets, as [`IntSet::new`] does.
    pub fn new(range: Option<&RangeInclusive<u64>>, memory: Memory, threads: usize) -> Self {
        let window = window(range);
        let bitmaps_bytes = dense_bytes(&window).saturating_mul(2);
        let is_narrow = *window.end() <= u64::from(u32::MAX);
        let may_find = is_narrow && memory.allows(bitmaps_bytes.saturating_add(SCRATCH_BYTES));
        let set = || {
            let set = IntSet::new(range, memory);
            if may_find { set.stay_compressed() } else { set }
        };
        Self {
            seen: set(),
            repeated: set(),
            finder: None,
            may_find,
            bitmaps_bytes,
            memory,
            threads,
            check_at: CHECK_EVERY,
            new: Answers::new(),
            narrow: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// Inserts `values`.
    ///
    /// # Errors
    ///
    /// Returns an error if the sets exceed the memory limit.
    pub fn feed(&mut self, values: &[u64]) -> Result<(), Failure> {
        self.rest.clear();
        let rest = match &mut self.finder {
            None => values,
            Some(finder) => {
                self.narrow.clear();
                for &value in values {
                    match u32::try_from(value) {
                        Ok(value) => self.narrow.push(value),
                        Err(_) => self.rest.push(value),
                    }
                }
                finder.feed(&self.narrow);
                &self.rest
            }
        };
        let memory = self.memory.less(self.finder_bytes() + THREADS_BYTES);
        self.seen.limit(memory.less(self.repeated.memory_bytes()));
        self.seen.insert_each(rest, &mut self.new)?;
        self.repeated.limit(memory.less(self.seen.memory_bytes()));
        let again: Vec<u64> = self.new.zeros().map(|at| rest[at]).collect();
        self.repeated.insert_each(&again, &mut self.new)?;
        if self.seen.len() >= self.check_at {
            self.check()?;
        }
        Ok(())
    }

    /// Counts the distinct integers, and the distinct integers that occur more than once.
    pub fn counts(self) -> (u64, u64) {
        let bitmaps = self.finder.map(RepeatFinder::finish);
        let in_bitmaps = bitmaps.map_or((0, 0), |it| (it.seen.len(), it.repeated.len()));
        (self.seen.len() + in_bitmaps.0, self.repeated.len() + in_bitmaps.1)
    }

    /// Calls `visit` with every repeated integer, ascending.
    ///
    /// # Errors
    ///
    /// Returns the errors of `visit`.
    pub fn into_sorted_repeats(
        self,
        mut visit: impl FnMut(u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        drop(self.seen);
        let bitmap = self.finder.map(|finder| finder.finish().repeated);
        // If there are bitmaps, the sets hold only integers above `u32::MAX`.
        bitmap.iter().flatten().try_for_each(&mut visit)?;
        self.repeated.into_sorted(visit)
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.check_at = self.seen.len() + (self.seen.len() / 4).max(CHECK_EVERY);
        if self.finder.is_none() && self.may_find && self.seen.is_crowded() {
            self.start_finder()?;
        }
        self.memory
            .check(self.finder_bytes() + self.seen.memory_bytes() + self.repeated.memory_bytes())
    }

    fn finder_bytes(&self) -> u64 {
        if self.finder.is_some() { self.bitmaps_bytes + SCRATCH_BYTES } else { 0 }
    }

    /// Moves the integers of the window to two bitmaps.
    fn start_finder(&mut self) -> Result<(), Failure> {
        let least_bytes = self.bitmaps_bytes + SCRATCH_BYTES;
        let spare_bytes = self.memory.bytes().map_or(0, |allowed| allowed - least_bytes);
        let scratch_bytes = (SCRATCH_BYTES + spare_bytes / 2).min(MAX_SCRATCH_BYTES);
        let finder = RepeatFinder::new().map_err(Failure::new)?;
        let mut finder = finder.with_threads(self.threads).with_scratch_bytes(scratch_bytes);
        // A repeated integer is in `seen` and in `repeated`, so the finder gets the integer twice
        // and counts a repeat.
        for set in [&mut self.seen, &mut self.repeated] {
            for value in set.take_window().iter() {
                self.narrow.push(value as u32);
                if self.narrow.len() >= FEED_ITEMS {
                    finder.feed(&self.narrow);
                    self.narrow.clear();
                }
            }
            finder.feed(&self.narrow);
            self.narrow.clear();
        }
        self.finder = Some(finder);
        Ok(())
    }
}
