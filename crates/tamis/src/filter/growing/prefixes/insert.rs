//! Inserts an entry into a page. An insert moves part of the block by one entry, and sometimes part
//! of the page by one word.

use std::hint::select_unpredictable;

use crate::arch::select::Select;
use crate::filter::growing::prefixes::page::{
    BLOCK_QUOTIENTS, Form, Run, code_bits, entry, lengthen, used_words, window,
};
use crate::filter::growing::prefixes::shift::insert_bits;

/// The effect of an insert on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// The blocks of the page have not moved.
    InPlace,
    /// The blocks of the page have moved, and the header was updated.
    Moved,
    /// The page is unchanged, because the block needs one more word, but the page has no unused
    /// word.
    NoRoom,
}

/// Inserts an entry into its run, which is the sequence of entries of one quotient, if the page has
/// enough space.
#[inline(always)]
pub(super) fn insert(
    page: &mut [u64],
    form: &Form,
    select: Select,
    quotient: usize,
    run: &Run,
    new_entry: u64,
) -> Inserted {
    let f = form.entry_bits as usize;
    let mut end = run.end;
    let mut inserted = Inserted::InPlace;
    let code_bits = code_bits(&page[run.start..end], select);
    let entries = code_bits - (BLOCK_QUOTIENTS + 1);
    if (end - run.start) * 64 < code_bits + 1 + (entries + 1) * f {
        if used_words(page) >= page.len() {
            return Inserted::NoRoom;
        }
        open_word(page, quotient / BLOCK_QUOTIENTS, run.start * 64 + code_bits);
        end += 1;
        inserted = Inserted::Moved;
    }
    // Entries before the run do not move. Entries of the run that are smaller than the new entry
    // also do not move.
    let number = run.first + smaller(page, end, form, run, new_entry);
    insert_zero(&mut page[run.start..end], select, run.code_at, code_bits);
    let high = end * 64 - number * f;
    insert_bits(page, end * 64 - (entries + 1) * f, high, f, new_entry);
    inserted
}

/// Counts the entries of a run that are smaller than a new entry.
#[inline(always)]
fn smaller(page: &[u64], end: usize, form: &Form, run: &Run, new_entry: u64) -> usize {
    let lanes = form.lanes as usize;
    if run.len > lanes {
        let entry = |i: &usize| entry(page, end, run.first + i, form);
        return (0..run.len).take_while(|i| entry(i) < new_entry).count();
    }
    form.count_smaller(window(page, end, run.first, form).unwrap_or(0), run.len as u32, new_entry)
}

/// Moves everything after bit `at` of the page up by one word: the entries of this block, and all
/// later blocks.
#[inline(never)]
fn open_word(page: &mut [u64], block: usize, at: usize) {
    let (word, used) = (at / 64, used_words(page));
    page.copy_within(word..used, word + 1);
    let code = (1 << (at % 64)) - 1;
    page[word] &= code;
    page[word + 1] &= !code;
    lengthen(page.first_chunk_mut().expect("pages have a head"), block);
}

/// Inserts a zero at bit `at` of the code of a block. The code ends before bit `end`, and bit `end`
/// is unused.
#[inline(always)]
fn insert_zero(block: &mut [u64], select: Select, at: usize, end: usize) {
    if end < 127
        && let Some(code) = block.first_chunk_mut::<2>()
    {
        // In the mask that `hole` returns, all bits are ones, except the new bit if word number
        // `word` contains the new bit.
        let hole = |word: usize| !(u64::from(at / 64 == word) << (at % 64));
        // `behind` returns the mask of the bits after the code, because these bits may belong to
        // entries.
        let behind = |word: usize| {
            u64::MAX.checked_shl((end + 1).saturating_sub(word * 64) as u32).unwrap_or(0)
        };
        let [zeroth, first] = *code;
        let carry = select_unpredictable(at < 64, zeroth >> 63, 0);
        let low = select.deposit(zeroth, hole(0));
        let moved = select_unpredictable(at < 64, first << 1, select.deposit(first, hole(1)));
        let kept = [behind(0), behind(1)];
        *code = [low & !kept[0] | zeroth & kept[0], (moved | carry) & !kept[1] | first & kept[1]];
        return;
    }
    let mut kept = (1_u64 << (at % 64)) - 1;
    let mut carry = 0;
    for (i, word) in block.iter_mut().enumerate().take(end / 64 + 1).skip(at / 64) {
        // The last word of the code may also contain entries.
        let after = if i == end / 64 { u64::MAX << 1 << (end % 64) } else { 0 };
        let moved = *word & !kept & !after;
        *word = *word & (kept | after) | moved << 1 | carry;
        carry = moved >> 63;
        kept = 0;
    }
}
