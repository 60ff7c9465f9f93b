//! The words of a command that are keys, and the access of the command to the keys.

use crate::command::argv::{Argv, is};

/// The access of a command to a key. If a command neither reads nor writes the key, the command
/// reports only metadata: existence, expiry time, type and length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The reply shows data of the key, or the command copies the data to another key.
    pub reads: bool,
    /// The command may change the value of the key.
    pub writes: bool,
}

impl Access {
    /// The command reports only metadata of the key.
    pub const ABOUT: Access = Access { reads: false, writes: false };
    /// The command only reads the key.
    pub const READ: Access = Access { reads: true, writes: false };
    /// The command only writes the key.
    pub const WRITE: Access = Access { reads: false, writes: true };
    /// The command reads and writes the key.
    pub const BOTH: Access = Access { reads: true, writes: true };
}

/// The words of a command that are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The index of the first key; 0 if the command has no keys.
    pub first: usize,
    /// The index of the last key. A negative index counts from the end.
    pub last: i64,
    /// The distance from one key to the next.
    pub step: usize,
    /// The access of the command to the first key.
    pub first_access: Access,
    /// The access of the command to the keys after the first key.
    pub other_access: Access,
    /// An option that changes the keys or the access to the keys.
    pub option: KeyOption,
}

/// An option of a command that changes the keys or the access to the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOption {
    /// No option changes the keys.
    None,
    /// If the given option follows the first two arguments, the command reads and writes the keys.
    Reads(&'static str),
    /// If the given word is the second of three arguments, the third argument is a key that the command reads.
    SourceAfter(&'static str),
}

impl Keys {
    /// No word is a key.
    pub const NONE: Keys = Keys::at(0, 0, 0);
    /// The first argument is the key.
    pub const ONE: Keys = Keys::at(1, 1, 1);
    /// The first two arguments are keys.
    pub const TWO: Keys = Keys::at(1, 2, 1);
    /// All arguments are keys.
    pub const ALL: Keys = Keys::at(1, -1, 1);

    /// Returns the keys at the given positions, with access to metadata only.
    pub(crate) const fn at(first: usize, last: i64, step: usize) -> Self {
        let (first_access, other_access) = (Access::ABOUT, Access::ABOUT);
        Keys { first, last, step, first_access, other_access, option: KeyOption::None }
    }

    /// Returns the same keys, with the given access to every key.
    pub(crate) const fn with(self, access: Access) -> Self {
        Keys { first_access: access, other_access: access, ..self }
    }

    /// Returns the same keys, with the given access to every key except the first key.
    pub(crate) const fn others(self, access: Access) -> Self {
        Keys { other_access: access, ..self }
    }

    /// Returns the same keys. A command with the given option also reads the keys.
    pub(crate) const fn reading_with(self, option: &'static str) -> Self {
        Keys { option: KeyOption::Reads(option), ..self }
    }

    /// Adds the key after the given word to the keys. The command reads the added key.
    pub(crate) const fn and_behind(self, option: &'static str) -> Self {
        Keys { option: KeyOption::SourceAfter(option), ..self }
    }

    /// Returns the access of the command to the first key and to the other keys.
    pub(crate) fn access(self, argv: Argv<'_>) -> (Access, Access) {
        match self.option {
            KeyOption::Reads(name) if argv.iter().skip(3).any(|word| is(word, name)) => {
                (Access::BOTH, Access::BOTH)
            }
            _ => (self.first_access, self.other_access),
        }
    }

    /// Returns the keys in `argv`.
    pub fn of<'w>(self, argv: Argv<'w>) -> impl Iterator<Item = &'w [u8]> {
        let last = if self.last < 0 {
            argv.len().saturating_sub(self.last.unsigned_abs() as usize)
        } else {
            (self.last as usize).min(argv.len().saturating_sub(1))
        };
        let range = if self.first == 0 || self.first > last { 0..0 } else { self.first..last + 1 };
        argv[range].iter().step_by(self.step.max(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_at_the_positions_of_the_row() {
        let words: [&[u8]; 4] = [b"DEL", b"a", b"b", b"c"];
        let of = |keys: Keys, len: usize| -> Vec<&[u8]> { keys.of(&words[..len]).collect() };
        assert_eq!(of(Keys::ALL, 4), [b"a", b"b", b"c"]);
        assert_eq!(of(Keys::ONE, 4), [b"a"]);
        assert_eq!(of(Keys::TWO, 4), [b"a", b"b"]);
        assert!(of(Keys::NONE, 4).is_empty());
        assert!(of(Keys::ALL, 1).is_empty() && of(Keys::ONE, 1).is_empty());
    }
}
