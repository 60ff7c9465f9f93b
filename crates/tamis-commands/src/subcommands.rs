//! The subcommands that users may be allowed or refused by themselves, and which of their words are keys.

use crate::command::Category::{
    self, Admin, Connection, Dangerous, Keyspace as KeyspaceGroup, Read, Slow,
};
use crate::command::{Command, Keys};

/// A subcommand: a command of its own for users, a word of another for everything else.
#[derive(Debug)]
pub struct Subcommand {
    /// The command, in capitals.
    pub command: &'static str,
    /// The word behind it, in capitals.
    pub name: &'static str,
    /// The access categories.
    pub categories: &'static [Category],
    /// Which words are keys, counted from the command on.
    pub keys: Keys,
}

const fn row(
    command: &'static str,
    name: &'static str,
    categories: &'static [Category],
) -> Subcommand {
    Subcommand { command, name, categories, keys: Keys::NONE }
}

const fn of_key(
    command: &'static str,
    name: &'static str,
    categories: &'static [Category],
) -> Subcommand {
    Subcommand { command, name, categories, keys: Keys { first: 2, last: 2, step: 1 } }
}

const OPERATORS: &[Category] = &[Admin, Slow, Dangerous];
const OPERATORS_CONNECTION: &[Category] = &[Admin, Slow, Dangerous, Connection];
const ANYONE: &[Category] = &[Slow];
const ANYONE_CONNECTION: &[Category] = &[Slow, Connection];
const READS_KEY: &[Category] = &[KeyspaceGroup, Read, Slow];

/// Every subcommand, in alphabetical order.
pub static SUBCOMMANDS: &[Subcommand] = &[
    row("ACL", "CAT", ANYONE),
    row("ACL", "DELUSER", OPERATORS),
    row("ACL", "DRYRUN", OPERATORS),
    row("ACL", "GENPASS", ANYONE),
    row("ACL", "GETUSER", OPERATORS),
    row("ACL", "HELP", ANYONE),
    row("ACL", "LIST", OPERATORS),
    row("ACL", "LOAD", OPERATORS),
    row("ACL", "LOG", OPERATORS),
    row("ACL", "SAVE", OPERATORS),
    row("ACL", "SETUSER", OPERATORS),
    row("ACL", "USERS", OPERATORS),
    row("ACL", "WHOAMI", ANYONE),
    row("CLIENT", "GETNAME", ANYONE_CONNECTION),
    row("CLIENT", "HELP", ANYONE_CONNECTION),
    row("CLIENT", "ID", ANYONE_CONNECTION),
    row("CLIENT", "INFO", ANYONE_CONNECTION),
    row("CLIENT", "KILL", OPERATORS_CONNECTION),
    row("CLIENT", "LIST", OPERATORS_CONNECTION),
    row("CLIENT", "NO-EVICT", OPERATORS_CONNECTION),
    row("CLIENT", "NO-TOUCH", ANYONE_CONNECTION),
    row("CLIENT", "REPLY", ANYONE_CONNECTION),
    row("CLIENT", "SETINFO", ANYONE_CONNECTION),
    row("CLIENT", "SETNAME", ANYONE_CONNECTION),
    row("COMMAND", "COUNT", ANYONE_CONNECTION),
    row("COMMAND", "DOCS", ANYONE_CONNECTION),
    row("COMMAND", "GETKEYS", ANYONE_CONNECTION),
    row("COMMAND", "INFO", ANYONE_CONNECTION),
    row("COMMAND", "LIST", ANYONE_CONNECTION),
    row("CONFIG", "GET", OPERATORS),
    row("CONFIG", "RESETSTAT", OPERATORS),
    row("CONFIG", "REWRITE", OPERATORS),
    row("CONFIG", "SET", OPERATORS),
    row("LATENCY", "DOCTOR", OPERATORS),
    row("LATENCY", "GRAPH", OPERATORS),
    row("LATENCY", "HELP", ANYONE),
    row("LATENCY", "HISTOGRAM", OPERATORS),
    row("LATENCY", "HISTORY", OPERATORS),
    row("LATENCY", "LATEST", OPERATORS),
    row("LATENCY", "RESET", OPERATORS),
    of_key("MEMORY", "USAGE", &[Read, Slow]),
    row("MODULE", "LIST", OPERATORS),
    of_key("OBJECT", "ENCODING", READS_KEY),
    of_key("OBJECT", "FREQ", READS_KEY),
    of_key("OBJECT", "IDLETIME", READS_KEY),
    of_key("OBJECT", "REFCOUNT", READS_KEY),
    row("SLOWLOG", "GET", OPERATORS),
    row("SLOWLOG", "HELP", ANYONE),
    row("SLOWLOG", "LEN", OPERATORS),
    row("SLOWLOG", "RESET", OPERATORS),
];

impl Command {
    /// Returns the subcommands that users may be allowed by themselves.
    #[must_use]
    pub fn subcommands(&self) -> &'static [Subcommand] {
        let start = SUBCOMMANDS.partition_point(|it| it.command < self.name);
        let len = SUBCOMMANDS[start..].partition_point(|it| it.command == self.name);
        &SUBCOMMANDS[start..start + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{COMMANDS, find};

    #[test]
    fn subcommands_are_those_of_commands_in_order() {
        assert!(SUBCOMMANDS.is_sorted_by(|a, b| (a.command, a.name) < (b.command, b.name)));
        let found: usize = COMMANDS.iter().map(|command| command.subcommands().len()).sum();
        assert_eq!(found, SUBCOMMANDS.len());
        for row in SUBCOMMANDS {
            assert_eq!(find(row.command.as_bytes()).unwrap().keys, Keys::NONE, "{}", row.command);
            let speeds =
                row.categories.iter().filter(|it| [Category::Fast, Slow].contains(it)).count();
            assert_eq!(speeds, 1, "{} {}", row.command, row.name);
        }
    }
}
