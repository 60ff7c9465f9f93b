//! The number of words of a command.

/// The number of words a command takes, including its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this number.
    Exactly(usize),
    /// At least this number.
    AtLeast(usize),
}

impl Arity {
    /// Tests whether a command may have this number of words.
    #[must_use]
    pub const fn takes(self, words: usize) -> bool {
        match self {
            Arity::Exactly(len) => words == len,
            Arity::AtLeast(len) => words >= len,
        }
    }

    /// Returns the arity as `COMMAND INFO` reports it: negative for a minimum.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Arity::Exactly(len) => len as i64,
            Arity::AtLeast(len) => -(len as i64),
        }
    }
}
