//! Pages in memory of their own, and what a table asks of any.

use crate::arch::prefetch_index;

/// Where pages lie.
pub(crate) trait Pages {
    /// Returns how many pages have the lesser depth.
    fn len_unsplit(&self) -> usize;

    /// Returns a page of the lesser depth, or `None` if that one is split.
    fn unsplit(&self, number: usize) -> Option<&[u64]>;

    /// Returns a page of the greater depth, empty if there is none of this number.
    fn split(&self, number: usize) -> &[u64];

    /// Asks for the directory's entry of a page.
    fn prefetch_entry(&self, is_split: bool, number: usize);
}

/// Pages in memory of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedPages {
    pub(super) unsplit: Vec<Box<[u64]>>,
    pub(super) split: Vec<Box<[u64]>>,
    /// Words of all pages, with the spare ones.
    pub(super) len_words: usize,
}

impl Pages for OwnedPages {
    #[inline(always)]
    fn len_unsplit(&self) -> usize {
        self.unsplit.len()
    }

    #[inline(always)]
    fn unsplit(&self, number: usize) -> Option<&[u64]> {
        self.unsplit.get(number).map(|page| &**page)
    }

    #[inline(always)]
    fn split(&self, number: usize) -> &[u64] {
        self.split.get(number).map(|page| &**page).unwrap_or_default()
    }

    #[inline(always)]
    fn prefetch_entry(&self, is_split: bool, number: usize) {
        prefetch_index(if is_split { &self.split } else { &self.unsplit }, number);
    }
}

impl OwnedPages {
    /// Returns a page that there is.
    #[inline(always)]
    pub(super) fn page_mut(&mut self, is_split: bool, number: usize) -> &mut Box<[u64]> {
        if is_split { &mut self.split[number] } else { &mut self.unsplit[number] }
    }
}
