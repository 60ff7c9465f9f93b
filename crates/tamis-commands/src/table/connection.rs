//! The rows of the commands for the connection.

use crate::command::Flag::{Fast, Loading, NoAuth};
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{Connection, Fast as FastGroup, Slow};
use crate::command::handler::{Handler, ServerCommand};
use crate::command::{Command, InMulti, Secrets};
use crate::table::row::row;

pub(super) const ROWS: &[Command] = &[
    row("AUTH", AtLeast(2), "[username] password", Handler::Server(ServerCommand::Auth))
        .summary("Authenticates the connection")
        .in_multi(InMulti::Refused)
        .secrets(Secrets::All)
        .marks(&[NoAuth, Fast, Loading], &[Connection, FastGroup]),
    row("CLIENT", AtLeast(2), "ID | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER text | LIST | INFO | KILL ID id | KILL addr | NO-EVICT ON|OFF | NO-TOUCH ON|OFF | HELP", Handler::Server(ServerCommand::Client))
        .summary("Lists, names and closes connections")
        .complexity("O(1), LIST and KILL O(n)")
        .since("2.4.0")
        .marks(&[Fast, Loading], &[Connection, Slow]),
    row("COMMAND", AtLeast(1), "[COUNT | LIST | INFO [name ...] | DOCS [name ...] | GETKEYS command [arg ...] | HELP]", Handler::Server(ServerCommand::Command))
        .summary("Describes the commands of the server")
        .complexity("O(n), n the number of commands")
        .since("2.8.13")
        .marks(&[Fast, Loading], &[Connection, Slow]),
    row("ECHO", Exactly(2), "message", Handler::Server(ServerCommand::Echo))
        .summary("Returns the message")
        .marks(&[Fast, Loading], &[Connection, FastGroup]),
    row("HELLO", AtLeast(1), "[protover [AUTH username password] [SETNAME name]]", Handler::Server(ServerCommand::Hello))
        .summary("Selects the protocol version; with AUTH, authenticates the connection")
        .since("6.0.0")
        .in_multi(InMulti::Refused)
        .secrets(Secrets::TwoBehind("AUTH"))
        .marks(&[NoAuth, Fast, Loading], &[Connection, FastGroup]),
    row("PING", AtLeast(1), "[message]", Handler::Server(ServerCommand::Ping))
        .summary("Returns PONG, or the message")
        .marks(&[Fast, Loading], &[Connection, FastGroup]),
    row("QUIT", AtLeast(1), "", Handler::Server(ServerCommand::Quit))
        .summary("Closes the connection")
        .in_multi(InMulti::AtOnce)
        .marks(&[NoAuth, Fast, Loading], &[Connection, FastGroup]),
    row("RESET", Exactly(1), "", Handler::Server(ServerCommand::Reset))
        .summary("Resets the connection to its initial state")
        .since("6.2.0")
        .in_multi(InMulti::AtOnce)
        .marks(&[NoAuth, Fast, Loading], &[Connection, FastGroup]),
    row("SELECT", Exactly(2), "index", Handler::Server(ServerCommand::Select))
        .summary("Selects a database; only database 0 exists")
        .marks(&[Fast, Loading], &[Connection, FastGroup]),
];
