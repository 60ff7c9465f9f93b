//! A row of the table: what a host and its users must know of a command.

use crate::access::Access;
use crate::argv::{Argv, is};
use crate::batch::{BatchItems, Items};
use crate::handler::{Handler, KeyHandler};
use crate::subcommands::Subcommand;

/// A command.
#[derive(Debug)]
pub struct Command {
    /// The name, in capitals.
    pub name: &'static str,
    /// How many words it takes, the name included.
    pub arity: Arity,
    /// What it does to keys and to the host.
    pub flags: &'static [Flag],
    /// The access categories; every command is either fast or slow.
    pub categories: &'static [Category],
    /// Which words are keys.
    pub keys: Keys,
    /// The arguments, as help shows them.
    pub syntax: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// The cost.
    pub complexity: &'static str,
    /// Since which version there is such a command, here or in what is answered for.
    pub since: &'static str,
    /// What happens to it between `MULTI` and `EXEC`.
    pub in_multi: InMulti,
    /// Which arguments the slow log hides.
    pub secrets: Secrets,
    /// Which arguments are items.
    pub items: Items,
    /// The subcommands that users may be allowed by themselves, in alphabetical order.
    pub subcommands: &'static [Subcommand],
    /// What runs it.
    pub handler: Handler,
}

/// How many words a command takes, its name included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this number.
    Exactly(usize),
    /// At least this number.
    AtLeast(usize),
}

impl Arity {
    /// Returns whether a command may have this number of words.
    #[must_use]
    pub const fn takes(self, words: usize) -> bool {
        match self {
            Arity::Exactly(len) => words == len,
            Arity::AtLeast(len) => words >= len,
        }
    }

    /// Returns the number that `COMMAND INFO` gives: negative for at least.
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
    /// Is refused when memory is at its limit.
    DenyOom,
    /// Takes constant time, or about so.
    Fast,
    /// Changes the host, not keys.
    Admin,
    /// Is allowed before a password was given.
    NoAuth,
    /// Is answered while the data is being loaded.
    Loading,
    /// Came with a module.
    Module,
    /// Is not answered: it ends the connection.
    NoReply,
    /// Decodes this word, a payload of `DUMP`, into the value of its key.
    Payload(usize),
    /// Decodes this word, a file of a filter, into the value of its key.
    File(usize),
}

/// What happens to a command between `MULTI` and `EXEC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InMulti {
    /// The command is queued, and runs with `EXEC`.
    Queued,
    /// The command runs at once.
    AtOnce,
    /// The command is refused.
    Refused,
}

/// Which arguments of a command are passwords, or show what a user may do. The slow log hides them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// No argument.
    None,
    /// Every argument.
    All,
    /// The two arguments behind this option.
    TwoBehind(&'static str),
    /// The arguments of these subcommands.
    OfSubcommands(&'static [&'static str]),
    /// The values of secret options, in the pairs of name and value behind this subcommand.
    OptionValues(&'static str),
}

/// The word of a command that is decoded into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'w> {
    /// A payload of `DUMP`.
    Payload(&'w [u8]),
    /// A file of a filter.
    File(&'w [u8]),
}

impl Flag {
    /// Returns the name that `COMMAND INFO` gives; `None` for a flag that only hosts need.
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

/// A group of commands that a user may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Changes keys.
    Write,
    /// Reads keys.
    Read,
    /// Takes constant time, or about so.
    Fast,
    /// May take long.
    Slow,
    /// Handles keys whatever they hold.
    Keyspace,
    /// Handles the connection.
    Connection,
    /// For operators.
    Admin,
    /// Can do harm.
    Dangerous,
    /// Handles strings.
    String,
    /// Handles bitmaps.
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

    /// Returns the name, without the `@` before it.
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
    /// The first; 0 if there is none.
    pub first: usize,
    /// The last, counted from the end if negative.
    pub last: i64,
    /// From one key to the next.
    pub step: usize,
    /// What the command does with the first key.
    pub first_access: Access,
    /// What it does with the other keys.
    pub other_access: Access,
    /// An option that changes which keys are used, or how.
    pub option: KeyOption,
}

/// An option of a command that is about keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOption {
    /// No option changes which keys are used.
    None,
    /// With this option behind the first two arguments, the command reads the keys too.
    Reads(&'static str),
    /// With this word as second of three arguments, the third is a key that the command reads.
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

    /// Returns the keys at these places, of which the command learns no more than whether they exist.
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

    /// Returns the same keys, which the command also reads if it has this option.
    #[must_use]
    pub const fn reading_with(self, option: &'static str) -> Self {
        Keys { option: KeyOption::Reads(option), ..self }
    }

    /// Returns the same keys and, behind this word, one that the command reads.
    #[must_use]
    pub const fn and_behind(self, option: &'static str) -> Self {
        Keys { option: KeyOption::SourceAfter(option), ..self }
    }

    /// Returns what the command does with the first key, and with the others.
    pub(crate) fn access(self, argv: Argv<'_>) -> (Access, Access) {
        match self.option {
            KeyOption::Reads(name) if argv.iter().skip(3).any(|word| is(word, name)) => {
                (Access::BOTH, Access::BOTH)
            }
            _ => (self.first_access, self.other_access),
        }
    }

    /// Returns the keys among these words.
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
    /// Returns the number of the first item among a command's words; `None` if it has no items.
    #[must_use]
    pub fn first_item(&self, argv: Argv<'_>) -> Option<usize> {
        match self.items {
            Items::None => None,
            Items::Batch(_) => Some(2),
            Items::Chunks(first) => first(argv),
        }
    }

    /// Returns how the command runs in a batch; `None` if it runs by itself.
    #[must_use]
    pub const fn batch_items(&self) -> Option<BatchItems> {
        match self.items {
            Items::Batch(items) => Some(items),
            Items::None | Items::Chunks(_) => None,
        }
    }

    /// Returns whether that many words are such a command, with its key if it is about one.
    #[must_use]
    pub const fn takes(&self, words: usize) -> bool {
        self.arity.takes(words) && words > self.keys.first
    }

    /// Returns whether the command may change a key, whatever its flags say: RedisBloom calls `CF.COMPACT` one that only
    /// reads.
    #[must_use]
    pub fn may_change(&self) -> bool {
        self.has(Flag::Write) || matches!(self.handler, Handler::Key(KeyHandler::Write(_)))
    }

    /// Returns the data among these words that the command decodes into the value of its key; `None` if it brings none.
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

    /// Returns whether the command has this flag.
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
