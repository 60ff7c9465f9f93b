//! The number of words of a command.

/// The number of words of a command, including the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// The command has exactly the given number of words.
    Exactly(usize),
    /// The command has at least the given number of words.
    AtLeast(usize),
}

impl Arity {
    /// Tests whether a command may have the given number of words.
    #[must_use]
    pub const fn takes(self, words: usize) -> bool {
        match self {
            Arity::Exactly(len) => words == len,
            Arity::AtLeast(len) => words >= len,
        }
    }

    /// Returns the arity in the format of `COMMAND INFO`. A negative number stands for a minimum.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Arity::Exactly(len) => len as i64,
            Arity::AtLeast(len) => -(len as i64),
        }
    }
}
