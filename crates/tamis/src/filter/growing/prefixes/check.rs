//! The check of a page: reads the page entry by entry, and checks that this module could have
//! written the page.

use crate::filter::growing::prefixes::page::{
    BLOCK_QUOTIENTS, BLOCKS, EMPTY_WORDS, Form, HEAD_WORDS, MAX_WORDS, block_bounds, entry,
    used_words,
};

/// The error if the words of a page are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsound;

/// Calls `each` with each entry in order, after checking that this module could have written the
/// page. The check guarantees that reads of the page return the inserted entries, and that growing
/// the page accesses only this page.
pub(super) fn each_entry(
    page: &[u64],
    form: &Form,
    mut each: impl FnMut(usize, u64),
) -> Result<(), Unsound> {
    if page.len() < EMPTY_WORDS || page.len() > MAX_WORDS || used_words(page) > page.len() {
        return Err(Unsound);
    }
    let mut expected_start = HEAD_WORDS;
    for block_number in 0..BLOCKS {
        let (start, end) = block_bounds(page, block_number);
        if start != expected_start || end <= start || end > page.len() {
            return Err(Unsound);
        }
        expected_start = end;
        each_block_entry(page, start, end, form, |quotient, entry| {
            each(block_number * BLOCK_QUOTIENTS + quotient, entry);
        })?;
    }
    Ok(())
}

fn each_block_entry(
    page: &[u64],
    start: usize,
    end: usize,
    form: &Form,
    mut each: impl FnMut(usize, u64),
) -> Result<(), Unsound> {
    let block = &page[start..end];
    // The code of a block, which stores the number of entries of each quotient, starts with a one.
    if block[0] & 1 == 0 {
        return Err(Unsound);
    }
    let f = form.entry_bits as usize;
    let (mut bit, mut number) = (1, 0);
    for quotient in 0..BLOCK_QUOTIENTS {
        let mut last_end = 0;
        loop {
            let word = block.get(bit / 64).ok_or(Unsound)?;
            let is_mark = word >> (bit % 64) & 1 == 1;
            bit += 1;
            if is_mark {
                break;
            }
            // The code of a block must not overlap the entries of the block.
            if bit + (number + 1) * f > block.len() * 64 {
                return Err(Unsound);
            }
            let entry = entry(page, end, number, form);
            // As a binary fraction, an entry is the middle of the interval of hashes that the entry
            // covers. In a valid page, the intervals of two entries never overlap.
            let half = entry & entry.wrapping_neg();
            if entry == 0 || entry - half < last_end {
                return Err(Unsound);
            }
            last_end = entry + half;
            number += 1;
            each(quotient, entry);
        }
    }
    let free = (block.len() * 64).checked_sub(bit + number * f).ok_or(Unsound)?;
    if free >= 64 {
        return Err(Unsound);
    }
    // The bits between the code and the entries are zeros, and inserts rely on these zeros.
    let is_free = |bit: usize| block[bit / 64] >> (bit % 64) & 1 == 0;
    if (bit..bit + free).all(is_free) { Ok(()) } else { Err(Unsound) }
}
