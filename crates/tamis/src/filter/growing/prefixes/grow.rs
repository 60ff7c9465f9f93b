//! Inserts into a table in owned pages, whose pages split as the table grows.

use crate::arch::level::run_wide;
use crate::arch::memory::{allocation_bytes, global_allocation_bytes};
use crate::batch::answers::set_answer;
use crate::bits::OutOfMemory;
use crate::filter::growing::prefixes::growth::Growth;
use crate::filter::growing::prefixes::insert::{self, Inserted};
use crate::filter::growing::prefixes::page::{self, Form, Place, Run};
use crate::filter::growing::prefixes::pages::{OwnedPage, OwnedPages};
use crate::filter::growing::prefixes::table::{BATCH, Counts, Found, NOTHING_FOUND, Table};
use crate::filter::growing::prefixes::write::{self, WriteError};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The reason why an item cannot be inserted. An insert that fails leaves the filter unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowError {
    /// The prefixes of new items need more bits than a hash has.
    Full,
    /// The item's page has more entries than uniform hashes can cause. Pages other than the crowded
    /// page still accept items.
    Crowded,
    /// The memory for the next page cannot be allocated.
    Memory(OutOfMemory),
}

impl From<WriteError> for GrowError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Crowded => GrowError::Crowded,
            WriteError::Memory(error) => GrowError::Memory(error),
        }
    }
}

impl From<OutOfMemory> for GrowError {
    fn from(error: OutOfMemory) -> Self {
        GrowError::Memory(error)
    }
}

impl Table {
    /// Creates an empty table.
    pub(crate) fn new(growth: Growth) -> Result<Self, OutOfMemory> {
        let mut first = write::reserved(write::capacity_for(page::EMPTY_WORDS))?;
        first.resize(write::capacity_for(page::EMPTY_WORDS), 0);
        page::clear(&mut first);
        let len_words = first.len();
        let mut unsplit = write::reserved(1)?;
        unsplit.push(OwnedPage::new(first.into_boxed_slice()));
        let pages = OwnedPages { unsplit, split: Vec::new(), len_words };
        Ok(Self::with_pages(growth, 0, false, pages, Counts::default()))
    }

    /// Returns the memory of all allocations, including unused words, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let pages = &self.pages;
        let directory =
            (pages.unsplit.capacity() + pages.split.capacity()) * size_of::<OwnedPage>();
        (size_of::<Self>() + directory + pages.len_words * 8) as u64
    }

    /// Returns the heap memory of the table, including the overhead of the allocator, in bytes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let pages = &self.pages;
        let directory = [pages.unsplit.capacity(), pages.split.capacity()]
            .map(|len| allocation_bytes(len * size_of::<OwnedPage>()));
        // A page uses all words of its allocation. The allocator of glibc adds a header to each
        // allocation.
        let header_bytes = if global_allocation_bytes(0).is_some() { 0 } else { 8 };
        let headers = (pages.unsplit.len() + pages.split.len()) * header_bytes;
        directory.iter().sum::<u64>() + (pages.len_words * 8 + headers) as u64
    }

    /// Inserts a hash. Returns true if no stored prefix covered the hash before the insert.
    ///
    /// # Errors
    ///
    /// [`GrowError`] if the table cannot grow. On error, the answers of the table are unchanged.
    pub(crate) fn insert(&mut self, hash: u64) -> Result<bool, GrowError> {
        run_wide(
            #[inline(always)]
            || self.insert_here(hash),
        )
    }

    #[inline(always)]
    pub(super) fn insert_here(&mut self, hash: u64) -> Result<bool, GrowError> {
        let mut is_split_done = false;
        let (is_split, number, place, run) = loop {
            let Found { page, block, is_split, number, rest } = self.find(hash);
            let form = self.form(is_split);
            let place = Place::of(rest, form);
            let run = page::run(page, block, self.select, place.quotient);
            if page::run_covers(page, form, &run, place.entry) {
                return Ok(false);
            }
            // Splits pages before inserting the item, so that a failed split leaves the table
            // unchanged.
            if is_split_done || self.counts.entries < self.next_split {
                break (is_split, number, place, run);
            }
            self.split_next()?;
            is_split_done = true;
        };
        self.insert_into(is_split, number, place.quotient, &run, place.entry)?;
        let form = &self.forms[usize::from(is_split)];
        let depth = self.depth + u32::from(is_split);
        // The addition saturates, because words from other sources may contain any number of items.
        self.counts.items = self.counts.items.saturating_add(1);
        self.counts.entries += 1;
        // The addition saturates, because entries in words from other sources may cover nearly all
        // 2⁶⁴ hashes.
        let covered = 1 << (64 - depth - page::QUOTIENT_BITS - (form.entry_bits - 1));
        self.counts.covered = self.counts.covered.saturating_add(covered);
        Ok(true)
    }

    /// Inserts an entry into its run. The caller updates the counters of the table.
    #[inline(always)]
    pub(super) fn insert_into(
        &mut self,
        is_split: bool,
        number: usize,
        quotient: usize,
        run: &Run,
        entry: u64,
    ) -> Result<(), GrowError> {
        let form = &self.forms[usize::from(is_split)];
        let page = self.pages.page_mut(is_split, number);
        let mut grown = 0;
        loop {
            match insert::insert(page.words_mut(), form, self.select, quotient, run, entry) {
                Inserted::InPlace => return Ok(()),
                Inserted::Moved => break,
                Inserted::NoRoom => grown = write::grow(page.words_mut())?,
            }
        }
        page.move_head(quotient / page::BLOCK_QUOTIENTS);
        self.pages.len_words += grown;
        Ok(())
    }

    /// Inserts many hashes in order. Bit `i` of the mask is set if hash `i` was new.
    ///
    /// # Errors
    ///
    /// Returns the number of inserted hashes and the error of the next hash. The mask contains the
    /// answers of the inserted hashes.
    pub(crate) fn insert_each(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), (usize, GrowError)> {
        run_wide(
            #[inline(always)]
            || self.insert_each_here(hashes, answers),
        )
    }

    #[inline(always)]
    pub(super) fn insert_each_here(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), (usize, GrowError)> {
        answers.fill(0);
        for (batch, hashes) in hashes.chunks(BATCH).enumerate() {
            if self.is_large() {
                let mut found = [NOTHING_FOUND; BATCH];
                self.prefetch_each(hashes, &mut found[..hashes.len()]);
            }
            for (i, &hash) in hashes.iter().enumerate() {
                let at = batch * BATCH + i;
                let is_new = self.insert_here(hash).map_err(|error| (at, error))?;
                set_answer(answers, at, is_new);
            }
        }
        Ok(())
    }

    /// Splits the last unsplit page.
    #[cold]
    #[inline(never)]
    pub(super) fn split_next(&mut self) -> Result<(), GrowError> {
        if self.depth >= self.growth.max_depth() {
            return Err(GrowError::Full);
        }
        let pages = &mut self.pages;
        let wanted = size_of::<OwnedPage>() * 2 * (pages.split.len() + 2);
        pages.split.try_reserve(2).map_err(|_| OutOfMemory { bytes: wanted as u64 })?;
        let parent = pages.unsplit.last().expect("a depth has an unsplit page").words();
        let [first, second] = write::split(parent, &self.forms[0], &self.forms[1])?;
        // A split copies an entry without a remainder into both halves, so the halves may have more
        // entries than the parent page.
        let entries = |page: &[u64]| page::count_entries(page, self.select);
        self.counts.entries += entries(&first) + entries(&second) - entries(parent);
        pages.len_words += first.len() + second.len();
        pages.len_words -= parent.len();
        pages.unsplit.pop();
        // Split pages are numbered in the opposite direction of unsplit pages. If `flip` is zero,
        // split pages are numbered by the inverted address, so the second half gets the lower
        // number.
        let [first, second] = if self.flip == 0 { [second, first] } else { [first, second] };
        pages.split.push(OwnedPage::new(first));
        pages.split.push(OwnedPage::new(second));
        if pages.unsplit.is_empty() {
            pages.unsplit = std::mem::take(&mut pages.split);
            self.depth += 1;
            self.flip = !self.flip;
            self.forms = [self.forms[1], Form::of(self.growth.remainder_bits(self.depth + 1))];
        }
        self.next_split = self.due_at();
        Ok(())
    }
}
