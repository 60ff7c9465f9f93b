//! A row of the command table: what hosts and their users need to know about a command.

use crate::access::Access;
use crate::argv::{Argv, is};
use crate::batch::BatchItems;
use crate::handler::{Handler, KeyHandler};
use crate::subcommands::Subcommand;

/// A command.
#[derive(Debug)]
pub struct Command {
    /// The name, in upper case.
    pub name: &'static str,
    /// The number of words it takes, including its name.
    pub arity: Arity,
    /// What it does to keys and to the host.
    pub flags: &'static [Flag],
    /// The access categories; every command is either fast or slow.
    pub categories: &'static [Category],
    /// Which words are keys.
    pub keys: Keys,
    /// The syntax of the arguments, for help.
    pub syntax: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// The time complexity.
    pub complexity: &'static str,
    /// The first version with this command, of Tamis or of the system that it is compatible with.
    pub since: &'static str,
    /// How the server treats the command between `MULTI` and `EXEC`.
    pub in_multi: InMulti,
    /// Which arguments the slow log hides.
    pub secrets: Secrets,
    /// Returns the index of the first item of a command whose items follow its options. A long
    /// command runs in chunks, each as a separate command. `None` if the command has no such items.
    pub items_start: Option<fn(Argv<'_>) -> Option<usize>>,
    /// The subcommands that a user's rules can allow separately, in alphabetical order.
    pub subcommands: &'static [Subcommand],
    /// The function that runs the command.
    pub handler: Handler,
}

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

/// What a command does to keys and to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// May change a key.
    Write,
    /// Never changes a key.
    ReadOnly,
    /// The server rejects the command when memory is at its limit.
    DenyOom,
    /// Takes constant time, or nearly constant time.
    Fast,
    /// Changes the host, not keys.
    Admin,
    /// The client may send the command before it authenticates.
    NoAuth,
    /// The server runs the command while it loads the data.
    Loading,
    /// The command is part of a Redis module.
    Module,
    /// The server sends no reply and closes the connection.
    NoReply,
    /// The command decodes the word at this index, a payload of `DUMP`, into the value of its key.
    Payload(usize),
    /// The command decodes the word at this index, a filter file, into the value of its key.
    File(usize),
}

/// How the server treats a command between `MULTI` and `EXEC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InMulti {
    /// The server queues the command; `EXEC` runs it.
    Queued,
    /// The server runs the command immediately.
    AtOnce,
    /// The server rejects the command.
    Refused,
}

/// The arguments of a command that are passwords or show a user's permissions. The slow log hides
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// No argument.
    None,
    /// Every argument.
    All,
    /// The two arguments after this option.
    TwoBehind(&'static str),
    /// The arguments of these subcommands.
    OfSubcommands(&'static [&'static str]),
    /// The values of secret options in the name-value pairs after this subcommand.
    OptionValues(&'static str),
}

/// The word of a command that is decoded into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'w> {
    /// A payload of `DUMP`.
    Payload(&'w [u8]),
    /// A filter file.
    File(&'w [u8]),
}

impl Flag {
    /// Returns the name in `COMMAND INFO`; `None` for a flag that only hosts use.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Flag::Write => "write",
            Flag::ReadOnly => "readonly",
            Flag::DenyOom => "denyoom",
            Flag::Fast => "fast",
            Flag::Admin => "admin",
            Flag::NoAuth => "no_auth",
            Flag::Loading => "loading",
            Flag::Module => "module",
            Flag::NoReply | Flag::Payload(_) | Flag::File(_) => return None,
        })
    }
}

/// A group of commands that a user's rules can allow together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Changes keys.
    Write,
    /// Reads keys.
    Read,
    /// Takes constant time, or nearly constant time.
    Fast,
    /// May take a long time.
    Slow,
    /// Works on keys of any type.
    Keyspace,
    /// Works on the connection.
    Connection,
    /// For operators.
    Admin,
    /// Can harm the server or its data.
    Dangerous,
    /// Works on strings.
    String,
    /// Works on bitmaps.
    Bitmap,
    /// Transactions.
    Transaction,
    /// `BF.*`.
    Bloom,
    /// `CF.*`.
    Cuckoo,
    /// `TM.*`.
    Tamis,
}

impl Category {
    /// Every category.
    pub const ALL: [Category; 14] = [
        Category::Write,
        Category::Read,
        Category::Fast,
        Category::Slow,
        Category::Keyspace,
        Category::Connection,
        Category::Admin,
        Category::Dangerous,
        Category::String,
        Category::Bitmap,
        Category::Transaction,
        Category::Bloom,
        Category::Cuckoo,
        Category::Tamis,
    ];

    /// Returns the name, without the leading `@`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Write => "write",
            Category::Read => "read",
            Category::Fast => "fast",
            Category::Slow => "slow",
            Category::Keyspace => "keyspace",
            Category::Connection => "connection",
            Category::Admin => "admin",
            Category::Dangerous => "dangerous",
            Category::String => "string",
            Category::Bitmap => "bitmap",
            Category::Transaction => "transaction",
            Category::Bloom => "bloom",
            Category::Cuckoo => "cuckoo",
            Category::Tamis => "tamis",
        }
    }
}

/// Which words of a command are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The index of the first key; 0 if the command has no keys.
    pub first: usize,
    /// The index of the last key, counted from the end if negative.
    pub last: i64,
    /// The distance from one key to the next.
    pub step: usize,
    /// The access of the command to the first key.
    pub first_access: Access,
    /// The access of the command to the other keys.
    pub other_access: Access,
    /// An option that changes the keys or the access to them.
    pub option: KeyOption,
}

/// An option of a command that concerns keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOption {
    /// No option changes the keys.
    None,
    /// If this option follows the first two arguments, the command reads the keys too.
    Reads(&'static str),
    /// If this word is the second of three arguments, the third is a key that the command reads.
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

    /// Returns the keys at these positions, with access to metadata only.
    #[must_use]
    pub const fn at(first: usize, last: i64, step: usize) -> Self {
        let (first_access, other_access) = (Access::ABOUT, Access::ABOUT);
        Keys { first, last, step, first_access, other_access, option: KeyOption::None }
    }

    /// Returns the same keys with this access to each.
    #[must_use]
    pub const fn with(self, access: Access) -> Self {
        Keys { first_access: access, other_access: access, ..self }
    }

    /// Returns the same keys with this access to all but the first.
    #[must_use]
    pub const fn others(self, access: Access) -> Self {
        Keys { other_access: access, ..self }
    }

    /// Returns the same keys; a command with this option also reads them.
    #[must_use]
    pub const fn reading_with(self, option: &'static str) -> Self {
        Keys { option: KeyOption::Reads(option), ..self }
    }

    /// Returns the same keys plus the key after this word, which the command reads.
    #[must_use]
    pub const fn and_behind(self, option: &'static str) -> Self {
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

impl Command {
    /// Returns the index of the first item in `argv`; `None` if the command has no items.
    #[must_use]
    pub fn first_item(&self, argv: Argv<'_>) -> Option<usize> {
        match (self.batch_items(), self.items_start) {
            (Some(_), _) => Some(2),
            (None, Some(start)) => start(argv),
            (None, None) => None,
        }
    }

    /// Returns what the command does with its items in a batch; `None` if it runs separately.
    #[must_use]
    pub const fn batch_items(&self) -> Option<BatchItems> {
        match self.handler {
            Handler::Key(KeyHandler::Items(items)) => Some(items),
            _ => None,
        }
    }

    /// Tests whether a command of this many words has a valid arity and includes its key, if it
    /// takes one.
    #[must_use]
    pub const fn takes(&self, words: usize) -> bool {
        self.arity.takes(words) && words > self.keys.first
    }

    /// Tests whether the command may change a key. The flags alone do not decide this: RedisBloom
    /// flags `CF.COMPACT` as read-only.
    #[must_use]
    pub fn may_change(&self) -> bool {
        self.has(Flag::Write) || matches!(self.handler, Handler::Key(KeyHandler::Write(_)))
    }

    /// Returns the word in `argv` that the command decodes into the value of its key; `None` if it
    /// has no such word.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{Data, find};
    ///
    /// let words: [&[u8]; 3] = [b"TM.LOAD", b"key", b"file"];
    /// assert_eq!(find(b"TM.LOAD").unwrap().data(&words), Some(Data::File(b"file")));
    /// assert_eq!(find(b"SET").unwrap().data(&words), None);
    /// ```
    #[must_use]
    pub fn data<'w>(&self, argv: Argv<'w>) -> Option<Data<'w>> {
        self.flags.iter().find_map(|flag| match flag {
            Flag::Payload(at) => argv.get(*at).map(|payload| Data::Payload(payload)),
            Flag::File(at) => argv.get(*at).map(|file| Data::File(file)),
            _ => None,
        })
    }

    /// Tests whether the command has this flag.
    #[must_use]
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_the_row_says() {
        let words: [&[u8]; 4] = [b"DEL", b"a", b"b", b"c"];
        let of = |keys: Keys, len: usize| -> Vec<&[u8]> { keys.of(&words[..len]).collect() };
        assert_eq!(of(Keys::ALL, 4), [b"a", b"b", b"c"]);
        assert_eq!(of(Keys::ONE, 4), [b"a"]);
        assert_eq!(of(Keys::TWO, 4), [b"a", b"b"]);
        assert!(of(Keys::NONE, 4).is_empty());
        assert!(of(Keys::ALL, 1).is_empty() && of(Keys::ONE, 1).is_empty());
    }
}
