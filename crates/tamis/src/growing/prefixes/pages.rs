//! Pages in memory of their own, and what a table asks of any.

use std::hint::select_unpredictable;

use super::page::{HEAD_WORDS, Head, lengthen};
use crate::arch::prefetch_index;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// A page, and its head where it is nearest: beside the page's address, if pages are owned.
#[derive(Clone, Copy)]
pub(crate) struct PageRef<'a> {
    pub(super) words: &'a [u64],
    pub(super) head: &'a Head,
}

/// No page: no block of it has words.
const NO_PAGE: PageRef<'_> = PageRef { words: &[], head: &[0; HEAD_WORDS] };

impl Default for PageRef<'_> {
    fn default() -> Self {
        NO_PAGE
    }
}

impl<'a> PageRef<'a> {
    /// Returns a page with the head that its words start with.
    #[inline(always)]
    pub(super) fn of(words: &'a [u64]) -> Self {
        match words.first_chunk() {
            Some(head) => Self { words, head },
            None => NO_PAGE,
        }
    }
}

/// Where pages lie.
pub(crate) trait Pages {
    /// True if a page's head is not in the page but in the directory.
    const HEAD_APART: bool;

    /// Returns how many pages have the lesser depth.
    fn len_unsplit(&self) -> usize;

    /// Returns a page of the lesser depth, or of the greater if it `is_split`; an empty one if there is none of
    /// this number.
    fn page(&self, is_split: bool, number: usize) -> PageRef<'_>;

    /// Asks for the directory's entry of a page.
    fn prefetch_entry(&self, is_split: bool, number: usize);
}

/// A page in memory of its own. The head is a copy, so that what a question reads after it, the block, is
/// known from the directory alone.
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

    /// Returns the words to be changed. Where blocks have moved, the head must be changed likewise.
    #[inline(always)]
    pub(super) fn words_mut(&mut self) -> &mut Box<[u64]> {
        &mut self.words
    }

    /// Makes a block a word longer in the head, as it is in the words: reading them, just written, would wait.
    #[inline(always)]
    pub(super) fn move_head(&mut self, block: usize) {
        lengthen(&mut self.head, block);
    }

    /// Reads the head from the words.
    pub(super) fn read_head(&mut self) {
        self.head = *self.words.first_chunk().expect("pages have a head");
    }

    #[inline(always)]
    fn as_ref(&self) -> PageRef<'_> {
        PageRef { words: &self.words, head: &self.head }
    }
}

/// Pages in memory of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedPages {
    pub(super) unsplit: Vec<OwnedPage>,
    pub(super) split: Vec<OwnedPage>,
    /// Words of all pages, with the spare ones.
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

    /// Returns a page that there is.
    #[inline(always)]
    pub(super) fn page_mut(&mut self, is_split: bool, number: usize) -> &mut OwnedPage {
        if is_split { &mut self.split[number] } else { &mut self.unsplit[number] }
    }
}
