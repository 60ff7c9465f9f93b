//! The command table contains every command, in alphabetical order. Each family of commands has a
//! separate file of rows.

mod bf;
mod bitmap;
mod cf;
mod connection;
mod key;
mod row;
mod server;
mod string;
mod tm;
mod transaction;

use crate::command::Command;

const FAMILIES: [&[Command]; 9] = [
    bf::ROWS,
    bitmap::ROWS,
    cf::ROWS,
    connection::ROWS,
    key::ROWS,
    server::ROWS,
    string::ROWS,
    tm::ROWS,
    transaction::ROWS,
];

const LEN: usize = {
    let (mut len, mut family) = (0, 0);
    while family < FAMILIES.len() {
        len += FAMILIES[family].len();
        family += 1;
    }
    len
};

/// The static array has a fixed address. `Command::index` derives the index of a row from the
/// address of the row.
static ROWS: [Command; LEN] = {
    let mut rows = [FAMILIES[0][0]; LEN];
    let (mut len, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let mut row = 0;
        while row < FAMILIES[family].len() {
            // Move each row with a later name up by one place.
            let mut at = len;
            while at > 0 && is_before(FAMILIES[family][row].name, rows[at - 1].name) {
                rows[at] = rows[at - 1];
                at -= 1;
            }
            rows[at] = FAMILIES[family][row];
            len += 1;
            row += 1;
        }
        family += 1;
    }
    rows
};

/// Tests at compile time whether `a` comes before `b` in alphabetical order.
const fn is_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i < b.len() && (i == a.len() || a[i] < b[i])
}

/// All commands, in alphabetical order.
pub static COMMANDS: &[Command] = &ROWS;

/// Finds a command by its name, ignoring case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    // Every command name fits into the buffer, so a longer word is not a command name.
    let mut capitals = [0; 32];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    let capitals: &[u8] = capitals;
    let at = COMMANDS.binary_search_by(|row| row.name.as_bytes().cmp(capitals)).ok()?;
    Some(&COMMANDS[at])
}

impl Command {
    /// Returns the index of the row in [`COMMANDS`]. Constant time.
    ///
    /// # Panics
    ///
    /// Panics if the command is not a row of the table.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{COMMANDS, find};
    ///
    /// let command = find(b"ping").unwrap();
    /// assert_eq!(COMMANDS[command.index()].name, "PING");
    /// ```
    #[must_use]
    pub fn index(&self) -> usize {
        COMMANDS.element_offset(self).expect("a command is a row of the table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Flag::{DenyOom, ReadOnly, Write};
    use crate::command::arity::Arity::Exactly;
    use crate::command::category::Category;
    use crate::command::handler::{Handler, KeyHandler, ServerCommand};
    use crate::command::keys::Keys;

    #[test]
    fn every_command_is_found_by_its_name() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        for command in COMMANDS {
            let small = command.name.to_ascii_lowercase();
            assert_eq!(find(small.as_bytes()).map(|it| it.name), Some(command.name));
        }
        for name in ["", "BF", "BF.AD", "BF.ADDD", &"x".repeat(1000)] {
            assert!(find(name.as_bytes()).is_none());
        }
    }

    #[test]
    fn rows_are_consistent() {
        for command in COMMANDS {
            assert!(!(command.has(Write) && command.has(ReadOnly)), "{}", command.name);
            let has_keys_of_handler = match command.handler {
                Handler::Key(key) => {
                    let changes = matches!(key, KeyHandler::Write(_));
                    (command.keys.first, command.keys.last) == (1, 1)
                        && (command.has(Write) || !changes)
                }
                Handler::Answer(_) => command.keys == Keys::NONE,
                Handler::ReadKeys(_) => !command.has(Write),
                Handler::WriteKeys(_) => command.has(Write),
                Handler::Server(_) => !command.has(Write) && !command.has(ReadOnly),
            };
            assert!(has_keys_of_handler, "{}", command.name);
            let is_ping = matches!(command.handler, Handler::Server(ServerCommand::Ping));
            assert_eq!(is_ping, command.name == "PING", "{} has a handler", command.name);
            assert!(!command.since.is_empty() && !command.complexity.is_empty());
            for (flag, category) in [(Write, Category::Write), (ReadOnly, Category::Read)] {
                let is_listed = command.categories.contains(&category);
                assert_eq!(command.has(flag), is_listed, "{} @{}", command.name, category.name());
            }
            assert!(!command.has(DenyOom) || command.has(Write), "{}", command.name);
            assert!(!command.summary.ends_with('.') && !command.summary.is_empty());
            let is_speed =
                |category: &&Category| matches!(category, Category::Fast | Category::Slow);
            let speeds = command.categories.iter().filter(is_speed).count();
            assert_eq!(speeds, 1, "{}", command.name);
            if let Some(items) = command.batch_items() {
                assert_eq!(items.inserts, command.has(Write), "{}", command.name);
                assert_eq!(items.is_one, command.arity == Exactly(3), "{}", command.name);
            }
        }
    }
}
