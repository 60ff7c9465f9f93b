//! A filter that grows without its items and keeps its false positive rate for ever.
//!
//! The filter is a set of **prefixes** of hashes. An item comes in as its 64-bit hash cut to p bits, and
//! is found again by any hash that starts so: the rate is the sum of 2⁻ᵖ over all prefixes, exactly.
//!
//! ```text
//! hash | address: depth bits | block: 4 | quotient: 5 | remainder: r bits | not kept
//!        picks the page        picks a run of entries   is the entry
//! ```
//!
//! Growing moves the first bit of each remainder into the address: the page splits in two, and no
//! prefix changes. Fresh entries are always r bits, so that they lengthen by a bit whenever the filter
//! doubles, and each doubling adds about 2⁻ʳ to the rate, whatever came before. A little more r for the
//! first few thousand items, and later beyond 500 million, keeps the sum over all doublings below the
//! rate asked for (`growth.rs`); since most items live in the last few doublings, this costs nearly
//! nothing, where a chain of ever larger filters pays for each of them at every question.
//!
//! Pages split one after the other from the last to the first, as in linear hashing, so that the
//! directory needs no gaps and no second look; the pages of the next depth are numbered the other way
//! round, so that the directory of the present depth only shrinks at its end and that of the next only
//! grows there:
//!
//! ```text
//! unsplit | 0 | 1 | ... | u−1 |          depth d, by the first d bits of the hash
//! split   | 0 | 1 | ... | 2(2ᵈ−u)−1 |    depth d+1, by the first d+1 bits, inverted
//! ```
//!
//! All this is a function of the hashes in their order: same inputs, same bytes.
//!
//! Sources: Pagh, Segev, Wieder, "How to approximate a set without knowing its size in advance" (2013);
//! Dayan, Bercea, Reviriego, Pagh, "InfiniFilter: expanding filters to infinity and beyond" (2023);
//! Litwin, "Linear hashing" (1980).

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

/// The prefixes, over pages that are owned or lie in words elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Table<P = OwnedPages> {
    growth: Growth,
    select: Select,
    /// Of the unsplit pages; those split have one more.
    depth: u32,
    /// All ones if the unsplit pages are numbered by the inverted address.
    flip: u64,
    /// Of unsplit pages, and of split ones.
    forms: [Form; 2],
    pages: P,
    counts: Counts,
    /// A page splits before an entry comes to so many.
    next_split: u64,
}

/// What a table knows of its entries without reading them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Items that were new when they came.
    pub items: u64,
    /// Entries stored: fewer than items never, more when an entry covers several pages.
    pub entries: u64,
    /// How many of the 2⁶⁴ hashes some entry covers.
    pub covered: u64,
}

/// Why an item cannot be inserted. The filter is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowError {
    /// The prefixes would not fit in a hash.
    Full,
    /// The item's page has so many entries that its hashes cannot be uniform. Other pages take items.
    Crowded,
    /// There is no memory for the next page.
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

/// Where an item is looked for.
#[derive(Clone, Copy)]
struct Found<'a> {
    page: &'a [u64],
    /// The words of its block: start and end.
    block: (usize, usize),
    /// One if the page is split, and so of the second form.
    is_split: bool,
    number: usize,
    /// The hash past the address.
    rest: u64,
}

const NOTHING_FOUND: Found<'_> =
    Found { page: &[], block: (0, 0), is_split: false, number: 0, rest: 0 };

/// How many items have their memory asked for before the first of them is looked for.
const BATCH: usize = 32;

/// Tables of fewer pages lie in the second cache, where asking ahead of inserts costs more than it saves.
const PREFETCH_FROM_DEPTH: u32 = 8;

/// As much of the directories alone.
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
        // While pages split, which it is cannot be predicted.
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

    /// Tells whether some prefix covers this hash.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.covers(&self.find(hash))
    }

    #[inline(always)]
    fn covers(&self, found: &Found<'_>) -> bool {
        let form = self.form(found.is_split);
        page::contains(found.page, found.block, form, self.select, Place::of(found.rest, form))
    }

    /// Asks for the directory's entry of a hash, the first that a question reads.
    #[inline]
    fn prefetch(&self, hash: u64) {
        let (is_split, number) = self.place(hash);
        self.pages.prefetch_entry(is_split, number);
    }

    /// Asks for all that a batch will read: a step for all hashes before the next for any.
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

    /// Tells so of many hashes: hash `i` is bit `i % 64` of word `i / 64`.
    pub(crate) fn contains_each(&self, hashes: &[u64], answers: &mut [u64]) {
        run_wide(
            #[inline(always)]
            || self.contains_each_here(hashes, answers),
        );
    }

    #[inline(always)]
    fn contains_each_here(&self, hashes: &[u64], answers: &mut [u64]) {
        // In small tables too: steps of many items overlap, where those of one wait for each other.
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

    /// Returns what the table knows of its entries.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns whether the next new hash is refused, since the prefixes use all bits of a hash. Constant time.
    pub(crate) fn is_full(&self) -> bool {
        self.depth >= self.growth.max_depth() && self.counts.entries >= self.next_split
    }

    /// Returns the chance that a hash which was not inserted is covered.
    pub(crate) fn rate(&self) -> f64 {
        self.counts.covered as f64 * (-64_f64).exp2()
    }

    fn len_pages(&self) -> u64 {
        (2 << self.depth) - self.pages.len_unsplit() as u64
    }

    /// Calls back with each page, its depth, and its address in the lowest bits of a word.
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

    /// Calls back with each prefix: its bits in the highest of a word, and their number.
    fn each_prefix<E>(&self, mut each: impl FnMut(u64, u32) -> Result<(), E>) -> Result<(), E> {
        self.each_page(|page, depth, address| {
            let form = &self.forms[usize::from(depth > self.depth)];
            let mut result = Ok(());
            // Pages of a table are sound.
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

/// Returns an entry's prefix, in the highest bits of a word, and its length.
fn prefix(form: &Form, depth: u32, address: u64, quotient: usize, entry: u64) -> (u64, u32) {
    let known = form.entry_bits - 1 - entry.trailing_zeros();
    let bits = address << page::QUOTIENT_BITS | quotient as u64;
    let len = depth + page::QUOTIENT_BITS + known;
    // Prefixes fit in a hash; a length of zero is never reached, since quotients have bits.
    (((bits << 1) << known | entry >> entry.trailing_zeros()) >> 1 << (64 - len), len)
}

impl Table {
    /// Makes an empty table.
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

    /// Returns the memory of all allocations, with the spare words in them.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let pages = &self.pages;
        let directory =
            (pages.unsplit.capacity() + pages.split.capacity()) * size_of::<OwnedPage>();
        (size_of::<Self>() + directory + pages.len_words * 8) as u64
    }

    /// Returns the memory behind the table, with what the allocator adds.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let pages = &self.pages;
        let directory = [pages.unsplit.capacity(), pages.split.capacity()]
            .map(|len| crate::allocation_bytes(len * size_of::<OwnedPage>()));
        // A page has room for all words that its allocation has; the allocator adds a header.
        let headers = (pages.unsplit.len() + pages.split.len()) * 8;
        directory.iter().sum::<u64>() + (pages.len_words * 8 + headers) as u64
    }

    /// Inserts a hash; true if no prefix covered it.
    ///
    /// # Errors
    ///
    /// [`GrowError`]; the answers of the table are as they were.
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
            // Before the item comes: a split that fails leaves everything as it was.
            if is_split_done || self.counts.entries < self.next_split {
                break (is_split, number, place, run);
            }
            self.split_next()?;
            is_split_done = true;
        };
        self.insert_into(is_split, number, place.quotient, &run, place.entry)?;
        let form = &self.forms[usize::from(is_split)];
        let depth = self.depth + u32::from(is_split);
        // Words from elsewhere may claim any number of items.
        self.counts.items = self.counts.items.saturating_add(1);
        self.counts.entries += 1;
        self.counts.covered += 1 << (64 - depth - page::QUOTIENT_BITS - (form.entry_bits - 1));
        Ok(true)
    }

    /// Inserts an entry into its run, for the caller to count.
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

    /// Inserts many hashes in order; bit `i` tells whether hash `i` was new.
    ///
    /// # Errors
    ///
    /// How many hashes are in, and why the next is not; their answers are written.
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

    /// Splits the last of the unsplit pages.
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
        // Entries that are in both halves.
        let entries = |page: &[u64]| page::count_entries(page, self.select);
        self.counts.entries += entries(&first) + entries(&second) - entries(parent);
        pages.len_words += first.len() + second.len();
        pages.len_words -= parent.len();
        pages.unsplit.pop();
        // Numbered by the inverted address: the last page is numbered first.
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
