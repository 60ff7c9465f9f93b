//! The rows of the commands for transactions.

use crate::command::Flag::{Fast, Loading};
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{Fast as FastGroup, Slow, Transaction};
use crate::command::handler::{Handler, ServerCommand};
use crate::command::keys::{Access, Keys};
use crate::command::{Command, InMulti};
use crate::table::row::row;

pub(super) const ROWS: &[Command] = &[
    row("DISCARD", Exactly(1), "", Handler::Server(ServerCommand::Discard))
        .summary("Discards the commands queued since MULTI")
        .complexity("O(n), n the number of commands")
        .since("2.0.0")
        .in_multi(InMulti::AtOnce)
        .marks(&[Fast, Loading], &[Transaction, FastGroup]),
    row("EXEC", Exactly(1), "", Handler::Server(ServerCommand::Exec))
        .summary("Runs the commands queued since MULTI as one transaction")
        .complexity("The sum of the queued commands")
        .since("1.2.0")
        .in_multi(InMulti::AtOnce)
        .marks(&[Loading], &[Transaction, Slow]),
    row("MULTI", Exactly(1), "", Handler::Server(ServerCommand::Multi))
        .summary("Starts a transaction")
        .since("1.2.0")
        .in_multi(InMulti::AtOnce)
        .marks(&[Fast, Loading], &[Transaction, FastGroup]),
    row("UNWATCH", Exactly(1), "", Handler::Server(ServerCommand::Unwatch))
        .summary("Stops watching keys")
        .since("2.2.0")
        .marks(&[Fast, Loading], &[Transaction, FastGroup]),
    row("WATCH", AtLeast(2), "key [key ...]", Handler::Server(ServerCommand::Watch))
        .summary("Watches keys: EXEC runs only if none of them has changed")
        .complexity("O(n), n the number of keys")
        .since("2.2.0")
        .keys(Keys::ALL.with(Access::ABOUT))
        .in_multi(InMulti::AtOnce)
        .marks(&[Fast, Loading], &[Transaction, FastGroup]),
];
