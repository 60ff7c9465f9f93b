//! Reads and writes files that contain only the bits of a filter.

use std::io;

use crate::errors::{DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::rules::{ProbeRule, Rule};

/// Reads a file of 1 to `max_bytes` bytes. `rule` returns the probe rule for a file of a given number of bytes, at
/// least 1.
pub(crate) fn decode<R: ProbeRule>(
    bytes: &[u8],
    max_bytes: u64,
    rule: impl FnOnce(u64) -> Option<R>,
) -> Result<ForeignBloom, DecodeError> {
    let len = bytes.len() as u64;
    if len > max_bytes {
        return Err(DecodeError::too_long("bits", max_bytes));
    }
    let missing = DecodeErrorKind::Truncated { expected: 1, found: 0 };
    let rule = rule(len).ok_or(DecodeError::new("bits", 0, missing))?;
    ForeignBloom::from_bytes(Rule::new(rule), bytes).map_err(DecodeError::memory("bits", 0))
}

/// Writes the bits of a filter. `R` is the probe rule type of the program with the name `system`.
pub(crate) fn encode<R: ProbeRule>(
    contents: &Contents,
    system: &str,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let (filter, _) = ForeignBloom::with_rule::<R>(contents, system)?;
    Ok(filter.write_bytes(out)?)
}
