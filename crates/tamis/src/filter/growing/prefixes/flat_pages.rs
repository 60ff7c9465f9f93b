//! A table as one slice of words. A lookup works directly on the words of the slice, without a
//! copy.
//!
//! ```text
//! word 0                 1       2         3          3 + pages
//!      | depth and order | items | unsplit | page ends | pages ...
//! ```
//!
//! * Word 0: the depth is in bits 0 to 7. Bit 8 is set if the unsplit pages are numbered by the
//!   inverted address. All other bits of word 0 are zero.
//! * `items`: the number of items that were new to the filter when they were inserted.
//! * `unsplit`: the number of pages with the depth of word 0, from 1 to 2^depth. Each page with the
//!   depth of word 0 that is not unsplit was replaced by two pages of the next depth. In total, the
//!   table has 2^(depth+1) − unsplit pages.
//! * `page ends`: for each page, the number of the first word after the page. Unsplit pages come
//!   before split pages.
//! * `pages`: the pages in order, without unused words (`page.rs`).
//!
//! The words do not contain the rule of growth, because the rule is computed from the rate of the
//! plan.

use crate::arch::prefetch::prefetch_index;
use crate::bits::{BitView, Bits, OutOfMemory};
use crate::filter::growing::prefixes::growth::Growth;
use crate::filter::growing::prefixes::pages::{OwnedPage, OwnedPages, PageRef, Pages};
use crate::filter::growing::prefixes::table::{Counts, Table, prefix};
use crate::filter::growing::prefixes::{check, page, write};

/// The pages of a table that is one slice of words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlatPages<B> {
    bits: B,
    unsplit: usize,
    len: usize,
}

impl<B: Bits<Word = u64>> FlatPages<B> {
    /// Uses any words as pages, without a check. Lookups never panic, even if the words are
    /// invalid.
    pub(super) fn unchecked(bits: B, unsplit: u64, len: u64) -> Self {
        Self { bits, unsplit: unsplit as usize, len: len as usize }
    }

    /// Borrows the words.
    pub(crate) fn as_view(&self) -> FlatPages<BitView<'_>> {
        let Self { bits, unsplit, len } = self;
        FlatPages { bits: BitView::new(bits.words()), unsplit: *unsplit, len: *len }
    }

    #[inline(always)]
    fn end(&self, number: usize) -> usize {
        self.bits.words().get(HEAD_WORDS + number).copied().unwrap_or(0) as usize
    }

    /// Returns a page. Unsplit pages are numbered before split pages.
    #[inline(always)]
    fn page_of(&self, number: usize) -> &[u64] {
        let start = if number == 0 { HEAD_WORDS + self.len } else { self.end(number - 1) };
        self.bits.words().get(start..self.end(number)).unwrap_or_default()
    }
}

impl<B: Bits<Word = u64>> Pages for FlatPages<B> {
    const HEAD_APART: bool = false;

    #[inline(always)]
    fn len_unsplit(&self) -> usize {
        self.unsplit
    }

    #[inline(always)]
    fn page(&self, is_split: bool, number: usize) -> PageRef<'_> {
        let first = if is_split { self.unsplit } else { 0 };
        PageRef::of(self.page_of(first + number))
    }

    #[inline(always)]
    fn prefetch_entry(&self, is_split: bool, number: usize) {
        let number = if is_split { self.unsplit + number } else { number };
        prefetch_index(self.bits.words(), HEAD_WORDS + number);
    }
}

/// The number of words before the list `page ends`.
const HEAD_WORDS: usize = 3;

const FLIP_BIT: u64 = 1 << 8;

/// The reason why words are not a valid table of a growing filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordsError {
    /// The header has invalid values, or its values do not match the number of words.
    Head,
    /// The page with the given number is invalid, because a table never writes the words of the
    /// page.
    Page(u64),
}

impl<P: Pages> Table<P> {
    /// Returns the number of words that [`write_words`](Self::write_words) writes.
    pub(crate) fn len_words(&self) -> u64 {
        HEAD_WORDS as u64 + self.len_pages() + self.page_lens().sum::<u64>()
    }

    /// Returns the pages in the order in which a file stores the pages.
    fn page_refs(&self) -> impl Iterator<Item = PageRef<'_>> {
        let unsplit = self.pages.len_unsplit();
        let split = self.len_pages() as usize - unsplit;
        let lower = (0..unsplit).map(|number| self.pages.page(false, number));
        lower.chain((0..split).map(|number| self.pages.page(true, number)))
    }

    /// Reads the number of words of each page from the headers.
    fn page_lens(&self) -> impl Iterator<Item = u64> {
        self.page_refs().map(|page| page::used_words(page.head) as u64)
    }

    /// Passes the words to `write`, in order and in several slices, beginning with word number
    /// `start`. Reads only the header of each skipped page.
    ///
    /// # Errors
    ///
    /// Returns the first error of `write`.
    pub(crate) fn write_words<E>(
        &self,
        start: u64,
        mut write: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        // The number of words that must still be skipped.
        let mut skip = start;
        let mut write_rest = |skip: &mut u64, run: &[u64]| {
            let skipped = (*skip).min(run.len() as u64);
            *skip -= skipped;
            if skipped == run.len() as u64 { Ok(()) } else { write(&run[skipped as usize..]) }
        };
        let flip = self.flip & FLIP_BIT;
        let unsplit = self.pages.len_unsplit() as u64;
        write_rest(&mut skip, &[u64::from(self.depth) | flip, self.counts.items, unsplit])?;
        let len_pages = self.len_pages();
        if skip >= len_pages {
            skip -= len_pages;
        } else {
            let mut end = HEAD_WORDS as u64 + len_pages;
            for len in self.page_lens() {
                end += len;
                write_rest(&mut skip, &[end])?;
            }
        }
        for page in self.page_refs() {
            let len = page::used_words(page.head);
            if skip >= len as u64 {
                skip -= len as u64;
            } else {
                write_rest(&mut skip, &page.words[..len])?;
            }
        }
        Ok(())
    }

    /// Copies the table into owned pages, which can grow.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the pages cannot be allocated.
    pub(crate) fn to_owned(&self) -> Result<Table, OutOfMemory> {
        let unsplit = self.pages.len_unsplit();
        let mut pages = OwnedPages {
            unsplit: write::reserved(unsplit)?,
            split: write::reserved(self.len_pages() as usize - unsplit)?,
            len_words: 0,
        };
        self.each_page(|page, depth, _| -> Result<(), OutOfMemory> {
            let page = write::boxed(&page[..page::used_words(page)])?;
            pages.len_words += page.len();
            let page = OwnedPage::new(page);
            if depth == self.depth {
                pages.unsplit.push(page);
            } else {
                pages.split.push(page);
            }
            Ok(())
        })?;
        Ok(Table::with_pages(self.growth, self.depth, self.flip != 0, pages, self.counts))
    }
}

impl<B: Bits<Word = u64>> Table<FlatPages<B>> {
    /// Borrows the table. Takes constant time.
    pub(crate) fn as_view(&self) -> Table<FlatPages<BitView<'_>>> {
        let pages = self.pages.as_view();
        Table::with_pages(self.growth, self.depth, self.flip != 0, pages, self.counts)
    }

    /// Borrows words as a table, after checking all words.
    ///
    /// # Errors
    ///
    /// [`WordsError`] if `bits` is not a valid table for `growth`.
    pub(crate) fn view(growth: Growth, bits: B) -> Result<Self, WordsError> {
        let words = bits.words();
        let &[order, items, unsplit, ..] = words else { return Err(WordsError::Head) };
        let depth = (order & 0xff) as u32;
        if order & !(0xff | FLIP_BIT) != 0 || depth > growth.max_depth() {
            return Err(WordsError::Head);
        }
        // The depth of split pages is one more than the depth of unsplit pages.
        let is_split = unsplit < 1 << depth;
        if unsplit == 0 || unsplit > 1 << depth || is_split && depth == growth.max_depth() {
            return Err(WordsError::Head);
        }
        let len = (2_u64 << depth) - unsplit;
        if len > (words.len() - HEAD_WORDS) as u64 {
            return Err(WordsError::Head);
        }
        let ends = &words[HEAD_WORDS..HEAD_WORDS + len as usize];
        let first = HEAD_WORDS as u64 + len;
        if !ends.is_sorted() || ends[0] < first || ends.last() != Some(&(words.len() as u64)) {
            return Err(WordsError::Head);
        }
        let is_flipped = order & FLIP_BIT != 0;
        let pages = FlatPages::unchecked(bits, unsplit, len);
        let mut table = Self::with_pages(growth, depth, is_flipped, pages, Counts::default());
        table.counts = table.check(items)?;
        Ok(table)
    }

    fn check(&self, items: u64) -> Result<Counts, WordsError> {
        let mut counts = Counts { items, ..Counts::default() };
        let mut covered = 0_u128;
        let mut number = 0;
        self.each_page(|page, depth, address| {
            let form = &self.forms[usize::from(depth > self.depth)];
            let checked = check::each_entry(page, form, |quotient, entry| {
                counts.entries += 1;
                covered += 1 << (64 - prefix(form, depth, address, quotient, entry).1);
            });
            if checked.is_err() || page::used_words(page) != page.len() {
                return Err(WordsError::Page(number));
            }
            number += 1;
            Ok(())
        })?;
        // The entries of a merged table may cover all 2⁶⁴ hashes, and this number does not fit in a
        // `u64`.
        counts.covered = u64::try_from(covered).unwrap_or(u64::MAX);
        Ok(counts)
    }
}
