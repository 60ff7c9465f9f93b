//! The unit of a user's permissions: a command or one of its subcommands.

use crate::command::Command;
use crate::command::argv::Argv;
use crate::command::category::Category;
use crate::command::subcommands::{SUBCOMMANDS, Subcommand};
use crate::table::{COMMANDS, find};

/// A command or a subcommand that a user's rules can allow.
///
/// # Examples
///
/// ```
/// use tamis_commands::Permission;
///
/// assert_eq!(Permission::find(b"Config|Set").unwrap().name(), "config|set");
/// assert!(Permission::find(b"bf.add").is_some() && Permission::find(b"bf.add|x").is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// The command.
    pub command: &'static Command,
    /// The subcommand. `None` stands for the whole command, and for a word that is not a
    /// subcommand.
    pub subcommand: Option<&'static Subcommand>,
}

impl Permission {
    /// Counts all permissions.
    #[must_use]
    pub fn count() -> usize {
        COMMANDS.len() + SUBCOMMANDS.len()
    }

    /// Returns all permissions: each command, followed by its subcommands.
    pub fn all() -> impl Iterator<Item = Permission> {
        COMMANDS.iter().flat_map(Permission::of_command)
    }

    /// Returns the permissions of a command: the command itself and its subcommands.
    pub fn of_command(command: &'static Command) -> impl Iterator<Item = Permission> {
        let subcommands = command.subcommands.iter().map(Some);
        [None]
            .into_iter()
            .chain(subcommands)
            .map(move |subcommand| Permission { command, subcommand })
    }

    /// Returns the permission that running `argv` requires.
    #[must_use]
    pub fn of(command: &'static Command, argv: Argv<'_>) -> Permission {
        let subcommand = argv.get(1).and_then(|word| {
            let is_named = |it: &&Subcommand| word.eq_ignore_ascii_case(it.name.as_bytes());
            command.subcommands.iter().find(is_named)
        });
        Permission { command, subcommand }
    }

    /// Finds a command or a subcommand by a name such as `config|set`, ignoring case.
    #[must_use]
    pub fn find(name: &[u8]) -> Option<Permission> {
        match name.iter().position(|c| *c == b'|') {
            None => Some(Permission { command: find(name)?, subcommand: None }),
            Some(at) => {
                let command = find(&name[..at])?;
                let permission = Permission::of(command, &[name, &name[at + 1..]]);
                permission.subcommand.is_some().then_some(permission)
            }
        }
    }

    /// Returns the index of the permission. The index is less than [`count`](Self::count).
    ///
    /// # Panics
    ///
    /// Panics if the command or subcommand is not a row of the tables.
    #[must_use]
    pub fn index(self) -> usize {
        match self.subcommand {
            None => self.command.index(),
            Some(subcommand) => {
                let place = SUBCOMMANDS.element_offset(subcommand);
                COMMANDS.len() + place.expect("a subcommand is a row of the table")
            }
        }
    }

    /// Returns the name in users' rules, such as `config|set`.
    #[must_use]
    pub fn name(self) -> String {
        let command = self.command.name.to_ascii_lowercase();
        match self.subcommand {
            None => command,
            Some(subcommand) => format!("{command}|{}", subcommand.name.to_ascii_lowercase()),
        }
    }

    /// Tests whether the permission belongs to a category.
    #[must_use]
    pub fn is_in(self, category: Category) -> bool {
        self.subcommand.map_or(self.command.categories, |it| it.categories).contains(&category)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_numbered_without_gaps() {
        let mut numbers: Vec<usize> = Permission::all().map(Permission::index).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..Permission::count()));
        for permission in Permission::all() {
            let found = Permission::find(permission.name().as_bytes()).unwrap();
            assert_eq!(found.index(), permission.index(), "{}", permission.name());
        }
    }

    #[test]
    fn words_are_the_command_they_name() {
        let of = |argv: Argv<'_>| Permission::of(find(argv[0]).unwrap(), argv).name();
        assert_eq!(of(&[b"CONFIG", b"set", b"port"]), "config|set");
        assert_eq!(of(&[b"CONFIG", b"nothing"]), "config");
        assert_eq!(of(&[b"COMMAND"]), "command");
        assert_eq!(of(&[b"BF.ADD", b"set"]), "bf.add");
        for name in ["", "|", "config|", "|set", "config|set|x", "config|nothing", "nothing|set"] {
            assert!(Permission::find(name.as_bytes()).is_none(), "{name}");
        }
    }
}
