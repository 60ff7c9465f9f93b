//! A literal text of a path template.

use std::fmt;

use percent_encoding::percent_decode;

/// A literal text: the text as it is written in a template, and its decoded bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Literal {
    written: String,
    bytes: Vec<u8>,
}

impl Literal {
    pub(crate) fn new(written: &str) -> Self {
        Self { written: written.to_owned(), bytes: percent_decode(written.as_bytes()).collect() }
    }

    /// Returns the decoded bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
