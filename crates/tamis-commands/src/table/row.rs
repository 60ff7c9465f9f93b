//! Builds the rows of the table. A row sets only the fields that differ from the defaults of
//! [`row`].

use crate::batch::{BatchItems, Family};
use crate::command::Flag::{DenyOom, Fast, Module, ReadOnly, Write};
use crate::command::argv::Argv;
use crate::command::arity::Arity;
use crate::command::category::Category;
use crate::command::handler::{
    Handler, KeyHandler, ReadHandler, ReadKeys, WriteHandler, WriteKeys,
};
use crate::command::keys::{Access, Keys};
use crate::command::subcommands::subcommands_of;
use crate::command::{Command, Flag, InMulti, Secrets};

pub(super) const ADDS: &[Flag] = &[Write, DenyOom, Module];
pub(super) const CHANGES: &[Flag] = &[Write, Fast, Module];
pub(super) const CHANGES_ALL: &[Flag] = &[Write, Module];
pub(super) const READS: &[Flag] = &[ReadOnly, Fast, Module];
pub(super) const READS_ALL: &[Flag] = &[ReadOnly, Module];

/// Creates the handler of a command that looks up items.
pub(super) const fn contains(family: Family, is_one: bool) -> Handler {
    Handler::Key(KeyHandler::Items(BatchItems { family, inserts: false, is_one }))
}

/// Creates the handler of a command that inserts items.
pub(super) const fn insert(family: Family, is_one: bool) -> Handler {
    Handler::Key(KeyHandler::Items(BatchItems { family, inserts: true, is_one }))
}

pub(super) const KEY: Keys = Keys::ONE.with(Access::ABOUT);
pub(super) const READ_KEY: Keys = Keys::ONE.with(Access::READ);
pub(super) const WRITE_KEY: Keys = Keys::ONE.with(Access::WRITE);
pub(super) const UPDATE_KEY: Keys = Keys::ONE.with(Access::BOTH);

pub(super) const fn read(handler: ReadHandler) -> Handler {
    Handler::Key(KeyHandler::Read(handler))
}

pub(super) const fn write(handler: WriteHandler) -> Handler {
    Handler::Key(KeyHandler::Write(handler))
}

/// Creates the handler of a command that reads several keys, or metadata of a key.
pub(super) const fn reads(command: ReadKeys) -> Handler {
    Handler::ReadKeys(command)
}

/// Creates the handler of a command that changes several keys, or metadata of a key.
pub(super) const fn writes(command: WriteKeys) -> Handler {
    Handler::WriteKeys(command)
}

/// Creates a row with default fields. A key handler reads or writes the key in the first argument. A row with a handler
/// of another type has no keys.
pub(super) const fn row(
    name: &'static str,
    arity: Arity,
    syntax: &'static str,
    handler: Handler,
) -> Command {
    let keys = match handler {
        Handler::Key(KeyHandler::Read(_)) => READ_KEY,
        Handler::Key(KeyHandler::Write(_)) => WRITE_KEY,
        Handler::Key(KeyHandler::Items(items)) => {
            if items.inserts {
                WRITE_KEY
            } else {
                READ_KEY
            }
        }
        _ => Keys::NONE,
    };
    Command {
        name,
        arity,
        flags: &[],
        categories: &[],
        keys,
        syntax,
        summary: "",
        complexity: "O(1)",
        since: "1.0.0",
        in_multi: InMulti::Queued,
        secrets: Secrets::None,
        items_start: None,
        subcommands: subcommands_of(name),
        handler,
    }
}

impl Command {
    /// Sets the one-line description.
    pub(super) const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Sets the time complexity. The default is O(1).
    pub(super) const fn complexity(self, complexity: &'static str) -> Self {
        Self { complexity, ..self }
    }

    /// Sets the first version of Redis, RedisBloom or Tamis that has the command. The default is
    /// 1.0.0.
    pub(super) const fn since(self, since: &'static str) -> Self {
        Self { since, ..self }
    }

    /// Replaces the default keys that [`row`] sets.
    pub(super) const fn keys(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    /// Sets how the server treats the command between `MULTI` and `EXEC`. By default, the server
    /// queues the command.
    pub(super) const fn in_multi(self, in_multi: InMulti) -> Self {
        Self { in_multi, ..self }
    }

    /// Sets which arguments the slow log hides.
    pub(super) const fn secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Sets the function that finds the first item.
    pub(super) const fn items_start(self, start: fn(Argv<'_>) -> Option<usize>) -> Self {
        Self { items_start: Some(start), ..self }
    }

    /// Sets the flags and the categories.
    pub(super) const fn marks(
        self,
        flags: &'static [Flag],
        categories: &'static [Category],
    ) -> Self {
        Self { flags, categories, ..self }
    }
}
