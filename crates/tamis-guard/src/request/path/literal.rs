//! A literal text of a path template.

use std::fmt;

use percent_encoding::percent_decode;

/// A literal text: the written text of a template, and the decoded bytes of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Literal {
    written: String,
    bytes: Vec<u8>,
}

impl Literal {
    /// Decodes a text of a template.
    pub(crate) fn new(written: &str) -> Self {
        Self { written: written.to_owned(), bytes: percent_decode(written.as_bytes()).collect() }
    }

    /// Returns the decoded bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// A comparison of a text with the bytes of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The case of ASCII letters has no effect, as in programs that ignore the case of a path.
    IgnoreCase,
    /// All bytes must be equal.
    Exact,
}

impl Comparison {
    /// Tests whether a text is equal to the bytes of a literal.
    pub(crate) fn is_same(self, text: &[u8], literal: &[u8]) -> bool {
        match self {
            Self::IgnoreCase => text.eq_ignore_ascii_case(literal),
            Self::Exact => text == literal,
        }
    }
}
