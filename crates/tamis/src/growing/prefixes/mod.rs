//! A filter that grows without reading its items again, and keeps its false positive rate at any
//! size.
//!
//! The filter is a set of **prefixes** of hashes. An item is stored as the first p bits of its
//! 64-bit hash. A lookup returns true for every hash with this prefix. So the rate is exactly the
//! sum of 2⁻ᵖ over all prefixes.
//!
//! ```text
//! hash | address: depth bits | block: 4 | quotient: 5 | remainder: r bits | not kept
//!        picks the page        picks a run of entries   is the entry
//! ```
//!
//! When the filter grows, a page splits into two. The first bit of each remainder moves into the
//! address, so no prefix changes. New entries always have r bits of remainder. After each doubling
//! of the filter the address is longer, so the prefixes of new entries are also longer. Each
//! doubling therefore adds about 2⁻ʳ to the rate.
//!
//! For the first few thousand items and beyond 500 million items, r is slightly larger. This keeps
//! the sum over all doublings below the planned rate (`growth.rs`). It costs almost no memory,
//! because most items are from the last few doublings. In contrast, a lookup in a chain of growing
//! filters must read each filter.
//!
//! Pages split one after the other, from the last to the first, as in linear hashing. So the
//! directory has no gaps, and a lookup reads it once. The pages of the next depth are numbered in
//! the opposite direction. Therefore the directory of the present depth only shrinks at its end,
//! and the directory of the next depth only grows at its end:
//!
//! ```text
//! unsplit | 0 | 1 | ... | u−1 |          depth d, by the first d bits of the hash
//! split   | 0 | 1 | ... | 2(2ᵈ−u)−1 |    depth d+1, by the first d+1 bits, inverted
//! ```
//!
//! The table depends only on the sequence of hashes. The same input gives the same bytes.
//!
//! Sources: Pagh, Segev, Wieder, "How to approximate a set without knowing its size in advance"
//! (2013); Dayan, Bercea, Reviriego, Pagh, "InfiniFilter: expanding filters to infinity and beyond"
//! (2023); Litwin, "Linear hashing" (1980).

mod check;
mod growth;
mod insert;
mod merge;
mod page;
mod pages;
mod shift;
mod words;
mod write;

#[cfg(test)]
mod tests;

use std::hint::select_unpredictable;

use crate::answers::set_answer;
use crate::arch::run_wide;
use crate::arch::select::Select;
use crate::bits::OutOfMemory;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
pub(crate) use growth::Growth;
use insert::Inserted;
use page::{Form, Place, Run};
use pages::OwnedPage;
pub(crate) use pages::{OwnedPages, Pages};
pub(crate) use words::{FlatPages, WordsError};
use write::WriteError;

/// The prefixes, in owned pages or in borrowed words.
#[derive(Clone, Debug)]
pub(crate) struct Table<P = OwnedPages> {
    growth: Growth,
    select: Select,
    /// The depth of the unsplit pages. The depth of split pages is higher by one.
    depth: u32,
    /// All ones if the unsplit pages are numbered by the inverted address.
    flip: u64,
    /// The forms of unsplit pages and of split pages.
    forms: [Form; 2],
    pages: P,
    counts: Counts,
    /// The number of entries at which the next page splits.
    next_split: u64,
}

/// The counters of a table's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of items that were new when they were inserted.
    pub items: u64,
    /// The number of stored entries. It is at least the number of items. It is higher if an entry
    /// covers several pages.
    pub entries: u64,
    /// The number of hashes, out of 2⁶⁴, that an entry covers.
    pub covered: u64,
}

/// Why an item cannot be inserted. The filter is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowError {
    /// The prefixes need more bits than a hash has.
    Full,
    /// The item's page has more entries than uniform hashes can cause. Other pages still accept
    /// items.
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

/// The position at which a lookup searches for an item.
#[derive(Clone, Copy)]
struct Found<'a> {
    page: &'a [u64],
    /// The words of the item's block: first word and end.
    block: (usize, usize),
    /// 1 if the page is split, and so has the second form. Otherwise 0.
    is_split: bool,
    number: usize,
    /// The hash without its address bits.
    rest: u64,
}

const NOTHING_FOUND: Found<'_> =
    Found { page: &[], block: (0, 0), is_split: false, number: 0, rest: 0 };

/// The number of items that are prefetched before the first of them is looked up.
const BATCH: usize = 32;

/// Tables with fewer pages fit in the L2 cache. For them, prefetches for inserts cost more time
/// than they save.
const PREFETCH_FROM_DEPTH: u32 = 8;

/// The same limit for prefetches of the directories alone.
const PREFETCH_DIRECTORY_FROM_DEPTH: u32 = 14;

impl<P: Pages> Table<P> {
    fn with_pages(growth: Growth, depth: u32, is_flipped: bool, pages: P, counts: Counts) -> Self {
        let form = |depth| Form::of(growth.remainder_bits(depth));
        let mut table = Self {
            growth,
            select: Select::new(),
            depth,
            flip: if is_flipped { u64::MAX } else { 0 },
            forms: [form(depth), form(depth + 1)],
            pages,
            counts,
            next_split: 0,
        };
        table.next_split = table.due_at();
        table
    }

    fn due_at(&self) -> u64 {
        let split = (1 << self.depth) - self.pages.len_unsplit() as u64;
        self.growth.next_split(self.depth, split).unwrap_or(self.growth.max_entries())
    }

    #[inline(always)]
    fn find(&self, hash: u64) -> Found<'_> {
        let (is_split, number) = self.place(hash);
        let rest = hash << u32::from(is_split) << self.depth;
        let page = self.pages.page(is_split, number);
        let block = page::bounds(page.head, page::block_of(rest));
        Found { page: page.words, block, is_split, number, rest }
    }

    /// Returns the directory of a hash's page, and the page's number in it.
    #[inline(always)]
    fn place(&self, hash: u64) -> (bool, usize) {
        let unsplit = self.unsplit_number(hash);
        let is_split = unsplit >= self.pages.len_unsplit();
        // Not a branch: while pages split, the CPU cannot predict the result.
        (is_split, select_unpredictable(is_split, self.split_number(hash), unsplit))
    }

    #[inline(always)]
    fn unsplit_number(&self, hash: u64) -> usize {
        ((hash ^ self.flip) >> 1 >> (63 - self.depth)) as usize
    }

    #[inline(always)]
    fn split_number(&self, hash: u64) -> usize {
        (!(hash ^ self.flip) >> (63 - self.depth)) as usize
    }

    #[inline(always)]
    fn form(&self, is_split: bool) -> &Form {
        &self.forms[usize::from(is_split)]
    }

    /// Tests whether a prefix covers this hash.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.covers(&self.find(hash))
    }

    #[inline(always)]
    fn covers(&self, found: &Found<'_>) -> bool {
        let form = self.form(found.is_split);
        page::contains(found.page, found.block, form, self.select, Place::of(found.rest, form))
    }

    /// Prefetches the directory entry of a hash. A lookup reads this entry first.
    #[inline]
    fn prefetch(&self, hash: u64) {
        let (is_split, number) = self.place(hash);
        self.pages.prefetch_entry(is_split, number);
    }

    /// Prefetches everything that a batch reads. Each step runs for all hashes before the next step
    /// starts.
    #[inline(always)]
    fn prefetch_each<'a>(&'a self, hashes: &[u64], found: &mut [Found<'a>]) {
        if self.depth >= PREFETCH_DIRECTORY_FROM_DEPTH {
            hashes.iter().for_each(|&hash| self.prefetch(hash));
        }
        if !P::HEAD_APART {
            for &hash in hashes {
                let (is_split, number) = self.place(hash);
                page::prefetch_head(self.pages.page(is_split, number).words);
            }
        }
        for (found, &hash) in found.iter_mut().zip(hashes) {
            *found = self.find(hash);
            page::prefetch_block(found.page, found.block);
        }
    }

    fn is_large(&self) -> bool {
        self.depth >= PREFETCH_FROM_DEPTH
    }

    /// Tests a batch of hashes and writes the answers to a bit mask.
    pub(crate) fn contains_each(&self, hashes: &[u64], answers: &mut [u64]) {
        run_wide(
            #[inline(always)]
            || self.contains_each_here(hashes, answers),
        );
    }

    #[inline(always)]
    fn contains_each_here(&self, hashes: &[u64], answers: &mut [u64]) {
        // This is used in small tables too. The steps of many items overlap, but each step of one
        // item waits for the previous one.
        let mut found = [NOTHING_FOUND; BATCH];
        for (word, hashes) in answers.iter_mut().zip(hashes.chunks(64)) {
            let mut mask = 0;
            for (batch, hashes) in hashes.chunks(BATCH).enumerate() {
                let found = &mut found[..hashes.len()];
                self.prefetch_each(hashes, found);
                for (i, found) in found.iter().enumerate() {
                    mask |= u64::from(self.covers(found)) << (batch * BATCH + i);
                }
            }
            *word = mask;
        }
    }

    /// Returns the counters of the table's entries.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns true if the next new hash is refused, because the prefixes use all bits of a hash.
    /// Constant time.
    pub(crate) fn is_full(&self) -> bool {
        self.depth >= self.growth.max_depth() && self.counts.entries >= self.next_split
    }

    /// Returns the probability that an entry covers a hash that was not inserted.
    pub(crate) fn rate(&self) -> f64 {
        self.counts.covered as f64 * (-64_f64).exp2()
    }

    fn len_pages(&self) -> u64 {
        (2 << self.depth) - self.pages.len_unsplit() as u64
    }

    /// Calls `each` with each page, its depth, and its address. The address is in the lowest bits
    /// of a word.
    fn each_page<E>(
        &self,
        mut each: impl FnMut(&[u64], u32, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let unsplit = self.pages.len_unsplit() as u64;
        for number in 0..unsplit {
            let address = number ^ self.flip & ((1 << self.depth) - 1);
            each(self.pages.page(false, number as usize).words, self.depth, address)?;
        }
        for number in 0..self.len_pages() - unsplit {
            let address = number ^ !self.flip & ((2 << self.depth) - 1);
            each(self.pages.page(true, number as usize).words, self.depth + 1, address)?;
        }
        Ok(())
    }

    /// Calls `each` with each prefix and its length in bits. The prefix is in the highest bits of a
    /// word.
    fn each_prefix<E>(&self, mut each: impl FnMut(u64, u32) -> Result<(), E>) -> Result<(), E> {
        self.each_page(|page, depth, address| {
            let form = &self.forms[usize::from(depth > self.depth)];
            let mut result = Ok(());
            // The pages of a table are valid.
            let _ = check::each_entry(page, form, |quotient, entry| {
                if result.is_ok() {
                    let (bits, len) = prefix(form, depth, address, quotient, entry);
                    result = each(bits, len);
                }
            });
            result
        })
    }
}

/// Returns the prefix of an entry in the highest bits of a word, and its length.
fn prefix(form: &Form, depth: u32, address: u64, quotient: usize, entry: u64) -> (u64, u32) {
    let known = form.entry_bits - 1 - entry.trailing_zeros();
    let bits = address << page::QUOTIENT_BITS | quotient as u64;
    let len = depth + page::QUOTIENT_BITS + known;
    // Prefixes fit in a hash. A prefix is never empty, because it contains the bits of the
    // quotient.
    (((bits << 1) << known | entry >> entry.trailing_zeros()) >> 1 << (64 - len), len)
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
            .map(|len| crate::allocation_bytes(len * size_of::<OwnedPage>()));
        // A page uses all words of its allocation. The allocator adds a header.
        let headers = (pages.unsplit.len() + pages.split.len()) * 8;
        directory.iter().sum::<u64>() + (pages.len_words * 8 + headers) as u64
    }

    /// Inserts a hash. Returns true if no prefix covered it.
    ///
    /// # Errors
    ///
    /// [`GrowError`]. The answers of the table are unchanged then.
    pub(crate) fn insert(&mut self, hash: u64) -> Result<bool, GrowError> {
        run_wide(
            #[inline(always)]
            || self.insert_here(hash),
        )
    }

    #[inline(always)]
    fn insert_here(&mut self, hash: u64) -> Result<bool, GrowError> {
        let mut is_split_done = false;
        let (is_split, number, place, run) = loop {
            let Found { page, block, is_split, number, rest } = self.find(hash);
            let form = self.form(is_split);
            let place = Place::of(rest, form);
            let run = page::run(page, block, self.select, place.quotient);
            if page::run_covers(page, form, &run, place.entry) {
                return Ok(false);
            }
            // Splits before the item is inserted, so that a failed split leaves everything
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
        // Words from other sources may contain any number of items.
        self.counts.items = self.counts.items.saturating_add(1);
        self.counts.entries += 1;
        self.counts.covered += 1 << (64 - depth - page::QUOTIENT_BITS - (form.entry_bits - 1));
        Ok(true)
    }

    /// Inserts an entry into its run. The caller updates the counters.
    #[inline(always)]
    fn insert_into(
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
    /// Returns the number of inserted hashes and the error of the next hash. The mask holds the
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
    fn insert_each_here(
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
    fn split_next(&mut self) -> Result<(), GrowError> {
        if self.depth >= self.growth.max_depth() {
            return Err(GrowError::Full);
        }
        let pages = &mut self.pages;
        let wanted = size_of::<OwnedPage>() * 2 * (pages.split.len() + 2);
        pages.split.try_reserve(2).map_err(|_| OutOfMemory { bytes: wanted as u64 })?;
        let parent = pages.unsplit.last().expect("an unsplit page, or the depth had grown").words();
        let [first, second] = write::split(parent, &self.forms[0], &self.forms[1])?;
        // These entries are in both halves.
        let entries = |page: &[u64]| page::count_entries(page, self.select);
        self.counts.entries += entries(&first) + entries(&second) - entries(parent);
        pages.len_words += first.len() + second.len();
        pages.len_words -= parent.len();
        pages.unsplit.pop();
        // The pages are numbered by the inverted address. So the last page gets the first numbers.
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
