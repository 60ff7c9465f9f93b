//! Inserting an entry into a page: its block shifts by an entry, and now and then the page by a word.

use super::page::{BLOCK_QUOTIENTS, BLOCKS, Form, Run, code_bits, entry, used_words, window};
use crate::arch::select::Select;
use crate::arch::shift::insert_bits;

/// Inserts an entry into its run, if there is room.
///
/// False if the page has no spare word and the block needs one; nothing has changed then.
#[inline(always)]
pub(super) fn insert(
    page: &mut [u64],
    form: &Form,
    select: Select,
    quotient: usize,
    run: &Run,
    new_entry: u64,
) -> bool {
    let f = form.entry_bits as usize;
    let mut end = run.end;
    let code_bits = code_bits(&page[run.start..end], select);
    let entries = code_bits - (BLOCK_QUOTIENTS + 1);
    if (end - run.start) * 64 < code_bits + 1 + (entries + 1) * f {
        if used_words(page) >= page.len() {
            return false;
        }
        open_word(page, quotient / BLOCK_QUOTIENTS, run.start * 64 + code_bits);
        end += 1;
    }
    // Entries that stay where they are: those before the run, and the smaller ones in it.
    let number = run.first + smaller(page, end, form, run, new_entry);
    insert_zero(&mut page[run.start..end], run.code_at, code_bits);
    let high = end * 64 - number * f;
    insert_bits(page, end * 64 - (entries + 1) * f, high, f, new_entry);
    true
}

/// Counts the entries of a run that are smaller than a new one.
#[inline(always)]
fn smaller(page: &[u64], end: usize, form: &Form, run: &Run, new_entry: u64) -> usize {
    let lanes = form.lanes as usize;
    if run.len > lanes {
        let entry = |i: &usize| entry(page, end, run.first + i, form);
        return (0..run.len).take_while(|i| entry(i) < new_entry).count();
    }
    form.count_smaller(window(page, end, run.first, form).unwrap_or(0), run.len as u32, new_entry)
}

/// Moves all that follows bit `at` of the page up by a word: the entries of this block, and the blocks
/// behind it.
#[inline(never)]
fn open_word(page: &mut [u64], block: usize, at: usize) {
    let (word, used) = (at / 64, used_words(page));
    page.copy_within(word..used, word + 1);
    let code = (1 << (at % 64)) - 1;
    page[word] &= code;
    page[word + 1] &= !code;
    // One more in slot 0 and in those of later blocks. None runs over: `used` was below `MAX_WORDS`.
    page[0] += 1;
    for (first, word) in (0..BLOCKS).step_by(4).zip(page) {
        let before = (block + 1).clamp(first, first + 4) - first;
        let later =
            0x0001_0001_0001_0001_u64 & u64::MAX.checked_shl(before as u32 * 16).unwrap_or(0);
        *word += later;
    }
}

/// Inserts a zero at bit `at` of a code that ends before bit `end`, which is free.
#[inline(always)]
fn insert_zero(block: &mut [u64], at: usize, end: usize) {
    let below = |bit: usize| (1_u128 << bit) - 1;
    if end < 127
        && let Some(code) = block.first_chunk_mut::<2>()
    {
        let whole = u128::from(code[0]) | u128::from(code[1]) << 64;
        let moved = whole & below(end) & !below(at);
        // What lies behind the code may be entries.
        let whole = whole - moved + (moved << 1);
        *code = [whole as u64, (whole >> 64) as u64];
        return;
    }
    let mut kept = (1_u64 << (at % 64)) - 1;
    let mut carry = 0;
    for (i, word) in block.iter_mut().enumerate().take(end / 64 + 1).skip(at / 64) {
        // Entries may share the last word of the code.
        let after = if i == end / 64 { u64::MAX << 1 << (end % 64) } else { 0 };
        let moved = *word & !kept & !after;
        *word = *word & (kept | after) | moved << 1 | carry;
        carry = moved >> 63;
        kept = 0;
    }
}
