//! Writes whole pages: the two halves of a page that splits, and pages of any sorted entries.

use crate::arch::level::run_wide;
use crate::arch::memory::global_allocation_bytes;
use crate::arch::select::Select;
use crate::bits::OutOfMemory;
use crate::filter::growing::prefixes::page::{
    BLOCK_QUOTIENTS, BLOCKS, CROWDED_WORDS, Form, HEAD_WORDS, MAX_WORDS, QUOTIENTS, block_bounds,
    set_block_end, used_words,
};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// Writes the entries of a page. The caller passes the entries in order.
pub(super) struct PageWriter {
    form: Form,
    select: Select,
    /// The words of the page that are already written: the header and the completed blocks.
    page: Vec<u64>,
    block: usize,
    /// The code and the entries of the current block. The first entry is in the highest bits of the
    /// first word of `entries`.
    code: Vec<u64>,
    code_bits: usize,
    entries: Vec<u64>,
    entries_bits: usize,
}

impl PageWriter {
    /// Creates a writer for pages with at most `max_entries` entries. Allocates all memory that the
    /// writer needs.
    pub fn new(form: Form, max_entries: usize) -> Result<Self, OutOfMemory> {
        let f = form.entry_bits as usize;
        let code_words = (max_entries + BLOCK_QUOTIENTS + 1) / 64 + 3;
        // The writer appends a run as a whole word, of which only a part is valid, so the buffer
        // has one additional word at the end.
        let entries_words = max_entries * f / 64 + 3;
        let page_words = HEAD_WORDS + BLOCKS * 2 + (max_entries * (f + 1) + QUOTIENTS) / 64;
        let mut writer = Self {
            form,
            select: Select::new(),
            page: reserved(page_words)?,
            block: 0,
            code: reserved(code_words)?,
            code_bits: 0,
            entries: reserved(entries_words)?,
            entries_bits: 0,
        };
        writer.code.resize(code_words, 0);
        writer.entries.resize(entries_words, 0);
        writer.start_page();
        Ok(writer)
    }

    fn start_page(&mut self) {
        self.page.clear();
        self.page.resize(HEAD_WORDS, 0);
        self.block = 0;
        self.start_block();
    }

    #[inline(always)]
    fn start_block(&mut self) {
        self.code[0] = 1;
        self.code_bits = 1;
        self.entries_bits = 0;
    }

    /// Appends `len` entries, which are in the highest bits of `window`. All bits of `window` below
    /// the entries are zero.
    #[inline(always)]
    fn push_entries(&mut self, window: u64, len: usize) {
        let (word, used) = (self.entries_bits / 64, self.entries_bits % 64);
        let entries = &mut self.entries[word..word + 2];
        let kept = if used == 0 { 0 } else { entries[0] };
        entries[0] = kept | window >> used;
        entries[1] = window << 1 << (63 - used);
        self.entries_bits += len * self.form.entry_bits as usize;
    }

    /// Ends the code of a quotient. `len` zeros precede the mark, which is a one.
    fn push_mark(&mut self, len: usize) {
        let at = self.code_bits + len;
        let last = (self.code_bits - 1) / 64;
        if at / 64 > last {
            // The words after `last` may still contain bits of the previous block.
            self.code[last + 1..=at / 64].fill(0);
        }
        self.code[at / 64] |= 1 << (at % 64);
        self.code_bits = at + 1;
    }

    /// Sets the whole code of a block. `bits` is the number of bits after the first bit.
    #[inline(always)]
    fn set_code(&mut self, code: u128, bits: usize) {
        let code = code << 1 | 1;
        self.code[..2].copy_from_slice(&[code as u64, (code >> 64) as u64]);
        self.code_bits = bits + 1;
    }

    /// Ends a block after all its quotients were appended. Returns `None` if the page is too long.
    #[inline(always)]
    fn end_block(&mut self) -> Option<()> {
        let start = self.page.len();
        let end = start + (self.code_bits + self.entries_bits).div_ceil(64);
        if end > MAX_WORDS {
            return None;
        }
        self.page.resize(end, 0);
        self.page[start..][..self.code_bits.div_ceil(64)]
            .copy_from_slice(&self.code[..self.code_bits.div_ceil(64)]);
        let entries = &mut self.entries[..self.entries_bits.div_ceil(64)];
        // The entries may share a word with the code.
        for (word, &entries) in self.page[start..].iter_mut().rev().zip(&*entries) {
            *word |= entries;
        }
        set_block_end(&mut self.page, self.block, end);
        self.block += 1;
        self.start_block();
        Some(())
    }

    /// Returns the page, followed by the unused words of its allocation.
    fn end_page(&mut self) -> Result<Box<[u64]>, OutOfMemory> {
        let page = boxed(&self.page)?;
        self.start_page();
        Ok(page)
    }
}

/// The reason why a page cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteError {
    Memory(OutOfMemory),
    /// A page would have too many words. Only hashes that are not uniform cause `Crowded`.
    Crowded,
}

impl From<OutOfMemory> for WriteError {
    fn from(error: OutOfMemory) -> Self {
        WriteError::Memory(error)
    }
}

/// Splits a valid page in two, by the first bit of its quotients. The first bit of each remainder
/// becomes the last bit of the quotient. An entry without a remainder covers both halves of its
/// quotient, so the entry is written to both halves.
pub(super) fn split(
    page: &[u64],
    form: &Form,
    child_form: &Form,
) -> Result<[Box<[u64]>; 2], WriteError> {
    let max_entries = used_words(page) * 64 / (form.entry_bits as usize + 1);
    // The maximum number of entries is doubled, because a split may write an entry to both halves.
    let mut writer = PageWriter::new(*child_form, max_entries * 2)?;
    let children = [0, BLOCKS / 2].map(|first_block| -> Result<_, WriteError> {
        run_wide(
            #[inline(always)]
            || split_blocks(page, first_block, form, &mut writer),
        )
        .ok_or(WriteError::Crowded)?;
        Ok(writer.end_page()?)
    });
    let [first, second] = children;
    Ok([first?, second?])
}

/// Splits half of the blocks of a page, beginning with block `first`. The split blocks become one
/// page.
#[inline(always)]
fn split_blocks(page: &[u64], first: usize, form: &Form, writer: &mut PageWriter) -> Option<()> {
    // The function uses a loop, because the compiler does not always inline the closures of an
    // iterator.
    for block in first..first + BLOCKS / 2 {
        let (start, end) = block_bounds(page, block);
        split_block(page, start, end, form, writer)?;
    }
    Some(())
}

#[inline(always)]
fn split_block(
    page: &[u64],
    start: usize,
    end: usize,
    form: &Form,
    writer: &mut PageWriter,
) -> Option<()> {
    let block = &page[start..end];
    let same_form = *form == writer.form;
    let (mut bit, mut first) = (1, 0);
    for _ in 0..2 {
        let whole =
            if same_form { split_half(page, block, end, form, bit, first, writer) } else { None };
        if let Some(len) = whole {
            bit += len + BLOCK_QUOTIENTS / 2;
            first += len;
        } else {
            writer.start_block();
            for _ in 0..BLOCK_QUOTIENTS / 2 {
                let len = zeros_from(block, bit);
                split_run(page, end, form, first..first + len, writer);
                bit += len + 1;
                first += len;
            }
        }
        writer.end_block()?;
    }
    Some(())
}

/// Splits half a block into a whole block, without a step for each quotient. All entries move up by
/// one bit. In the code of each run, a mark is inserted before the zeros of the second half.
///
/// Returns the number of entries. Returns `None` if the code does not fit in one word, or if an
/// entry has no remainder. If the result is `None`, the current block of the writer is unfinished.
#[inline(always)]
fn split_half(
    page: &[u64],
    block: &[u64],
    end: usize,
    form: &Form,
    bit: usize,
    first: usize,
    writer: &mut PageWriter,
) -> Option<usize> {
    let select = writer.select;
    let last = select.select(word_at(block, bit), BLOCK_QUOTIENTS as u32 / 2 - 1);
    if last == 64 {
        return None;
    }
    let all = u64::MAX >> (63 - last);
    let marks = word_at(block, bit) & all;
    let len = last as usize + 1 - BLOCK_QUOTIENTS / 2;
    // `firsts` contains the first bit of each entry. In `firsts`, the first bit of the first entry
    // is the highest bit.
    let (mut firsts, mut done) = (0, 0);
    while done < len {
        let now = (len - done).min(form.lanes as usize);
        let window = form.run_window(page, end, first + done, now)?;
        let (moved, _) = form.halve(window, now)?;
        firsts =
            firsts << now | select.extract(window, form.highs()) >> (form.lanes as usize - now);
        writer.push_entries(moved, now);
        done += now;
    }
    let firsts = firsts.reverse_bits() >> 1 >> (63 - len);
    // `ones` contains the marks and the entries of the second halves. In each run, the entries of
    // the second half come last.
    let ones = marks | select.deposit(firsts, all & !marks);
    let starts = ones & (marks << 1 | 1 | !(ones << 1));
    // Inserts a mark before each bit of `starts`. First, every bit becomes two bits: a place for a
    // mark, and the bit. A place for a mark is kept only before a bit of `starts`.
    let half = |from: u32| {
        let [marks, starts, all] = [marks, starts, all].map(|bits| bits >> from & 0xffff_ffff);
        let starts = select.deposit(starts, EVEN);
        let kept = starts | select.deposit(all, !EVEN);
        (select.extract(starts | select.deposit(marks, !EVEN), kept), select.count_ones(kept))
    };
    let ((low, low_bits), (high, high_bits)) = (half(0), half(32));
    writer
        .set_code(u128::from(low) | u128::from(high) << low_bits, (low_bits + high_bits) as usize);
    Some(len)
}

const EVEN: u64 = 0x5555_5555_5555_5555;

/// Splits the run of a quotient, one entry at a time.
fn split_run(
    page: &[u64],
    end: usize,
    form: &Form,
    run: std::ops::Range<usize>,
    writer: &mut PageWriter,
) {
    let (f, child_f) = (form.entry_bits, writer.form.entry_bits);
    let whole = 1 << (f - 1);
    for half in 0..2 {
        let mut count = 0;
        for number in run.clone() {
            let entry = crate::filter::growing::prefixes::page::entry(page, end, number, form);
            if entry == whole {
                writer.push_entries(1 << 63, 1);
            } else if entry >> (f - 1) == half {
                // If entries of the new page are one bit shorter than entries of the old page, an
                // entry loses the zero at its end.
                let rest = entry << (64 - f) << 1;
                debug_assert!(rest << (child_f - 1) << 1 == 0, "no prefix is shortened");
                writer.push_entries(rest, 1);
            } else {
                continue;
            }
            count += 1;
        }
        writer.push_mark(count);
    }
}

/// Counts the zeros of a valid code, starting at a given bit.
#[inline(always)]
fn zeros_from(block: &[u64], bit: usize) -> usize {
    let zeros = word_at(block, bit).trailing_zeros() as usize;
    if zeros < 64 || bit / 64 + 2 >= block.len() {
        zeros
    } else {
        zeros + zeros_far(block, bit + zeros)
    }
}

/// Returns the 64 bits that start at a given bit. Bits after the end of the block are zero.
#[inline(always)]
fn word_at(block: &[u64], bit: usize) -> u64 {
    let word = |i: usize| block.get(i).copied().unwrap_or(0);
    word(bit / 64) >> (bit % 64) | word(bit / 64 + 1) << 1 << (63 - bit % 64)
}

#[cold]
fn zeros_far(block: &[u64], from: usize) -> usize {
    (from..block.len() * 64).take_while(|bit| block[bit / 64] >> (bit % 64) & 1 == 0).count()
}

/// Writes a page of entries, which are in ascending order of quotient and entry.
pub(super) fn write(form: &Form, entries: &[(u16, u64)]) -> Result<Box<[u64]>, WriteError> {
    let mut writer = PageWriter::new(*form, entries.len())?;
    let mut entries = entries.iter().peekable();
    for quotient in 0..QUOTIENTS {
        let mut count = 0;
        while let Some((_, entry)) = entries.next_if(|(of, _)| usize::from(*of) == quotient) {
            writer.push_entries(entry << (64 - form.entry_bits), 1);
            count += 1;
        }
        writer.push_mark(count);
        if quotient % BLOCK_QUOTIENTS == BLOCK_QUOTIENTS - 1 {
            writer.end_block().ok_or(WriteError::Crowded)?;
        }
    }
    Ok(writer.end_page()?)
}

/// Returns the allocation size for `used` words, in steps of a cache line. One word of the last
/// line is reserved for the allocator, unless the program has set the sizes of its allocator.
pub(super) fn capacity_for(used: usize) -> usize {
    let words = (used + 1).next_multiple_of(STEP_WORDS) - 1;
    let bytes = global_allocation_bytes(words * size_of::<u64>());
    bytes.map_or(words, |bytes| bytes as usize / size_of::<u64>()).min(MAX_WORDS)
}

const STEP_WORDS: usize = 8;

pub(super) fn boxed(used: &[u64]) -> Result<Box<[u64]>, OutOfMemory> {
    let capacity = capacity_for(used.len());
    let mut page = reserved(capacity)?;
    page.extend_from_slice(used);
    page.resize(capacity, 0);
    Ok(page.into_boxed_slice())
}

/// Extends a full page and returns the number of new words. Returns `Crowded` if the page has too
/// many words.
pub(super) fn grow(page: &mut Box<[u64]>) -> Result<usize, WriteError> {
    let capacity = capacity_for(page.len() + 1);
    if page.len() >= CROWDED_WORDS {
        return Err(WriteError::Crowded);
    }
    let mut words = std::mem::take(page).into_vec();
    let grown = capacity - words.len();
    let more = words.try_reserve_exact(grown);
    if more.is_ok() {
        words.resize(capacity, 0);
    }
    *page = words.into_boxed_slice();
    match more {
        Ok(()) => Ok(grown),
        Err(_) => Err(OutOfMemory { bytes: capacity as u64 * 8 }.into()),
    }
}

pub(super) fn reserved<T>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut words = Vec::new();
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    words.try_reserve_exact(len).map_err(|_| OutOfMemory { bytes })?;
    Ok(words)
}
