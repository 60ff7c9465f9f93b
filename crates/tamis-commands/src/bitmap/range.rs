//! Computes ranges of a string. A negative index counts from the end.

use std::ops::Range;

use crate::command::argv::is;
use crate::text::{self, Text};

/// The unit of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte,
    Bit,
}

impl Unit {
    /// Parses `BYTE` or `BIT`.
    pub(crate) fn parse(word: &[u8]) -> Result<Self, Text> {
        match word {
            _ if is(word, "BYTE") => Ok(Unit::Byte),
            _ if is(word, "BIT") => Ok(Unit::Bit),
            _ => Err(text::SYNTAX),
        }
    }

    /// Returns the range of bits from `start` to `end`, both included, in a string of `len` bytes.
    pub(super) fn range(self, start: i64, end: i64, len: usize) -> Option<Range<u64>> {
        match self {
            Unit::Byte => places(start, end, len as u64).map(|it| it.start * 8..it.end * 8),
            Unit::Bit => places(start, end, len as u64 * 8),
        }
    }
}

/// Returns the positions from `start` to `end`, both included, below `len`. A negative position counts from the end.
/// Returns `None` if the range is empty.
pub(crate) fn places(start: i64, end: i64, len: u64) -> Option<Range<u64>> {
    let from_start =
        |at: i64| if at < 0 { len.saturating_sub(at.unsigned_abs()) } else { at.unsigned_abs() };
    let (start, end) = (from_start(start), from_start(end).saturating_add(1).min(len));
    (start < end).then_some(start..end)
}

/// Tests whether both positions are negative and in the wrong order. Two negative positions in the wrong order need a
/// separate test, because a position before the start of the string counts as 0.
pub(crate) fn is_backwards(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}
