//! Pages in owned memory, and the trait for pages of a table.

use std::hint::select_unpredictable;

use crate::arch::prefetch::prefetch_index;
use crate::filter::growing::prefixes::page::{HEAD_WORDS, Head, lengthen};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// A page and its header. For owned pages, the header is in the directory, next to the page's
/// address.
#[derive(Clone, Copy)]
pub(crate) struct PageRef<'a> {
    pub(super) words: &'a [u64],
    pub(super) head: &'a Head,
}

/// An absent page, whose blocks have no words.
const NO_PAGE: PageRef<'_> = PageRef { words: &[], head: &[0; HEAD_WORDS] };

impl Default for PageRef<'_> {
    fn default() -> Self {
        NO_PAGE
    }
}

impl<'a> PageRef<'a> {
    /// Returns a page with the header at the start of its words.
    #[inline(always)]
    pub(super) fn of(words: &'a [u64]) -> Self {
        match words.first_chunk() {
            Some(head) => Self { words, head },
            None => NO_PAGE,
        }
    }
}

/// The storage of pages.
pub(crate) trait Pages {
    /// True if the directory contains the headers of the pages, so that a lookup does not read the
    /// header in the page.
    const HEAD_APART: bool;

    /// Returns the number of unsplit pages.
    fn len_unsplit(&self) -> usize;

    /// Returns an unsplit page, or a split page if `is_split` is true. Returns an empty page if no
    /// page has this number.
    fn page(&self, is_split: bool, number: usize) -> PageRef<'_>;

    /// Prefetches the directory entry of a page.
    fn prefetch_entry(&self, is_split: bool, number: usize);
}

/// A page in owned memory, with a copy of its header. Because of the copy, a lookup finds the block
/// from the directory alone.
#[derive(Clone, Debug)]
pub(crate) struct OwnedPage {
    head: Head,
    words: Box<[u64]>,
}

impl OwnedPage {
    pub(super) fn new(words: Box<[u64]>) -> Self {
        let head = *words.first_chunk().expect("pages have a head");
        Self { head, words }
    }

    #[inline(always)]
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the words of the page for writing. If the caller moves blocks, the caller must also
    /// update the copy of the header.
    #[inline(always)]
    pub(super) fn words_mut(&mut self) -> &mut Box<[u64]> {
        &mut self.words
    }

    /// Makes a block one word longer in the copy of the header. The copy is not read from the words
    /// of the page, because the read would wait for the preceding store.
    #[inline(always)]
    pub(super) fn move_head(&mut self, block: usize) {
        lengthen(&mut self.head, block);
    }

    /// Reads the copy of the header from the words of the page.
    pub(super) fn read_head(&mut self) {
        self.head = *self.words.first_chunk().expect("pages have a head");
    }

    #[inline(always)]
    fn as_ref(&self) -> PageRef<'_> {
        PageRef { words: &self.words, head: &self.head }
    }
}

/// Pages in owned memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedPages {
    pub(super) unsplit: Vec<OwnedPage>,
    pub(super) split: Vec<OwnedPage>,
    /// The number of words of all pages, including unused words.
    pub(super) len_words: usize,
}

impl Pages for OwnedPages {
    const HEAD_APART: bool = true;

    #[inline(always)]
    fn len_unsplit(&self) -> usize {
        self.unsplit.len()
    }

    #[inline(always)]
    fn page(&self, is_split: bool, number: usize) -> PageRef<'_> {
        self.directory(is_split).get(number).map(OwnedPage::as_ref).unwrap_or_default()
    }

    #[inline(always)]
    fn prefetch_entry(&self, is_split: bool, number: usize) {
        let directory = self.directory(is_split);
        prefetch_index(directory, number);
    }
}

impl OwnedPages {
    #[inline(always)]
    fn directory(&self, is_split: bool) -> &[OwnedPage] {
        let [unsplit, split] = [&*self.unsplit, &*self.split];
        select_unpredictable(is_split, split, unsplit)
    }

    /// Returns a page for writing. The page must exist.
    #[inline(always)]
    pub(super) fn page_mut(&mut self, is_split: bool, number: usize) -> &mut OwnedPage {
        if is_split { &mut self.split[number] } else { &mut self.unsplit[number] }
    }
}
