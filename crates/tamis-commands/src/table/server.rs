//! The rows of the commands for the server.

use crate::command::Flag::{Admin, Fast, Loading, NoReply, ReadOnly};
use crate::command::arity::Arity::{AtLeast, Exactly};
use crate::command::category::Category::{
    Admin as AdminGroup, Dangerous, Fast as FastGroup, Read as ReadGroup, Slow,
};
use crate::command::handler::{Handler, ReadKeys, ServerCommand};
use crate::command::{Command, InMulti, Secrets};
use crate::table::row::row;

pub(super) const ROWS: &[Command] = &[
    row("ACL", AtLeast(2), "CAT [category] | DELUSER name [name ...] | DRYRUN name command [word ...] | GENPASS [bits] | GETUSER name | LIST | LOAD | LOG [count | RESET] | SAVE | SETUSER name [rule ...] | USERS | WHOAMI | HELP", Handler::Server(ServerCommand::Acl))
        .summary("Manages users, their passwords and their permissions")
        .complexity("O(n), n the number of users or rules")
        .since("6.0.0")
        .secrets(Secrets::OfSubcommands(&["SETUSER", "DRYRUN"]))
        .marks(&[Loading], &[Slow]),
    row("BGREWRITEAOF", Exactly(1), "", Handler::Server(ServerCommand::RewriteLog))
        .summary("Writes a snapshot in the background and starts a new log")
        .complexity("O(n), n the memory of all values")
        .marks(&[Admin], &[AdminGroup, Slow, Dangerous]),
    row("BGSAVE", AtLeast(1), "[SCHEDULE]", Handler::Server(ServerCommand::SaveInBackground))
        .summary("Writes a snapshot in the background")
        .complexity("O(n), n the memory of all values")
        .marks(&[Admin], &[AdminGroup, Slow, Dangerous]),
    row("CONFIG", AtLeast(2), "GET pattern [pattern ...] | SET name value [name value ...] | REWRITE | RESETSTAT | HELP", Handler::Server(ServerCommand::Config))
        .summary("Reads and sets the options of the server")
        .complexity("O(n), n the number of options")
        .since("2.0.0")
        .secrets(Secrets::OptionValues("SET"))
        .marks(&[Admin, Loading], &[AdminGroup, Dangerous, Slow]),
    row("DEBUG", AtLeast(2), "RELOAD [NOSAVE] | HELP", Handler::Server(ServerCommand::Debug))
        .summary("Runs tests of the server; needs enable-debug-command")
        .complexity("O(n), n the memory of all values")
        .in_multi(InMulti::Refused)
        .marks(&[Admin], &[AdminGroup, Slow, Dangerous]),
    row("INFO", AtLeast(1), "[section ...]", Handler::ReadKeys(ReadKeys::Info))
        .summary("Returns statistics of the server and its filters")
        .complexity("O(n), n the number of keys")
        .marks(&[Loading], &[Slow, Dangerous]),
    row("LASTSAVE", Exactly(1), "", Handler::Server(ServerCommand::LastSave))
        .summary("Returns the time of the last snapshot, in seconds since 1970")
        .marks(&[Loading, Fast], &[AdminGroup, FastGroup, Dangerous]),
    row("LATENCY", AtLeast(2), "HISTOGRAM [command ...] | LATEST | HISTORY event | RESET [event ...] | DOCTOR | HELP", Handler::Server(ServerCommand::Latency))
        .summary("Returns histograms of the execution times of commands")
        .complexity("O(n), n the number of commands")
        .since("2.8.13")
        .marks(&[Admin, Loading], &[AdminGroup, Slow, Dangerous]),
    row("MEMORY", AtLeast(2), "USAGE key [SAMPLES n] | HELP", Handler::ReadKeys(ReadKeys::Memory))
        .summary("Returns the memory that a key uses, in bytes")
        .since("4.0.0")
        .marks(&[ReadOnly], &[ReadGroup, Slow]),
    row("MODULE", AtLeast(2), "LIST | HELP", Handler::Server(ServerCommand::Module))
        .summary("Lists the module bf, whose commands this server implements")
        .since("4.0.0")
        .marks(&[Admin], &[AdminGroup, Slow, Dangerous]),
    row("MONITOR", Exactly(1), "", Handler::Server(ServerCommand::Monitor))
        .summary("Streams the commands of all clients; hides passwords and shortens long arguments")
        .complexity("O(1) for each command")
        .in_multi(InMulti::Refused)
        .marks(&[Admin, Loading], &[AdminGroup, Slow, Dangerous]),
    row("SAVE", Exactly(1), "", Handler::Server(ServerCommand::Save))
        .summary("Writes a snapshot and waits until it is complete")
        .complexity("O(n), n the memory of all values")
        .in_multi(InMulti::Refused)
        .marks(&[Admin], &[AdminGroup, Slow, Dangerous]),
    row("SHUTDOWN", AtLeast(1), "[NOSAVE | SAVE] [NOW] [FORCE]", Handler::Server(ServerCommand::Shutdown))
        .summary("Stops the server")
        .in_multi(InMulti::Refused)
        .marks(&[Admin, Loading, NoReply], &[AdminGroup, Slow, Dangerous]),
    row("SLOWLOG", AtLeast(2), "GET [count] | LEN | RESET | HELP", Handler::Server(ServerCommand::SlowLog))
        .summary("Lists the latest slow commands")
        .complexity("O(n), n the number of entries")
        .since("2.2.12")
        .marks(&[Admin, Loading], &[AdminGroup, Slow, Dangerous]),
    row("TIME", Exactly(1), "", Handler::Server(ServerCommand::Time))
        .summary("Returns the server time, in seconds and microseconds")
        .since("2.6.0")
        .marks(&[Fast, Loading], &[FastGroup]),
];
