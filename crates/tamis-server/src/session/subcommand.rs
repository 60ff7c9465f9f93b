//! Checks the subcommand in the arguments of a command.

use tamis_commands::text::{self, server};
use tamis_commands::{Argv, Command, Permission};
use tamis_resp::Reply;

use crate::session::Call;

/// Returns the error reply for an unknown subcommand, or for a subcommand with a wrong number of
/// arguments.
pub(crate) fn unknown_subcommand(command: &str, word: &[u8]) -> Reply {
    if let Some(permission) = Permission::find(&[command.as_bytes(), b"|", word].concat()) {
        return text::wrong_arity(&permission.name());
    }
    server::unknown_subcommand(command, &text::shown(word))
}

/// Tests whether the arguments request the subcommand `HELP`.
pub(crate) fn asks_for_help(Call { command, argv, .. }: Call<'_>) -> bool {
    !command.subcommands.is_empty() && argv.len() == 2 && argv[1].eq_ignore_ascii_case(b"HELP")
}

/// Checks that the arguments name a subcommand, if the command has subcommands. Checks that the
/// number of arguments matches the arity of the subcommand.
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
