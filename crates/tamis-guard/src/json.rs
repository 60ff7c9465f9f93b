//! A JSON text that was read for its ids.

use serde_json::Value;

/// A JSON value, with the length of its text. Each reader has a limit of its own.
#[derive(Debug)]
pub(crate) struct Json {
    pub(crate) value: Value,
    pub(crate) len_bytes: usize,
}

impl Json {
    /// Parses a text; `None` if it is no JSON, or nested more than 128 times.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let value = serde_json::from_slice(text).ok()?;
        Some(Self { value, len_bytes: text.len() })
    }
}
