//! The clock of a window determines the current slice and the remembered slices.

use std::ops::Range;
use std::time::Duration;

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::error::PlanError;
use crate::plan::kind::Kind;

/// The minimum time, or number of items, during which a window filter remembers an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Span {
    /// Milliseconds of the time that the caller passes to
    /// [`Window::advance`](crate::Window::advance).
    Millis(u64),
    /// The minimum number of later items that the filter stores before it forgets an item.
    Items(u64),
}

impl From<Duration> for Span {
    /// Returns the span of a duration, rounded up to whole milliseconds.
    fn from(duration: Duration) -> Self {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        Span::Millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

/// The highest slice number. With the limit `LATEST`, the sum of two slice numbers does not
/// overflow.
const LATEST: u64 = u64::MAX / 2;

/// The state of a window, stored in the first line of its words:
///
/// ```text
/// word 0          1      2                 3                       4                5       6, 7
///      | slice of | span | 1 if a time,    | stored in the present | slices from    | phase | zeros |
///      | the      |      | 2 if repeats    | slice; or 1 if items  | word 0 to the  |       |       |
///      | memory   |      | refresh, 4 if   | came before the first | current slice  |       |       |
///      |          |      | no time came yet| time                  |                |       |       |
/// ```
///
/// Slice `g` has the block `(g + phase) % slots` of each place. The items that come before the first
/// time are in block 0. The first time is in some slice `g`, and the phase gives `g` the block 0.
///
/// The first insert into a slice clears the memory of the slice. Before the first insert into a
/// slice, the slice of the clock may be newer than the slice of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    slices: u32,
    pub(super) span: Span,
    pub(super) refreshes: bool,
    // The number of the newest slice whose memory is cleared for inserts.
    memory: u64,
    // The number of the current slice. Invariant: `present` is at least `memory`.
    present: u64,
    // If the span is a number of items: the number of items stored in the current slice. If the span
    // is a time: 1 if items were stored before the first call of `advance`, and 0 after this call.
    stored: u64,
    // Whether the span is a time and `advance` was not called yet. Invariant: `memory`, `present` and
    // `phase` are then 0.
    awaits_time: bool,
    // The distance from the number of a slice to its block, below the number of slots.
    phase: u64,
    // The number of items after which a slice is full, if the span is a number of items. If the
    // span is a time, `full_at` is `u64::MAX`.
    full_at: u64,
}

impl Clock {
    /// The number of words of the state.
    pub(super) const WORDS: usize = 8;

    pub(super) fn new(slices: u32, span: Span) -> Self {
        let span = match span {
            Span::Millis(span) => Span::Millis(span.max(1)),
            Span::Items(span) => Span::Items(span.max(1)),
        };
        let (awaits_time, full_at) = match span {
            Span::Millis(_) => (true, u64::MAX),
            Span::Items(span) => (false, span.div_ceil(u64::from(slices))),
        };
        Self {
            slices,
            span,
            refreshes: false,
            memory: 0,
            present: 0,
            stored: 0,
            awaits_time,
            phase: 0,
            full_at,
        }
    }

    /// Reads the state from words, which may come from an attacker.
    pub(super) fn read(slices: u32, words: &[u64]) -> Result<Self, PlanError> {
        let refused = |reason| PlanError::Words { kind: Kind::Window, reason };
        let [memory, span, flags, stored, passed, phase, zeros @ ..] = words else {
            return Err(refused("the clock is missing"));
        };
        if zeros.iter().take(Self::WORDS - 6).any(|&word| word != 0) {
            return Err(refused("the end of the clock is not zero"));
        }
        if *flags > 7 {
            return Err(refused("the clock has unknown flags"));
        }
        let is_time = flags & 1 == 1;
        if *span == 0 {
            return Err(refused("the clock has no span"));
        }
        let span = if is_time { Span::Millis(*span) } else { Span::Items(*span) };
        let clock = Self { refreshes: flags & 2 == 2, ..Self::new(slices, span) };
        let present = memory.checked_add(*passed).filter(|&present| present <= LATEST);
        let Some(present) = present else {
            return Err(refused("the number of the present slice is too high"));
        };
        if *phase > 0 && (!is_time || *phase >= clock.slots() as u64) {
            return Err(refused("the phase of the slices is too high"));
        }
        let awaits_time = flags & 4 == 4;
        if awaits_time && (!is_time || present > 0 || *phase > 0) {
            return Err(refused("the clock has a time and awaits its first time"));
        }
        let most = if is_time { u64::from(awaits_time) } else { clock.full_at };
        if *stored > most {
            return Err(refused("the present slice has more than its share of items"));
        }
        let (memory, stored, phase) = (*memory, *stored, *phase);
        Ok(Self { memory, present, stored, awaits_time, phase, ..clock })
    }

    /// Returns the state as words.
    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        let (is_time, span) = match self.span {
            Span::Millis(span) => (1, span),
            Span::Items(span) => (0, span),
        };
        let flags = is_time | u64::from(self.refreshes) << 1 | u64::from(self.awaits_time) << 2;
        [self.memory, span, flags, self.stored, self.present - self.memory, self.phase, 0, 0]
    }

    /// Returns the number of blocks at a place: the number of slices of the span plus one.
    #[inline(always)]
    pub(super) fn slots(&self) -> usize {
        self.slices as usize + 1
    }

    /// Returns the milliseconds or the number of items of a slice. The result is rounded up, so
    /// that all slices together last at least the span.
    fn slice_span(&self) -> u64 {
        let (Span::Millis(span) | Span::Items(span)) = self.span;
        span.div_ceil(u64::from(self.slices))
    }

    /// Returns the number of a slice's block in a place.
    #[inline(always)]
    fn slot_of(&self, slice: u64) -> usize {
        ((slice + self.phase) % self.slots() as u64) as usize
    }

    /// Returns the number of the current slice's block in a place.
    #[inline(always)]
    pub(super) fn slot(&self) -> usize {
        self.slot_of(self.present)
    }

    pub(super) fn advance(&mut self, now_millis: u64) {
        if let Span::Millis(_) = self.span {
            self.advance_to(now_millis / self.slice_span());
        }
    }

    /// Sets the current slice of a window of time.
    fn advance_to(&mut self, now: u64) {
        let now = now.min(LATEST);
        if self.awaits_time && self.stored > 0 {
            let slots = self.slots() as u64;
            (self.memory, self.stored) = (now, 0);
            self.phase = (slots - now % slots) % slots;
        }
        self.awaits_time = false;
        self.present = self.present.max(now);
    }

    /// Returns how many items may still be stored in the current slice. A slice of time is never full.
    #[inline(always)]
    pub(super) fn room(&self) -> u64 {
        self.full_at - self.stored
    }

    /// Begins the next slice of a window of items.
    pub(super) fn next_slice(&mut self) {
        if self.present >= LATEST {
            // Only a crafted file contains the slice number `LATEST`. The clock continues at a low
            // number, because a file with a slice number above `LATEST` cannot be read. With a span
            // of items, only the slice number modulo the number of slots matters.
            let slots = self.slots() as u64;
            let behind = (self.present - self.memory).min(slots);
            self.memory = self.memory % slots + slots;
            self.present = self.memory + behind;
        }
        self.stored = 0;
        self.present += 1;
    }

    /// Restarts the current slice, after its memory was cleared.
    pub(super) fn clear(&mut self) {
        (self.memory, self.stored) = (self.present, 0);
    }

    /// Counts items that were stored in the current slice.
    #[inline(always)]
    pub(super) fn count(&mut self, stored: u64) {
        if self.full_at != u64::MAX {
            self.stored += stored;
        } else if self.awaits_time && stored > 0 {
            self.stored = 1;
        }
    }

    /// Prepares the memory for the current slice. Returns the slots that the caller must clear. The
    /// slots are numbered modulo the number of slots.
    pub(super) fn turn(&mut self) -> Range<usize> {
        let slots = self.slots();
        let behind = (self.present.wrapping_sub(self.memory)).min(slots as u64) as usize;
        // The range contains the blocks of the last `behind` slices, including the current slice.
        let last = self.slot() + slots;
        self.memory = self.present;
        last + 1 - behind..last + 1
    }

    /// Returns true if no block is outside the window.
    #[inline(always)]
    pub(super) fn all_live(&self) -> bool {
        self.memory == self.present
    }

    /// Returns true if the items of this slot's block are still remembered.
    pub(super) fn is_live(&self, slot: usize) -> bool {
        let slots = self.slots() as u64;
        let behind = self.present.wrapping_sub(self.memory);
        // `age` is the number of slices from the slice of this block to the slice of the memory.
        let age = (self.slot_of(self.memory) as u64 + slots - slot as u64) % slots;
        behind < slots && age + behind < slots
    }

    /// Merges another window's clock. Returns the pairs of blocks to join, this window's block
    /// first. Returns `None` if the windows have different spans, or if only one of the windows
    /// refreshes items. `is_other_empty` tests whether the current slice of the other window has no
    /// items.
    pub(super) fn merge(
        &mut self,
        other: &Clock,
        is_other_empty: impl FnOnce() -> bool,
    ) -> Option<Vec<(usize, usize)>> {
        if (self.slices, self.span, self.refreshes) != (other.slices, other.span, other.refreshes) {
            return None;
        }
        let slots = self.slots() as u64;
        match self.span {
            Span::Millis(_) if self.awaits_time && other.awaits_time => self.stored |= other.stored,
            Span::Millis(_) if other.awaits_time => {
                // The items of the other window count as inserted now.
                return Some(if other.stored > 0 { vec![(self.slot(), 0)] } else { Vec::new() });
            }
            Span::Millis(_) => self.advance_to(other.present),
            // The current slice of the merged window ends when the later of the two current slices
            // ends. If the slice ended with the earlier of the two slices, the merged window would
            // forget items of one window too early.
            Span::Items(_) if other.stored < self.stored && !is_other_empty() => {
                self.stored = other.stored;
            }
            Span::Items(_) => {}
        }
        let mut pairs = Vec::new();
        for back in 0..slots {
            // `age` is the number of slices from the slice of these items to the current slice, in
            // this window.
            let age = match self.span {
                // Slices before number 0 do not exist.
                Span::Millis(_) if other.memory < back => break,
                Span::Millis(_) => self.present - (other.memory - back),
                // The blocks of a window of items have ages also before slice number 0: a merge into
                // a new window joins the blocks by age.
                Span::Items(_) => back,
            };
            if age < slots {
                let here = (self.slot() as u64 + slots - age) % slots;
                let there = (other.slot_of(other.memory) as u64 + slots - back) % slots;
                pairs.push((here as usize, there as usize));
            }
        }
        Some(pairs)
    }

    /// Returns the time at which the slice of the last insert began. Returns `None` if the span is
    /// a number of items.
    pub(super) fn stored_millis(&self) -> Option<u64> {
        matches!(self.span, Span::Millis(_)).then(|| self.memory.saturating_mul(self.slice_span()))
    }

    /// Returns the time at which the current slice began. Returns `None` if the span is a number of
    /// items.
    pub(super) fn began_millis(&self) -> Option<u64> {
        matches!(self.span, Span::Millis(_)).then(|| self.present.saturating_mul(self.slice_span()))
    }
}
