//! Subcommands: whether the arguments name one.

use tamis_commands::text::{self, server};
use tamis_commands::{Argv, Command, Permission};
use tamis_resp::Reply;

use crate::session::Call;

/// Replies to an unknown subcommand, or to one with a wrong number of arguments.
pub(crate) fn unknown_subcommand(command: &str, word: &[u8]) -> Reply {
    if let Some(permission) = Permission::find(&[command.as_bytes(), b"|", word].concat()) {
        return text::wrong_arity(&permission.name());
    }
    server::unknown_subcommand(command, &text::shown(word))
}

/// Tests whether the arguments request the `HELP` of a command with subcommands.
pub(crate) fn asks_for_help(Call { command, argv, .. }: Call<'_>) -> bool {
    !command.subcommands.is_empty() && argv.len() == 2 && argv[1].eq_ignore_ascii_case(b"HELP")
}

/// Checks that the arguments name a subcommand, if the command has any, and that their number
/// matches its arity.
pub(crate) fn check_subcommand(command: &'static Command, argv: Argv<'_>) -> Result<(), Reply> {
    let Some(word) = argv.get(1).filter(|_| !command.subcommands.is_empty()) else {
        return Ok(());
    };
    let permission = Permission::of(command, argv);
    match permission.subcommand {
        None => Err(unknown_subcommand(command.name, word)),
        Some(it) if !it.arity.takes(argv.len()) => Err(text::wrong_arity(&permission.name())),
        Some(_) => Ok(()),
    }
}
