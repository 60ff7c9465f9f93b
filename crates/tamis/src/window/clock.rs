//! Which slice of a window is the present one, and which are still remembered.

use std::ops::Range;

use crate::kind::Kind;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::PlanError;

/// For how long a window filter remembers an item, at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// So many milliseconds of the time that [`Window::advance`](crate::Window::advance) is told.
    Millis(u64),
    /// Until so many other items were stored.
    Items(u64),
}

/// The highest number of a slice: so that numbers can be added up.
const LATEST: u64 = u64::MAX / 2;

/// The state of a window, kept in the first line of its words:
///
/// ```text
/// word 0         1      2               3                       4 to 7
///      | present | span | 1 if a time,  | stored in the present | zeros |
///      | slice   |      | 2 if repeats  | slice, if items are   |       |
///      |         |      | refresh       | counted               |       |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    slices: u32,
    pub(super) span: Span,
    pub(super) refreshes: bool,
    // The number of the slice that the memory is ready for.
    memory: u64,
    // The number of the present slice. Invariant: at least `memory`.
    present: u64,
    // Items stored in the present slice, where they are counted.
    stored: u64,
    // How many it takes, where they are counted; else no number.
    full_at: u64,
}

impl Clock {
    /// The words of the line.
    pub(super) const WORDS: usize = 8;

    pub(super) fn new(slices: u32, span: Span) -> Self {
        let span = match span {
            Span::Millis(span) => Span::Millis(span.max(1)),
            Span::Items(span) => Span::Items(span.max(1)),
        };
        let full_at = match span {
            Span::Millis(_) => u64::MAX,
            Span::Items(span) => span.div_ceil(u64::from(slices)),
        };
        Self { slices, span, refreshes: false, memory: 0, present: 0, stored: 0, full_at }
    }

    /// Reads the line, which may be hostile.
    pub(super) fn read(slices: u32, words: &[u64]) -> Result<Self, PlanError> {
        let refused = |reason| PlanError::Words { kind: Kind::Window, reason };
        let [present, span, flags, stored, zeros @ ..] = words else {
            return Err(refused("there is no clock"));
        };
        if zeros.iter().take(Self::WORDS - 4).any(|&word| word != 0) {
            return Err(refused("the end of the clock is not zero"));
        }
        if *flags > 3 {
            return Err(refused("the clock has unknown flags"));
        }
        let is_time = flags & 1 == 1;
        if *span == 0 || (is_time && *stored > 0) {
            return Err(refused("the clock has no span, or counts where it tells the time"));
        }
        let span = if is_time { Span::Millis(*span) } else { Span::Items(*span) };
        let clock = Self { refreshes: flags & 2 == 2, ..Self::new(slices, span) };
        if *present > LATEST {
            return Err(refused("the clock is far beyond all time"));
        }
        if *stored > clock.full_at {
            return Err(refused("the present slice holds more than its share"));
        }
        Ok(Self { memory: *present, present: *present, stored: *stored, ..clock })
    }

    /// Returns the line: the time for which the memory is ready, so that nothing out of the window
    /// comes back.
    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        let (is_time, span) = match self.span {
            Span::Millis(span) => (1, span),
            Span::Items(span) => (0, span),
        };
        let flags = is_time | u64::from(self.refreshes) << 1;
        [self.memory, span, flags, self.stored, 0, 0, 0, 0]
    }

    /// Blocks at a place: a slice more than the span has.
    #[inline(always)]
    pub(super) fn slots(&self) -> usize {
        self.slices as usize + 1
    }

    /// The time or the items of a slice: rounded up, so that all slices are no less than the span.
    fn slice_span(&self) -> u64 {
        let (Span::Millis(span) | Span::Items(span)) = self.span;
        span.div_ceil(u64::from(self.slices))
    }

    /// The block of the present slice.
    #[inline(always)]
    pub(super) fn slot(&self) -> usize {
        (self.present % self.slots() as u64) as usize
    }

    pub(super) fn advance(&mut self, now_millis: u64) {
        if let Span::Millis(_) = self.span {
            self.present = self.present.max((now_millis / self.slice_span()).min(LATEST));
        }
    }

    /// Returns how many items may still be stored in the present slice.
    #[inline(always)]
    pub(super) fn room(&self) -> u64 {
        self.full_at - self.stored
    }

    pub(super) fn next_slice(&mut self) {
        self.stored = 0;
        self.present = self.present.wrapping_add(1);
    }

    /// Starts the present slice again, in memory that was cleared.
    pub(super) fn clear(&mut self) {
        (self.memory, self.stored) = (self.present, 0);
    }

    /// Counts items that were stored in the present slice.
    #[inline(always)]
    pub(super) fn count(&mut self, stored: u64) {
        // Where the time is told nothing is counted.
        if self.full_at != u64::MAX {
            self.stored += stored;
        }
    }

    /// Makes the memory ready for the present slice: returns the slots to be cleared, modulo all of them.
    pub(super) fn turn(&mut self) -> Range<usize> {
        let slots = self.slots();
        let behind = (self.present.wrapping_sub(self.memory)).min(slots as u64) as usize;
        // The blocks of the slices that end up in memory, of the last `behind` numbers.
        let last = (self.present % slots as u64) as usize + slots;
        self.memory = self.present;
        last + 1 - behind..last + 1
    }

    /// Tells whether no block is out of the window.
    #[inline(always)]
    pub(super) fn all_live(&self) -> bool {
        self.memory == self.present
    }

    /// Tells whether the items of this block are still remembered.
    pub(super) fn is_live(&self, slot: usize) -> bool {
        let slots = self.slots() as u64;
        let behind = self.present.wrapping_sub(self.memory);
        // How many slices before that of the memory this block's is.
        let age = (self.memory % slots + slots - slot as u64) % slots;
        behind < slots && age + behind < slots
    }

    /// Joins another window's clock; returns which blocks go together, this window's and the other's, or
    /// `None` if the windows differ in kind.
    pub(super) fn merge(&mut self, other: &Clock) -> Option<Vec<(usize, usize)>> {
        if (self.slices, self.span, self.refreshes) != (other.slices, other.span, other.refreshes) {
            return None;
        }
        let slots = self.slots() as u64;
        match self.span {
            Span::Millis(_) => self.present = self.present.max(other.present),
            // The present slice lasts as long as either's would: cut short, it would cut short how long the other's
            // items are remembered.
            Span::Items(_) => self.stored = self.stored.min(other.stored),
        }
        let mut pairs = Vec::new();
        for back in 0..slots {
            // Slices before number 0 have never been.
            let Some(number) = other.memory.checked_sub(back) else { break };
            // How many slices before the present one these items are here.
            let age = match self.span {
                Span::Millis(_) => self.present - number,
                Span::Items(_) => back,
            };
            if age < slots {
                let here = (self.present % slots + slots - age) % slots;
                pairs.push((here as usize, (number % slots) as usize));
            }
        }
        Some(pairs)
    }

    /// Returns when the present slice began, where time is told.
    pub(super) fn began_millis(&self) -> Option<u64> {
        matches!(self.span, Span::Millis(_)).then(|| self.present.saturating_mul(self.slice_span()))
    }
}
