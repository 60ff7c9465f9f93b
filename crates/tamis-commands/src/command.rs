//! A row of the command table: the metadata of a command, for the server and for users.

pub(crate) mod access;
pub(crate) mod argv;
pub(crate) mod arity;
pub(crate) mod category;
pub(crate) mod handler;
pub(crate) mod keys;
pub(crate) mod permission;
pub(crate) mod run;
pub(crate) mod subcommands;

use crate::batch::BatchItems;
use crate::command::argv::Argv;
use crate::command::arity::Arity;
use crate::command::category::Category;
use crate::command::handler::{Handler, KeyHandler};
use crate::command::keys::Keys;
use crate::command::subcommands::Subcommand;

/// A command of the server.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The name, in upper case.
    pub name: &'static str,
    /// The number of words of the command, including the name.
    pub arity: Arity,
    /// The effects of the command on keys and on the server.
    pub flags: &'static [Flag],
    /// The access categories. Every command has either the category fast or the category slow.
    pub categories: &'static [Category],
    /// The words of the command that are keys.
    pub keys: Keys,
    /// The syntax of the arguments, for help.
    pub syntax: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// The time complexity.
    pub complexity: &'static str,
    /// The first version of Redis, RedisBloom or Tamis that has this command.
    pub since: &'static str,
    /// How the server treats the command between `MULTI` and `EXEC`.
    pub in_multi: InMulti,
    /// The arguments that the slow log hides.
    pub secrets: Secrets,
    /// Returns the index of the first item of a command whose items follow options. The server
    /// splits a long command into chunks of items and runs each chunk as a separate command. `None`
    /// if no items follow options.
    pub items_start: Option<fn(Argv<'_>) -> Option<usize>>,
    /// The subcommands that a user's rules can allow separately, in alphabetical order.
    pub subcommands: &'static [Subcommand],
    /// The function that runs the command.
    pub handler: Handler,
}

/// A property of a command: an effect on keys or on the server, or a rule for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The command may change a key.
    Write,
    /// The command never changes a key.
    ReadOnly,
    /// The server rejects the command when memory is at its limit.
    DenyOom,
    /// The command takes constant time, or nearly constant time.
    Fast,
    /// The command changes the server, not keys.
    Admin,
    /// The client may send the command before authentication.
    NoAuth,
    /// The server also runs the command while loading the data.
    Loading,
    /// The command is part of a Redis module.
    Module,
    /// The server sends no reply and closes the connection.
    NoReply,
    /// The command decodes the word at the given index, a payload of `DUMP`, into the value of its key.
    Payload(usize),
    /// The command decodes the word at the given index, a filter file, into the value of its key.
    File(usize),
}

/// How the server treats a command between `MULTI` and `EXEC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InMulti {
    /// The server queues the command, and `EXEC` runs the command.
    Queued,
    /// The server runs the command immediately.
    AtOnce,
    /// The server rejects the command.
    Refused,
}

/// The arguments of a command that the slow log hides: passwords, and words that show a user's
/// permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// The slow log hides no argument.
    None,
    /// The slow log hides every argument.
    All,
    /// The slow log hides the two arguments after the given option.
    TwoBehind(&'static str),
    /// The slow log hides the arguments of the given subcommands.
    OfSubcommands(&'static [&'static str]),
    /// The slow log hides the values of secret options in the name-value pairs after the given subcommand.
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
    /// Returns the name in `COMMAND INFO`; `None` for a flag that only the server uses.
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

    /// Returns how the command uses items in a batch; `None` if the command does not run in a
    /// batch.
    #[must_use]
    pub const fn batch_items(&self) -> Option<BatchItems> {
        match self.handler {
            Handler::Key(KeyHandler::Items(items)) => Some(items),
            _ => None,
        }
    }

    /// Tests whether the arity allows the given number of words, and whether the words include the first key.
    #[must_use]
    pub const fn takes(&self, words: usize) -> bool {
        self.arity.takes(words) && words > self.keys.first
    }

    /// Tests whether the command may change a key.
    #[must_use]
    pub fn may_change(&self) -> bool {
        self.has(Flag::Write)
    }

    /// Returns the word in `argv` that the command decodes into the value of its key; `None` if the
    /// command decodes no word.
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

    /// Tests whether the command has the given flag.
    #[must_use]
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}
