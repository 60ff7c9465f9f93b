//! Merges two tables: inserts the prefixes of one table into the other table.

use crate::filter::growing::prefixes::grow::GrowError;
use crate::filter::growing::prefixes::page::{self, Run};
use crate::filter::growing::prefixes::pages::Pages;
use crate::filter::growing::prefixes::table::{Found, Table};
use crate::filter::growing::prefixes::{check, write};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

impl<P: Pages> Table<P> {
    /// Returns the depth and the number of split pages. A higher value means that the table has
    /// grown further.
    fn progress(&self) -> (u32, u64) {
        (self.depth, (1 << self.depth) - self.pages.len_unsplit() as u64)
    }

    pub(super) fn grows_as<Q>(&self, other: &Table<Q>) -> bool {
        self.growth == other.growth
    }
}

impl Table {
    /// Inserts every prefix of another table with the same rule of growth. The merged table covers
    /// every hash that one of the two tables covered, so the rate of the merged table is at most
    /// the sum of the two rates. Merging takes time proportional to the size of `other`.
    ///
    /// # Errors
    ///
    /// [`GrowError`] if the table cannot grow. On error, the table contains all of its own prefixes
    /// and some of the prefixes of `other`.
    pub(crate) fn merge<P: Pages>(&mut self, other: &Table<P>) -> Result<(), GrowError> {
        assert!(self.grows_as(other), "the layouts were compared");
        // Pages that are at least as deep as the pages of the other table have space for all
        // remainder bits of the other table, so no remainder is shortened.
        while self.progress() < other.progress() {
            self.split_next()?;
        }
        other.each_prefix(|bits, len| {
            while self.counts.entries >= self.next_split {
                self.split_next()?;
            }
            let is_new = self.insert_prefix(bits, len)?;
            self.counts.items = self.counts.items.saturating_add(u64::from(is_new));
            Ok(())
        })
    }

    /// Inserts a prefix, which is the highest `len` bits of a word. Returns true if a part of the
    /// prefix was new to the table.
    fn insert_prefix(&mut self, bits: u64, len: u32) -> Result<bool, GrowError> {
        let Found { page, block, is_split, number, rest } = self.find(bits);
        let form = self.forms[usize::from(is_split)];
        let depth = self.depth + u32::from(is_split);
        let Some(known) = len.checked_sub(depth + page::QUOTIENT_BITS) else {
            // A prefix is too short for an entry if the prefix covers several quotients or several
            // pages. A prefix that is too short is divided into two prefixes that are one bit
            // longer.
            let first = self.insert_prefix(bits, len + 1)?;
            let second = self.insert_prefix(bits | 1 << (63 - len), len + 1)?;
            return Ok(first | second);
        };
        let quotient = (rest >> (64 - page::QUOTIENT_BITS)) as usize;
        let remainder = rest << page::QUOTIENT_BITS >> (64 - form.entry_bits);
        let entry = remainder | 1 << (form.entry_bits - 1 - known);
        let run = page::run(page, block, self.select, quotient);
        let stored = |run: &Run, i: usize| page::entry(page, run.end, run.first + i, &form);
        if (0..run.len).any(|i| page::covers(stored(&run, i), entry)) {
            return Ok(false);
        }
        let is_wider = (0..run.len).any(|i| page::covers(entry, stored(&run, i)));
        if is_wider {
            self.replace_covered(is_split, number, quotient, entry)?;
        } else {
            self.insert_into(is_split, number, quotient, &run, entry)?;
            self.counts.entries += 1;
            self.counts.covered = self.counts.covered.saturating_add(1 << (64 - len));
        }
        Ok(true)
    }

    /// Rewrites a page. In the new page, the entry `entry` replaces all entries that `entry`
    /// covers.
    fn replace_covered(
        &mut self,
        is_split: bool,
        number: usize,
        quotient: usize,
        entry: u64,
    ) -> Result<(), GrowError> {
        let form = self.forms[usize::from(is_split)];
        let depth = self.depth + u32::from(is_split);
        let page = self.pages.page_mut(is_split, number);
        let old = page.words();
        let mut entries = write::reserved(page::count_entries(old, self.select) as usize)?;
        let mut dropped = Vec::new();
        let read = check::each_entry(old, &form, |of, stored| {
            let is_covered = of == quotient && page::covers(entry, stored);
            // The new entry replaces at least one entry, so the page has space for the new entry.
            if is_covered && dropped.is_empty() {
                entries.push((of as u16, entry));
            }
            if is_covered {
                dropped.push(stored);
            } else {
                entries.push((of as u16, stored));
            }
        });
        read.expect("pages of a table are valid");
        let new = write::write(&form, &entries)?;
        let len_words = new.len();
        let freed = std::mem::replace(page.words_mut(), new).len();
        page.read_head();
        self.pages.len_words = self.pages.len_words + len_words - freed;
        let hashes = |entry: u64| {
            let known = form.entry_bits - 1 - entry.trailing_zeros();
            1_u64 << (64 - depth - page::QUOTIENT_BITS - known)
        };
        self.counts.entries -= dropped.len() as u64 - 1;
        // The difference is never negative, because the new entry covers all hashes of the replaced
        // entries.
        let gone: u64 = dropped.into_iter().map(hashes).sum();
        self.counts.covered = self.counts.covered.saturating_add(hashes(entry) - gone);
        Ok(())
    }
}
