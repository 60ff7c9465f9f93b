//! `COMMAND`: the command table, in the format of Redis.

use tamis_commands::text::{self, server};
use tamis_commands::{Argv, COMMANDS, Category, Command, Flag, InMulti, Permission, find};
use tamis_resp::Reply;

use crate::pattern::{self, MAX_PATTERN_BYTES};
use crate::session::subcommand::unknown_subcommand;
use crate::users::category_named;

pub(super) fn command(argv: Argv<'_>) -> Reply {
    let rows = || Reply::Array(commands().map(row).collect());
    let Some(subcommand) = argv.get(1) else { return rows() };
    let arguments = &argv[2..];
    match subcommand.to_ascii_uppercase().as_slice() {
        b"COUNT" if arguments.is_empty() => Reply::Integer(COMMANDS.len() as i64),
        b"LIST" => list(arguments),
        b"INFO" if arguments.is_empty() => rows(),
        b"INFO" => {
            let found = arguments.iter().map(|name| Permission::find(name));
            Reply::Array(found.map(|found| found.map_or(Reply::NullArray, row)).collect())
        }
        b"DOCS" if arguments.is_empty() => Reply::Map(commands().map(documented).collect()),
        b"DOCS" => {
            let found = arguments.iter().filter_map(|name| Permission::find(name));
            Reply::Map(found.map(documented).collect())
        }
        b"GETKEYS" if !arguments.is_empty() => keys(arguments),
        _ => unknown_subcommand("COMMAND", subcommand),
    }
}

/// Handles `COMMAND LIST`. As in Redis, the list is empty for an unknown module or category. The
/// category is written without `@`.
fn list(arguments: Argv<'_>) -> Reply {
    let names = |is_listed: &dyn Fn(Permission) -> bool| {
        let listed = Permission::all().filter(|permission| is_listed(*permission));
        Reply::Array(listed.map(|permission| Reply::bulk(permission.name())).collect())
    };
    let (by, word) = match *arguments {
        [] => return names(&|_| true),
        [filter, by, word] if filter.eq_ignore_ascii_case(b"FILTERBY") => (by, word),
        _ => return Reply::error(text::SYNTAX),
    };
    match by.to_ascii_uppercase().as_slice() {
        b"MODULE" => names(&|permission| word == b"bf" && permission.command.has(Flag::Module)),
        b"ACLCAT" => {
            let category = category_named(word);
            names(&|permission| category.is_some_and(|category| permission.is_in(category)))
        }
        b"PATTERN" if word.len() > MAX_PATTERN_BYTES => Reply::error(server::LONG_PATTERN),
        b"PATTERN" => {
            let pattern = word.to_ascii_lowercase();
            names(&|permission| pattern::matches(&pattern, permission.name().as_bytes()))
        }
        _ => Reply::error(text::SYNTAX),
    }
}

fn keys(argv: Argv<'_>) -> Reply {
    let Some(command) = find(argv[0]) else { return Reply::error(server::NO_COMMAND) };
    if !command.takes(argv.len()) {
        return Reply::error(server::WORDS_OF_COMMAND);
    }
    let keys: Vec<Reply> = command.keys_of(argv).map(|(key, _)| Reply::bulk(key)).collect();
    if keys.is_empty() {
        return Reply::error(server::NO_KEYS);
    }
    Reply::Array(keys)
}

/// Returns the commands, without their subcommands.
fn commands() -> impl Iterator<Item = Permission> {
    COMMANDS.iter().map(|command| Permission { command, subcommand: None })
}

/// Returns the subcommands of a command. Returns an empty list for a subcommand.
fn subcommands(permission: Permission) -> impl Iterator<Item = Permission> {
    let rows = if permission.subcommand.is_none() { permission.command.subcommands } else { &[] };
    rows.iter().map(move |it| Permission { command: permission.command, subcommand: Some(it) })
}

/// Returns one entry of `COMMAND INFO`.
fn row(permission: Permission) -> Reply {
    let texts = |texts: Vec<String>| Reply::Set(texts.into_iter().map(Reply::simple).collect());
    let Permission { command, subcommand } = permission;
    let (arity, keys, categories) = match subcommand {
        None => (command.arity, command.keys, command.categories),
        Some(it) => (it.arity, it.keys, it.categories),
    };
    let no_multi = (command.in_multi == InMulti::Refused).then_some("no_multi");
    let flags = command.flags.iter().filter_map(|flag| flag.name()).chain(no_multi);
    let flags = flags.map(str::to_owned).collect();
    let categories = categories.iter().map(|it| format!("@{}", it.name())).collect();
    Reply::Array(vec![
        Reply::bulk(permission.name()),
        Reply::Integer(arity.number()),
        texts(flags),
        Reply::Integer(keys.first as i64),
        Reply::Integer(keys.last),
        Reply::Integer(keys.step as i64),
        texts(categories),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(subcommands(permission).map(row).collect()),
    ])
}

/// Handles the `HELP` subcommand of a command. The reply lists the rows of the subcommands in the
/// layout of Redis.
pub(super) fn help(command: &Command) -> Reply {
    let name = command.name;
    let mut lines =
        vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for row in command.subcommands.iter().filter(|it| it.name != "HELP") {
        lines.push(format!("{} {}", row.name, row.syntax).trim_end().to_owned());
        lines.push(format!("    {}.", row.summary));
    }
    lines.push("HELP".to_owned());
    lines.push("    Prints this help.".to_owned());
    Reply::Array(lines.into_iter().map(Reply::simple).collect())
}

/// Returns one entry of `COMMAND DOCS`.
fn documented(permission: Permission) -> (Reply, Reply) {
    let Permission { command, subcommand } = permission;
    let group = match command.categories {
        _ if command.has(Flag::Module) => "module",
        all if all.contains(&Category::Connection) => "connection",
        all if all.contains(&Category::Transaction) => "transactions",
        all if all.contains(&Category::String) => "string",
        all if all.contains(&Category::Bitmap) => "bitmap",
        all if all.contains(&Category::Keyspace) => "generic",
        _ => "server",
    };
    let (syntax, summary) =
        subcommand.map_or((command.syntax, command.summary), |it| (it.syntax, it.summary));
    let mut fields = vec![
        ("summary", Reply::bulk(summary)),
        ("since", Reply::bulk(command.since)),
        ("group", Reply::bulk(group)),
        ("complexity", Reply::bulk(command.complexity)),
    ];
    let documents: Vec<(Reply, Reply)> = subcommands(permission).map(documented).collect();
    if documents.is_empty() {
        fields.push(("arguments", Reply::Array(arguments(syntax))));
    } else {
        fields.push(("subcommands", Reply::Map(documents)));
    }
    let fields = fields.into_iter().map(|(name, value)| (Reply::bulk(name), value));
    (Reply::bulk(permission.name()), Reply::Map(fields.collect()))
}

/// Splits the syntax into arguments for the help of clients. Each word is one argument, and a text
/// in brackets is one argument.
fn arguments(syntax: &str) -> Vec<Reply> {
    let mut arguments = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in syntax.char_indices().chain([(syntax.len(), ' ')]) {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ' ' if depth == 0 => {
                let text = &syntax[start..at];
                if !text.is_empty() && text != "|" {
                    arguments.push(argument(text));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments
}

fn argument(text: &str) -> Reply {
    let name = text.trim_start_matches('[').trim_end_matches(']');
    let kind = if name == "key" { "key" } else { "string" };
    let mut fields = vec![
        (Reply::bulk("name"), Reply::bulk(name)),
        (Reply::bulk("type"), Reply::bulk(kind)),
        (Reply::bulk("display_text"), Reply::bulk(name)),
    ];
    if text.starts_with('[') {
        fields.push((Reply::bulk("flags"), Reply::Array(vec![Reply::simple("optional")])));
    }
    Reply::Map(fields)
}
