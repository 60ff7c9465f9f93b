//! The subcommands that a user's rules can allow or deny separately, and the keys of each
//! subcommand.

use crate::command::arity::Arity::{self, AtLeast, Exactly};
use crate::command::category::Category::{
    self, Admin, Connection, Dangerous, Keyspace as KeyspaceGroup, Read, Slow,
};
use crate::command::keys::Keys;

/// A subcommand. ACL rules treat a subcommand as a separate command. All other code treats the
/// subcommand as an argument of the command.
#[derive(Debug)]
pub struct Subcommand {
    /// The command, in upper case.
    pub command: &'static str,
    /// The name of the subcommand, in upper case.
    pub name: &'static str,
    /// The access categories.
    pub categories: &'static [Category],
    /// The words that are keys. Index 0 is the command.
    pub keys: Keys,
    /// The number of words, including the command and the subcommand.
    pub arity: Arity,
    /// The syntax of the arguments after the subcommand, for help.
    pub syntax: &'static str,
    /// A one-line description.
    pub summary: &'static str,
}

/// Creates a row. `name` contains the command and the subcommand. `arity` counts the command, the subcommand and the
/// arguments.
const fn row(
    name: &'static str,
    categories: &'static [Category],
    arity: Arity,
    syntax: &'static str,
) -> Subcommand {
    let mut at = 0;
    while name.as_bytes()[at] != b' ' {
        at += 1;
    }
    let (command, name) = name.split_at(at);
    let (_, name) = name.split_at(1);
    Subcommand { command, name, categories, keys: Keys::NONE, arity, syntax, summary: "" }
}

/// Creates the row of a subcommand for a key.
const fn of_key(
    name: &'static str,
    categories: &'static [Category],
    arity: Arity,
    syntax: &'static str,
) -> Subcommand {
    Subcommand { keys: Keys::at(2, 2, 1), ..row(name, categories, arity, syntax) }
}

/// Creates the row of a `HELP` subcommand.
const fn help(name: &'static str, categories: &'static [Category]) -> Subcommand {
    row(name, categories, Exactly(2), "").summary("Prints this help")
}

impl Subcommand {
    const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }
}

const OPERATORS: &[Category] = &[Admin, Slow, Dangerous];
const OPERATORS_CONNECTION: &[Category] = &[Admin, Slow, Dangerous, Connection];
const ANYONE: &[Category] = &[Slow];
const ANYONE_CONNECTION: &[Category] = &[Slow, Connection];
const READS_KEY: &[Category] = &[KeyspaceGroup, Read, Slow];

/// Every subcommand, in alphabetical order.
pub static SUBCOMMANDS: &[Subcommand] = &ROWS;

/// The static array has a fixed address, from which the index of a row is derived. The compiler may
/// duplicate a slice in a constant.
static ROWS: [Subcommand; 57] = [
    row("ACL CAT", ANYONE, AtLeast(2), "[category]")
        .summary("Lists the categories, or the commands of a category"),
    row("ACL DELUSER", OPERATORS, AtLeast(3), "name [name ...]")
        .summary("Deletes users and closes their connections"),
    row("ACL DRYRUN", OPERATORS, AtLeast(4), "name command [arg ...]")
        .summary("Tests whether a user may run a command; does not run it"),
    row("ACL GENPASS", ANYONE, AtLeast(2), "[bits]")
        .summary("Returns a random password"),
    row("ACL GETUSER", OPERATORS, Exactly(3), "name")
        .summary("Returns the rules of a user"),
    help("ACL HELP", ANYONE),
    row("ACL LIST", OPERATORS, Exactly(2), "")
        .summary("Lists the users as lines of the ACL file"),
    row("ACL LOAD", OPERATORS, Exactly(2), "")
        .summary("Reloads the ACL file; keeps the old users if the file has an error"),
    row("ACL LOG", OPERATORS, AtLeast(2), "[count | RESET]")
        .summary("Lists or clears the latest refused commands and logins"),
    row("ACL SAVE", OPERATORS, Exactly(2), "")
        .summary("Writes the users to the ACL file"),
    row("ACL SETUSER", OPERATORS, AtLeast(3), "name [rule ...]")
        .summary("Creates or changes a user"),
    row("ACL USERS", OPERATORS, Exactly(2), "")
        .summary("Lists the names of all users"),
    row("ACL WHOAMI", ANYONE, Exactly(2), "")
        .summary("Returns the user name of the connection"),
    row("CLIENT GETNAME", ANYONE_CONNECTION, Exactly(2), "")
        .summary("Returns the name of the connection"),
    help("CLIENT HELP", ANYONE_CONNECTION),
    row("CLIENT ID", ANYONE_CONNECTION, Exactly(2), "")
        .summary("Returns the id of the connection"),
    row("CLIENT INFO", ANYONE_CONNECTION, Exactly(2), "")
        .summary("Describes this connection"),
    row("CLIENT KILL", OPERATORS_CONNECTION, AtLeast(3), "addr | option value [option value ...]")
        .summary("Closes connections by ID, ADDR, LADDR, USER, TYPE or SKIPME"),
    row("CLIENT LIST", OPERATORS_CONNECTION, AtLeast(2), "[TYPE type | ID id [id ...]]")
        .summary("Describes all connections"),
    row("CLIENT NO-EVICT", OPERATORS_CONNECTION, Exactly(3), "ON | OFF")
        .summary("Accepted without effect: the server evicts no client"),
    row("CLIENT NO-TOUCH", ANYONE_CONNECTION, Exactly(3), "ON | OFF")
        .summary("Accepted without effect: the server keeps no access times"),
    row("CLIENT REPLY", ANYONE_CONNECTION, Exactly(3), "ON")
        .summary("Accepts ON only: every command is answered"),
    row("CLIENT SETINFO", ANYONE_CONNECTION, Exactly(4), "LIB-NAME | LIB-VER text")
        .summary("Sets the name or the version of the client library"),
    row("CLIENT SETNAME", ANYONE_CONNECTION, Exactly(3), "name")
        .summary("Sets the name of the connection"),
    row("COMMAND COUNT", ANYONE_CONNECTION, Exactly(2), "")
        .summary("Returns the number of commands"),
    row("COMMAND DOCS", ANYONE_CONNECTION, AtLeast(2), "[name ...]")
        .summary("Returns the documentation of commands and subcommands, by default of all"),
    row("COMMAND GETKEYS", ANYONE_CONNECTION, AtLeast(3), "command [arg ...]")
        .summary("Returns the keys among the arguments of a command"),
    help("COMMAND HELP", ANYONE_CONNECTION),
    row("COMMAND INFO", ANYONE_CONNECTION, AtLeast(2), "[name ...]")
        .summary("Describes commands and subcommands, by default all"),
    row("COMMAND LIST", ANYONE_CONNECTION, AtLeast(2), "[FILTERBY MODULE name | ACLCAT category | PATTERN pattern]")
        .summary("Lists the names of commands and subcommands"),
    row("CONFIG GET", OPERATORS, AtLeast(3), "pattern [pattern ...]")
        .summary("Returns the options whose names match a pattern, with their values"),
    help("CONFIG HELP", ANYONE),
    row("CONFIG RESETSTAT", OPERATORS, Exactly(2), "")
        .summary("Resets the statistics of INFO"),
    row("CONFIG REWRITE", OPERATORS, Exactly(2), "")
        .summary("Writes the present options to the configuration file"),
    row("CONFIG SET", OPERATORS, AtLeast(4), "name value [name value ...]")
        .summary("Sets options: all of them, or none after an error"),
    help("DEBUG HELP", ANYONE),
    row("DEBUG RELOAD", OPERATORS, AtLeast(2), "[NOSAVE]")
        .summary("Saves a snapshot, then encodes and decodes every value"),
    row("LATENCY DOCTOR", OPERATORS, Exactly(2), "")
        .summary("Returns a text that names the commands for execution times"),
    row("LATENCY GRAPH", OPERATORS, Exactly(3), "event")
        .summary("Returns an error: the server keeps no latency events"),
    help("LATENCY HELP", ANYONE),
    row("LATENCY HISTOGRAM", OPERATORS, AtLeast(2), "[command ...]")
        .summary("Returns the number of calls of commands and a histogram of their times in microseconds"),
    row("LATENCY HISTORY", OPERATORS, Exactly(3), "event")
        .summary("Returns an empty list: the server keeps no latency events"),
    row("LATENCY LATEST", OPERATORS, Exactly(2), "")
        .summary("Returns an empty list: the server keeps no latency events"),
    row("LATENCY RESET", OPERATORS, AtLeast(2), "[event ...]")
        .summary("Returns 0: the server keeps no latency events"),
    help("MEMORY HELP", ANYONE),
    of_key("MEMORY USAGE", &[Read, Slow], AtLeast(3), "key [SAMPLES n]")
        .summary("Returns the memory that a key uses, in bytes"),
    help("MODULE HELP", ANYONE),
    row("MODULE LIST", OPERATORS, Exactly(2), "")
        .summary("Lists the module bf, whose commands this server implements"),
    of_key("OBJECT ENCODING", READS_KEY, Exactly(3), "key")
        .summary("Returns how the value of a key is stored"),
    of_key("OBJECT FREQ", READS_KEY, Exactly(3), "key")
        .summary("Returns an error: the server does not count accesses"),
    help("OBJECT HELP", &[KeyspaceGroup, Slow]),
    of_key("OBJECT IDLETIME", READS_KEY, Exactly(3), "key")
        .summary("Returns 0: the server keeps no access times"),
    of_key("OBJECT REFCOUNT", READS_KEY, Exactly(3), "key")
        .summary("Returns 1"),
    row("SLOWLOG GET", OPERATORS, AtLeast(2), "[count]")
        .summary("Lists the latest slow commands, by default 10, with -1 all: id, time, microseconds, arguments, client address and name"),
    help("SLOWLOG HELP", ANYONE),
    row("SLOWLOG LEN", OPERATORS, Exactly(2), "")
        .summary("Returns the number of entries in the slow log"),
    row("SLOWLOG RESET", OPERATORS, Exactly(2), "")
        .summary("Clears the slow log"),
];

/// Returns the subcommands of a command; an empty slice if the command has no subcommands. Runs at compile time.
pub(crate) const fn subcommands_of(command: &str) -> &'static [Subcommand] {
    let mut rows: &'static [Subcommand] = &ROWS;
    while let [row, rest @ ..] = rows
        && !is_same(row.command, command)
    {
        rows = rest;
    }
    let mut len = 0;
    while len < rows.len() && is_same(rows[len].command, command) {
        len += 1;
    }
    rows.split_at(len).0
}

/// Tests whether two texts are equal, at compile time.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::permission::Permission;
    use crate::table::{COMMANDS, find};

    #[test]
    fn subcommands_are_those_of_commands_in_order() {
        assert!(SUBCOMMANDS.is_sorted_by(|a, b| (a.command, a.name) < (b.command, b.name)));
        let found: usize = COMMANDS.iter().map(|command| command.subcommands.len()).sum();
        assert_eq!(found, SUBCOMMANDS.len());
        for row in SUBCOMMANDS {
            assert_eq!(find(row.command.as_bytes()).unwrap().keys, Keys::NONE, "{}", row.command);
            let is_speed = |category: &&Category| matches!(category, Category::Fast | Slow);
            let speeds = row.categories.iter().filter(is_speed).count();
            assert_eq!(speeds, 1, "{} {}", row.command, row.name);
            let has_arguments = row.arity != Exactly(2);
            assert_eq!(!row.syntax.is_empty(), has_arguments, "{} {}", row.command, row.name);
            let shown = Permission::find(format!("{}|help", row.command).as_bytes());
            assert!(shown.is_some(), "{} has subcommands and no HELP", row.command);
        }
    }
}
