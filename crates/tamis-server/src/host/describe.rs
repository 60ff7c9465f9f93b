//! `COMMAND`: the table, as Redis describes its commands.

use tamis_commands::text::host;
use tamis_commands::{Arity, COMMANDS, Category, Command, Flag, Words, find};
use tamis_resp::Reply;

use super::unknown_subcommand;

pub(super) fn command(words: Words<'_>) -> Reply {
    let Some(subcommand) = words.get(1) else {
        return Reply::Array(COMMANDS.iter().map(row).collect());
    };
    let arguments = &words[2..];
    match subcommand.to_ascii_uppercase().as_slice() {
        b"COUNT" if arguments.is_empty() => Reply::Integer(COMMANDS.len() as i64),
        b"LIST" if arguments.is_empty() => Reply::Array(
            COMMANDS.iter().map(|it| Reply::bulk(it.name.to_ascii_lowercase())).collect(),
        ),
        b"INFO" if arguments.is_empty() => Reply::Array(COMMANDS.iter().map(row).collect()),
        b"INFO" => Reply::Array(
            arguments.iter().map(|name| find(name).map_or(Reply::NullArray, row)).collect(),
        ),
        b"DOCS" if arguments.is_empty() => Reply::Map(COMMANDS.iter().map(documented).collect()),
        b"DOCS" => {
            Reply::Map(arguments.iter().filter_map(|name| find(name)).map(documented).collect())
        }
        b"GETKEYS" if !arguments.is_empty() => keys(arguments),
        _ => unknown_subcommand("COMMAND", subcommand),
    }
}

fn keys(words: Words<'_>) -> Reply {
    let Some(command) = find(words[0]) else {
        return Reply::error(host::NO_COMMAND);
    };
    if !command.arity.takes(words.len()) {
        return Reply::error(host::WORDS_OF_COMMAND);
    }
    let keys: Vec<Reply> = command.keys_of(words).map(|(key, _)| Reply::bulk(key)).collect();
    if keys.is_empty() {
        return Reply::error(host::NO_KEYS);
    }
    Reply::Array(keys)
}

fn row(command: &Command) -> Reply {
    let texts = |texts: Vec<String>| Reply::Set(texts.into_iter().map(Reply::simple).collect());
    let flags = command.flags.iter().map(|flag| flag.name().to_owned()).collect();
    let categories = command.categories.iter().map(|it| format!("@{}", it.name())).collect();
    Reply::Array(vec![
        Reply::bulk(command.name.to_ascii_lowercase()),
        Reply::Integer(command.arity.number()),
        texts(flags),
        Reply::Integer(command.keys.first as i64),
        Reply::Integer(command.keys.last),
        Reply::Integer(command.keys.step as i64),
        texts(categories),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
    ])
}

/// One entry of `COMMAND DOCS`.
fn documented(command: &'static Command) -> (Reply, Reply) {
    let group = match command.categories {
        _ if command.has(Flag::Module) => "module",
        all if all.contains(&Category::Connection) => "connection",
        all if all.contains(&Category::Transaction) => "transactions",
        all if all.contains(&Category::String) => "string",
        all if all.contains(&Category::Bitmap) => "bitmap",
        all if all.contains(&Category::Keyspace) => "generic",
        _ => "server",
    };
    let fields = [
        ("summary", Reply::bulk(command.summary)),
        ("since", Reply::bulk(command.since)),
        ("group", Reply::bulk(group)),
        ("complexity", Reply::bulk(command.complexity)),
        ("arguments", Reply::Array(arguments(command))),
    ];
    let fields = fields.map(|(name, value)| (Reply::bulk(name), value));
    (Reply::bulk(command.name.to_ascii_lowercase()), Reply::Map(fields.into()))
}

/// The arguments as clients' help shows them: one a word of the syntax, a bracket kept together.
fn arguments(command: &Command) -> Vec<Reply> {
    let mut arguments = Vec::new();
    let (mut depth, mut start) = (0, 0);
    let ends = command.syntax.char_indices().chain([(command.syntax.len(), ' ')]);
    for (at, c) in ends {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ' ' if depth == 0 => {
                let text = &command.syntax[start..at];
                if !text.is_empty() && text != "|" {
                    arguments.push(argument(text));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    debug_assert!(arguments.is_empty() || command.arity != Arity::Exactly(1), "{}", command.name);
    arguments
}

fn argument(text: &str) -> Reply {
    let is_optional = text.starts_with('[');
    let name = text.trim_start_matches('[').trim_end_matches(']');
    let kind = if name == "key" { "key" } else { "string" };
    let mut fields = vec![
        (Reply::bulk("name"), Reply::bulk(name)),
        (Reply::bulk("type"), Reply::bulk(kind)),
        (Reply::bulk("display_text"), Reply::bulk(name)),
    ];
    if is_optional {
        let flags = Reply::Array(vec![Reply::simple("optional")]);
        fields.push((Reply::bulk("flags"), flags));
    }
    Reply::Map(fields)
}
