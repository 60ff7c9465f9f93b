//! The table of prefixes, and its lookups.

use std::hint::select_unpredictable;

use crate::arch::level::run_wide;
use crate::arch::select::Select;
use crate::filter::growing::prefixes::check;
use crate::filter::growing::prefixes::growth::Growth;
use crate::filter::growing::prefixes::page::{self, Form, Place};
use crate::filter::growing::prefixes::pages::{OwnedPages, Pages};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The prefixes, in owned pages or in borrowed words.
#[derive(Clone, Debug)]
pub(crate) struct Table<P = OwnedPages> {
    pub(super) growth: Growth,
    pub(super) select: Select,
    /// The depth of the unsplit pages. The depth of split pages is one more than the depth of
    /// unsplit pages.
    pub(super) depth: u32,
    /// All ones if the unsplit pages are numbered by the inverted address, or zero if not.
    pub(super) flip: u64,
    /// The form of entries in unsplit pages, and the form of entries in split pages. A form
    /// contains the width of an entry and masks for comparisons.
    pub(super) forms: [Form; 2],
    pub(super) pages: P,
    pub(super) counts: Counts,
    /// The number of entries at which the next page splits.
    pub(super) next_split: u64,
}

/// The counters of a table's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of items that were new to the table when they were inserted.
    pub items: u64,
    /// The number of stored entries. The number of entries is higher than the number of items if a
    /// split has copied entries into both halves of a page.
    pub entries: u64,
    /// The number of hashes, out of 2⁶⁴, that the entries of the table cover.
    pub covered: u64,
}

/// The position at which a lookup searches for an item.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) page: &'a [u64],
    /// The range of words of the item's block: the first word and the end.
    pub(super) block: (usize, usize),
    /// True if the page is split. A split page uses the second form in `forms`.
    pub(super) is_split: bool,
    pub(super) number: usize,
    /// The hash without its address bits.
    pub(super) rest: u64,
}

pub(super) const NOTHING_FOUND: Found<'_> =
    Found { page: &[], block: (0, 0), is_split: false, number: 0, rest: 0 };

/// The number of items that are prefetched before the first lookup of these items.
pub(super) const BATCH: usize = 32;

/// The minimum depth for prefetches of inserts. Tables below `PREFETCH_FROM_DEPTH` fit in the L2
/// cache, where prefetches cost more time than they save.
const PREFETCH_FROM_DEPTH: u32 = 8;

/// The minimum depth at which a batch prefetches the directory entries before the pages.
const PREFETCH_DIRECTORY_FROM_DEPTH: u32 = 14;

impl<P: Pages> Table<P> {
    pub(super) fn with_pages(
        growth: Growth,
        depth: u32,
        is_flipped: bool,
        pages: P,
        counts: Counts,
    ) -> Self {
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

    pub(super) fn due_at(&self) -> u64 {
        let split = (1 << self.depth) - self.pages.len_unsplit() as u64;
        self.growth.next_split(self.depth, split).unwrap_or(self.growth.max_entries())
    }

    #[inline(always)]
    pub(super) fn find(&self, hash: u64) -> Found<'_> {
        let (is_split, number) = self.place(hash);
        let rest = hash << u32::from(is_split) << self.depth;
        let page = self.pages.page(is_split, number);
        let block = page::bounds(page.head, page::block_of(rest));
        Found { page: page.words, block, is_split, number, rest }
    }

    /// Returns true if the page of a hash is a split page, and the number of the page in the
    /// directory of split or unsplit pages.
    #[inline(always)]
    pub(super) fn place(&self, hash: u64) -> (bool, usize) {
        let unsplit = self.unsplit_number(hash);
        let is_split = unsplit >= self.pages.len_unsplit();
        // This function has no branch here, because the CPU cannot predict the result while pages
        // split.
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
    pub(super) fn form(&self, is_split: bool) -> &Form {
        &self.forms[usize::from(is_split)]
    }

    /// Tests whether a prefix covers this hash.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.covers(&self.find(hash))
    }

    #[inline(always)]
    pub(super) fn covers(&self, found: &Found<'_>) -> bool {
        let form = self.form(found.is_split);
        page::contains(found.page, found.block, form, self.select, Place::of(found.rest, form))
    }

    /// Prefetches the directory entry of a hash. A lookup reads the directory entry before the
    /// page.
    #[inline]
    fn prefetch(&self, hash: u64) {
        let (is_split, number) = self.place(hash);
        self.pages.prefetch_entry(is_split, number);
    }

    /// Prefetches all memory that a batch reads. Each prefetch step runs for all hashes before the
    /// next step starts.
    #[inline(always)]
    pub(super) fn prefetch_each<'a>(&'a self, hashes: &[u64], found: &mut [Found<'a>]) {
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

    pub(super) fn is_large(&self) -> bool {
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
        // Small tables also use this loop, because the CPU overlaps the steps of different items.
        // The steps of one item cannot overlap, because each step waits for the previous step.
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
    /// Takes constant time.
    pub(crate) fn is_full(&self) -> bool {
        self.depth >= self.growth.max_depth() && self.counts.entries >= self.next_split
    }

    /// Returns the probability that an entry covers a hash that was not inserted.
    pub(crate) fn rate(&self) -> f64 {
        self.counts.covered as f64 * (-64_f64).exp2()
    }

    pub(super) fn len_pages(&self) -> u64 {
        (2 << self.depth) - self.pages.len_unsplit() as u64
    }

    /// Calls `each` with each page, the depth of the page, and the address of the page. The address
    /// is in the lowest bits of a word.
    pub(super) fn each_page<E>(
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
    pub(super) fn each_prefix<E>(
        &self,
        mut each: impl FnMut(u64, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_page(|page, depth, address| {
            let form = &self.forms[usize::from(depth > self.depth)];
            let mut result = Ok(());
            // The pages of a table are valid, so the check returns no error.
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

/// Returns the prefix of an entry in the highest bits of a word, and the length of the prefix.
pub(super) fn prefix(
    form: &Form,
    depth: u32,
    address: u64,
    quotient: usize,
    entry: u64,
) -> (u64, u32) {
    let known = form.entry_bits - 1 - entry.trailing_zeros();
    let bits = address << page::QUOTIENT_BITS | quotient as u64;
    let len = depth + page::QUOTIENT_BITS + known;
    // A prefix is at most as long as a hash. A prefix is never empty, because a prefix contains the
    // bits of the quotient.
    (((bits << 1) << known | entry >> entry.trailing_zeros()) >> 1 << (64 - len), len)
}
