//! A page stores the prefixes of 512 quotients, in adjacent blocks. A quotient is a group of hash
//! bits after the address.
//!
//! ```text
//! word 0                4        start of block 1            used words
//!      | 16 × u16 starts | block 0 | block 1 | ... | block 15 | spare
//!
//! block, bit 0                                                        its last bit
//!      | 1 | 0…01 for each of 32 quotients | 0…0 | entry n−1 | ... | entry 0 |
//! ```
//!
//! Slot `b` of the starts contains the number of the first word of block `b`. Block 0 always starts
//! at word 4, so slot 0 stores the end of the last block instead of the start of block 0. In the
//! code of a block, each quotient has one zero for each of its entries. Entry `i` ends `i` entries
//! before the last bit of the block, so the position of an entry does not depend on the number of
//! entries. Between the code and the entries, a block has fewer than 64 zeros.
//!
//! In memory, the directory of a table contains a copy of the starts of each page. Because of the
//! copy, a lookup reads the directory and then the block, without waiting for the header of the
//! page (`pages.rs`). If the table is read from the words of a file, the lookup uses the starts in
//! the page.
//!
//! An entry of F bits consists of the remainder, a one, and zeros. When the filter grows, bits of
//! the remainders move to the address, so older entries have shorter remainders than new entries
//! (Dayan, Bercea, Reviriego, Pagh, "InfiniFilter", 2023, §4). The entries of a quotient are in
//! ascending order.

use std::hint::select_unpredictable;

use crate::arch::prefetch::prefetch_index;
use crate::arch::select::Select;

/// The number of bits of a hash that select the quotient in its page.
pub(super) const QUOTIENT_BITS: u32 = BLOCK_NUMBER_BITS + QUOTIENT_IN_BLOCK_BITS;

/// The number of quotients in a page.
pub(super) const QUOTIENTS: usize = 1 << QUOTIENT_BITS;

/// The number of blocks in a page.
pub(super) const BLOCKS: usize = 1 << BLOCK_NUMBER_BITS;

/// The number of quotients in a block.
pub(super) const BLOCK_QUOTIENTS: usize = 1 << QUOTIENT_IN_BLOCK_BITS;

const BLOCK_NUMBER_BITS: u32 = 4;
const QUOTIENT_IN_BLOCK_BITS: u32 = 5;

/// The number of words before the first block.
pub(super) const HEAD_WORDS: usize = BLOCKS / 4;

/// The words that contain the starts of the blocks.
pub(super) type Head = [u64; HEAD_WORDS];

/// The number of words of a page without entries.
pub(super) const EMPTY_WORDS: usize = HEAD_WORDS + BLOCKS;

/// The maximum number of words of a page, because words are numbered in 16 bits. With uniform
/// hashes, a page has far fewer words than `MAX_WORDS`.
pub(super) const MAX_WORDS: usize = u16::MAX as usize;

/// A page with `CROWDED_WORDS` words accepts no more entries. With uniform hashes, a page has at
/// most a twelfth of `CROWDED_WORDS` words.
///
/// An insert into a long page moves half of the page, so the limit also bounds the time of inserts
/// if an attacker chooses the hashes. The limit is far below [`MAX_WORDS`], so that a page can
/// always split. In the worst case, one half of a split page gets all entries, and each entry is up
/// to two bits longer than before. Even in the worst case of a split, each half has at most
/// [`MAX_WORDS`] words. The limit is important because a page that cannot split would block the
/// splits of all other pages.
pub(super) const CROWDED_WORDS: usize = 1 << 14;

/// The code of a block without entries.
const EMPTY_CODE: u64 = (1 << (BLOCK_QUOTIENTS + 1)) - 1;

/// The maximum number of bits of an entry. An entry is shorter than a word, so one window of 64
/// bits contains any entry.
pub(super) const ENTRY_BITS_MAX: u32 = 56;

/// The width of entries, and the constants for comparing several entries at once. For a comparison,
/// a word contains as many whole entries as fit in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// F: the number of bits of an entry.
    pub entry_bits: u32,
    /// The number of entries that fit in a word. The first entry is in the highest bits.
    pub lanes: u32,
    /// The mask of the lowest bit of each lane, and the mask of the highest bit of each lane. A
    /// lane is the place of an entry in a word.
    lows: u64,
    highs: u64,
}

impl Form {
    /// Returns the form in which a new entry has a remainder of `remainder_bits` bits.
    pub fn of(remainder_bits: u32) -> Self {
        let entry_bits = remainder_bits + 1;
        // All lanes together have fewer than 64 bits, so a shift by the width of all lanes is
        // valid.
        let lanes = 63 / entry_bits;
        let lows = (1..=lanes).fold(0, |lows, lane| lows | 1 << (64 - lane * entry_bits));
        Self { entry_bits, lanes, lows, highs: lows << (entry_bits - 1) }
    }

    /// Returns the entries of a run in the highest bits of a word. All bits of the word below the
    /// entries are zero. Returns `None` if the entries do not fit in a word.
    #[inline(always)]
    pub fn run_window(&self, page: &[u64], end: usize, first: usize, len: usize) -> Option<u64> {
        let others = u64::MAX.checked_shr(len as u32 * self.entry_bits)?;
        (len <= self.lanes as usize).then(|| window(page, end, first, self).unwrap_or(0) & !others)
    }

    /// Returns the mask of the highest bit of each lane.
    #[inline(always)]
    pub fn highs(&self) -> u64 {
        self.highs
    }

    /// Removes the highest bit of each of the `len` entries of a window, and counts the entries
    /// whose highest bit was set. Returns `None` if an entry has no set bit except its highest bit.
    #[inline(always)]
    pub fn halve(&self, window: u64, len: usize) -> Option<(u64, usize)> {
        let others = u64::MAX >> (len as u32 * self.entry_bits);
        let left = (window & !self.highs) | others;
        let is_gone = left.wrapping_sub(self.lows) & !left & self.highs != 0;
        let in_second = (window & self.highs).count_ones() as usize;
        (!is_gone).then_some(((window & !self.highs) << 1, in_second))
    }

    /// Tests whether at least one of the first `len` entries of a window covers the new entry
    /// `query`.
    #[inline(always)]
    fn any_covers(&self, window: u64, len: u32, query: u64) -> bool {
        let others = u64::MAX >> (len * self.entry_bits);
        // An entry is zero only in words from other sources, so in valid words no lane borrows from
        // the next higher lane.
        let entries = window | others;
        let after_remainder = entries ^ entries.wrapping_sub(self.lows);
        let differs = (entries ^ query.wrapping_mul(self.lows)) & !after_remainder | others;
        // The result contains the highest bit of the lowest lane without a difference. If all lanes
        // have a difference, the result is zero.
        differs.wrapping_sub(self.lows) & !differs & self.highs != 0
    }

    /// Counts how many of the first `len` entries of a window are smaller than `entry`.
    #[inline(always)]
    pub fn count_smaller(&self, window: u64, len: u32, entry: u64) -> usize {
        let others = u64::MAX >> (len * self.entry_bits);
        let entries = entry.wrapping_mul(self.lows);
        // Without their highest bits, the lanes can be subtracted without a borrow. The highest
        // bits of the lanes are compared separately.
        let not_smaller = (window | self.highs).wrapping_sub(entries & !self.highs);
        let is_smaller = (!window & entries) | (!(window ^ entries) & !not_smaller);
        (is_smaller & self.highs & !others).count_ones() as usize
    }
}

/// The place of an item in its page: the quotient, and the entry for comparisons.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The number of the quotient in the page: the block number, followed by the quotient in the
    /// block.
    pub quotient: usize,
    /// The new entry: the remainder, followed by a one.
    pub entry: u64,
}

impl Place {
    /// Returns the place of a hash after its address bits were shifted out. The remainder of the
    /// place has as many bits as the form allows.
    #[inline(always)]
    pub fn of(rest: u64, form: &Form) -> Self {
        let quotient = (rest >> (64 - QUOTIENT_BITS)) as usize;
        Self { quotient, entry: rest << QUOTIENT_BITS >> (64 - form.entry_bits) | 1 }
    }
}

/// The entries of a quotient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The number of the first word of the block that contains the run.
    pub start: usize,
    pub end: usize,
    /// The number of the first bit of the run in the code.
    pub code_at: usize,
    /// The number of the run's first entry in the block, and the number of entries of the run.
    pub first: usize,
    pub len: usize,
}

/// Returns the block number of a hash after its address bits were shifted out.
#[inline(always)]
pub(super) fn block_of(rest: u64) -> usize {
    (rest >> (64 - BLOCK_NUMBER_BITS)) as usize
}

/// Returns the range of words of a block: the first word and the end.
#[inline(always)]
pub(super) fn bounds(head: &Head, block: usize) -> (usize, usize) {
    let slot = |block: usize| (head[block / 4 % HEAD_WORDS] >> (block % 4 * 16) & 0xffff) as usize;
    // The function has no branches, because the block number is random and the CPU would mispredict
    // a branch.
    let start = select_unpredictable(block == 0, HEAD_WORDS, slot(block));
    (start, slot((block + 1) % BLOCKS))
}

/// Like [`bounds`], but uses the header in the page.
#[inline(always)]
pub(super) fn block_bounds(page: &[u64], block: usize) -> (usize, usize) {
    page.first_chunk().map_or((0, 0), |head| bounds(head, block))
}

/// Adds one word to the length of a block, in the header of a page. The end of the block and all
/// later blocks move by one word. No slot overflows if fewer than [`MAX_WORDS`] words were in use.
#[inline(always)]
pub(super) fn lengthen(head: &mut Head, block: usize) {
    // Adds one to slot 0, which is the end of the last block, and to the slots of later blocks.
    head[0] += 1;
    for (first, word) in (0..BLOCKS).step_by(4).zip(head) {
        let before = (block + 1).clamp(first, first + 4) - first;
        let later =
            0x0001_0001_0001_0001_u64 & u64::MAX.checked_shl(before as u32 * 16).unwrap_or(0);
        *word += later;
    }
}

/// Returns how many words of a page are in use.
#[inline(always)]
pub(super) fn used_words(page: &[u64]) -> usize {
    page.first().copied().unwrap_or(0) as usize & 0xffff
}

/// Prefetches the words of a page that contain the starts of its blocks.
#[inline(always)]
pub(super) fn prefetch_head(page: &[u64]) {
    prefetch_index(page, 0);
    prefetch_index(page, HEAD_WORDS - 1);
}

/// Prefetches a block.
#[inline(always)]
pub(super) fn prefetch_block(page: &[u64], (start, end): (usize, usize)) {
    prefetch_index(page, start);
    prefetch_index(page, end.wrapping_sub(1));
}

/// Tests whether an entry of the block covers a new entry. Never panics, even if the words are
/// invalid.
#[inline(always)]
pub(super) fn contains(
    page: &[u64],
    (start, end): (usize, usize),
    form: &Form,
    select: Select,
    place: Place,
) -> bool {
    if let Some((window, len)) = near_window(page, start, end, form, select, place.quotient) {
        return form.any_covers(window, len, place.entry);
    }
    contains_far(page, start, end, form, place)
}

/// Returns the entries of a quotient and their number. The first entry is in the highest bits of a
/// word. Returns `None` if the run is long or is far from the start of the code.
#[inline(always)]
fn near_window(
    page: &[u64],
    start: usize,
    end: usize,
    form: &Form,
    select: Select,
    quotient: usize,
) -> Option<(u64, u32)> {
    let (code_at, len) = run_in_two_words(page, start, select, quotient)?;
    let first = code_at - quotient % BLOCK_QUOTIENTS - 1;
    let window = window(page, end, first, form)?;
    (len <= form.lanes as usize).then_some((window, len as u32))
}

/// Returns the entries of a block that ends at word `end`, starting with entry number `first`. The
/// first entry is in the highest bits of the result.
#[inline(always)]
pub(super) fn window(page: &[u64], end: usize, first: usize, form: &Form) -> Option<u64> {
    let at = first * form.entry_bits as usize;
    let &[low, high] = page.get(end.wrapping_sub(2 + at / 64)..)?.first_chunk()?;
    Some(high << (at % 64) | low >> 1 >> (63 - at % 64))
}

/// Returns the position of the first zero of a quotient in the code at word `start`, and the number
/// of zeros of the quotient. Returns `None` unless the first two words of the code contain all
/// zeros of the quotient. The result is `None` only for a few quotients at the end of a block that
/// is about to split.
#[inline(always)]
fn run_in_two_words(
    page: &[u64],
    start: usize,
    select: Select,
    quotient: usize,
) -> Option<(usize, usize)> {
    // The slice may extend into the next block. The code of a valid block ends before the next
    // block.
    let &[zeroth, first, second] = page.get(start..)?.first_chunk()?;
    // The zeros of quotient `k` of the block follow the set bit with number `k` in the code.
    let k = (quotient % BLOCK_QUOTIENTS) as u32;
    let ones = select.count_ones(zeroth);
    // This function has no branch here, because the CPU cannot predict which word contains the run.
    let is_later = k >= ones;
    let this = select_unpredictable(is_later, first, zeroth);
    let next = select_unpredictable(is_later, second, first);
    let at = select.select(this, k - select_unpredictable(is_later, ones, 0));
    let after = this >> 1 >> (at & 63) | next << (!at & 63);
    if at == 64 || after == 0 {
        return None;
    }
    let base = select_unpredictable(is_later, 65, 1);
    Some((base + at as usize, after.trailing_zeros() as usize))
}

/// Like [`run_in_two_words`], but for a code of any length. Reads the words one by one. Returns
/// `None` if the code is incomplete, which happens only in words from other sources.
fn run_in_words(block: &[u64], quotient: usize) -> Option<(usize, usize)> {
    let mut k = quotient % BLOCK_QUOTIENTS;
    let mut ones = block.iter().enumerate().flat_map(|(i, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let at = (left != 0).then(|| i * 64 + left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            at
        })
    });
    let code_at = loop {
        let at = ones.next()?;
        if k == 0 {
            break at + 1;
        }
        k -= 1;
    };
    Some((code_at, ones.next()? - code_at))
}

/// Like [`contains`], for a run that is long or far from the start of the code.
#[cold]
#[inline(never)]
fn contains_far(page: &[u64], start: usize, end: usize, form: &Form, place: Place) -> bool {
    let block = page.get(start..end).unwrap_or_default();
    let Some((code_at, mut len)) = run_in_words(block, place.quotient) else { return false };
    // The subtraction saturates, because the difference may be negative in words from other
    // sources.
    let mut first = (code_at - 1).saturating_sub(place.quotient % BLOCK_QUOTIENTS);
    let lanes = form.lanes as usize;
    while len > 0 {
        let now = len.min(lanes);
        let window = window(page, end, first, form).unwrap_or(0);
        if form.any_covers(window, now as u32, place.entry) {
            return true;
        }
        first += now;
        len -= now;
    }
    false
}

/// Returns the run of a quotient, given its block. The page must be valid. Pages that this module
/// has written are valid.
#[inline(always)]
pub(super) fn run(
    page: &[u64],
    (start, end): (usize, usize),
    select: Select,
    quotient: usize,
) -> Run {
    let (code_at, len) = run_in_two_words(page, start, select, quotient)
        .or_else(|| run_in_words(&page[start..end], quotient))
        .expect("a valid page has a complete code");
    Run { start, end, code_at, first: code_at - 1 - quotient % BLOCK_QUOTIENTS, len }
}

/// Tests whether an entry of the run covers a new entry.
#[inline(always)]
pub(super) fn run_covers(page: &[u64], form: &Form, run: &Run, entry: u64) -> bool {
    let lanes = form.lanes as usize;
    let (mut first, mut len) = (run.first, run.len);
    loop {
        let now = len.min(lanes);
        let window = window(page, run.end, first, form).unwrap_or(0);
        if form.any_covers(window, now as u32, entry) {
            return true;
        }
        first += now;
        len -= now;
        if len == 0 {
            return false;
        }
    }
}

/// Returns entry `number` of the block that ends at word `end`.
#[inline(always)]
pub(super) fn entry(page: &[u64], end: usize, number: usize, form: &Form) -> u64 {
    window(page, end, number, form).unwrap_or(0) >> (64 - form.entry_bits)
}

/// Returns the number of bits of a block's code: 33, plus one for each entry.
#[inline(always)]
pub(super) fn code_bits(block: &[u64], select: Select) -> usize {
    if let &[zeroth, first, ..] = block {
        let k = BLOCK_QUOTIENTS as u32;
        let ones = select.count_ones(zeroth);
        // This function has no branch here, because the CPU cannot predict which word contains the
        // result.
        let is_later = k >= ones;
        let this = select_unpredictable(is_later, first, zeroth);
        let at = select.select(this, k - select_unpredictable(is_later, ones, 0));
        if at < 64 {
            return select_unpredictable(is_later, 65, 1) + at as usize;
        }
    }
    code_bits_far(block)
}

#[cold]
fn code_bits_far(block: &[u64]) -> usize {
    let mut left = BLOCK_QUOTIENTS as u32 + 1;
    for (i, &word) in block.iter().enumerate() {
        let ones = word.count_ones();
        if ones >= left {
            let last = (0..left - 1).fold(word, |word, _| word & (word - 1));
            return i * 64 + last.trailing_zeros() as usize + 1;
        }
        left -= ones;
    }
    block.len() * 64
}

/// Writes an empty page.
pub(super) fn clear(page: &mut [u64]) {
    page.fill(0);
    for block in 0..BLOCKS {
        set_block_end(page, block, HEAD_WORDS + block + 1);
    }
    page[HEAD_WORDS..EMPTY_WORDS].fill(EMPTY_CODE);
}

/// Writes the end of a block to the slot of the block in the header. The slot must be zero before
/// the call.
pub(super) fn set_block_end(page: &mut [u64], block: usize, end: usize) {
    let slot = (block + 1) % BLOCKS;
    page[slot / 4] |= (end as u64) << (slot % 4 * 16);
}

/// Tests whether `entry` covers all hashes that `other` covers.
#[inline]
pub(super) fn covers(entry: u64, other: u64) -> bool {
    let after_remainder = entry ^ entry.wrapping_sub(1);
    (entry ^ other) & !after_remainder == 0 && entry.trailing_zeros() >= other.trailing_zeros()
}

/// Counts the entries of a valid page.
pub(super) fn count_entries(page: &[u64], select: Select) -> u64 {
    (0..BLOCKS)
        .map(|block| {
            let (start, end) = block_bounds(page, block);
            (code_bits(&page[start..end], select) - (BLOCK_QUOTIENTS + 1)) as u64
        })
        .sum()
}
