//! Ranges of a string, whose ends may be counted from its end.

use std::ops::Range;

use crate::argv::is;
use crate::text::{self, Text};

/// What a range counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte,
    Bit,
}

impl Unit {
    /// Reads `BYTE` or `BIT`.
    pub(crate) fn parse(word: &[u8]) -> Result<Self, Text> {
        match word {
            _ if is(word, "BYTE") => Ok(Unit::Byte),
            _ if is(word, "BIT") => Ok(Unit::Bit),
            _ => Err(text::SYNTAX),
        }
    }

    /// Returns the bits from `start` to `end`, both included, of a string of `len` bytes.
    pub(super) fn range(self, start: i64, end: i64, len: usize) -> Option<Range<u64>> {
        match self {
            Unit::Byte => places(start, end, len as u64).map(|it| it.start * 8..it.end * 8),
            Unit::Bit => places(start, end, len as u64 * 8),
        }
    }
}

/// Returns the places from `start` to `end`, both included, of `len`; those below zero count from the end. `None` if
/// there is none in the string.
pub(crate) fn places(start: i64, end: i64, len: u64) -> Option<Range<u64>> {
    let from_start =
        |at: i64| if at < 0 { len.saturating_sub(at.unsigned_abs()) } else { at.unsigned_abs() };
    let (start, end) = (from_start(start), from_start(end).saturating_add(1).min(len));
    (start < end).then_some(start..end)
}

/// Returns whether both places count from the end and are in the wrong order. Both may lie before the start, which otherwise
/// stands for the first place.
pub(crate) fn is_backwards(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}
