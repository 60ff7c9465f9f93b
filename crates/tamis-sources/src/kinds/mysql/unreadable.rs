//! The error for an event of the log that the source cannot decode.

/// The event cannot be decoded: it ends too early, has an unknown column type, or does not contain the id.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;
