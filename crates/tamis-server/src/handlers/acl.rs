//! `ACL`: users, their permissions, and refusals.

use tamis_commands::text::{self, acl as texts, shown};
use tamis_commands::{Argv, Category, Env, Permission, find, parse_integer};
use tamis_resp::Reply;

use crate::handlers::client::{end_those_of, map};
use crate::session::Session;
use crate::subcommand::unknown_subcommand;
use crate::users::{DEFAULT, Permissions, Refusal};

pub(super) fn acl(session: &mut Session, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    let name = argv[1].to_ascii_uppercase();
    match (name.as_slice(), &argv[2..]) {
        (b"CAT", []) => {
            Reply::Array(Category::ALL.iter().map(|it| Reply::bulk(it.name())).collect())
        }
        (b"CAT", [category]) => members(category),
        (b"DELUSER", names @ [_, ..]) => delete(session, names),
        (b"DRYRUN", [user, command @ ..]) if !command.is_empty() => try_out(session, user, command),
        (b"GENPASS", []) => password(256),
        (b"GENPASS", [bits]) => match parse_integer(bits) {
            Some(bits @ 1..=4096) => password(bits as usize),
            _ => Reply::error(texts::GENPASS),
        },
        (b"GETUSER", [user]) => describe(session, user),
        (b"LIST", []) => Reply::Array(
            session.server.users.all().iter().map(|it| Reply::bulk(it.line())).collect(),
        ),
        (b"LOAD", []) => load(session),
        (b"LOG", []) => log(session, 10, env),
        (b"LOG", [word]) if word.eq_ignore_ascii_case(b"RESET") => {
            session.server.users.refusals.clear();
            Reply::ok()
        }
        (b"LOG", [count]) => match parse_integer(count) {
            Some(count) if count >= 0 => log(session, count as usize, env),
            _ => Reply::error(text::NO_INTEGER),
        },
        (b"SAVE", []) => save(session),
        (b"SETUSER", [user, rules @ ..]) => set(session, user, rules),
        (b"USERS", []) => Reply::Array(
            session.server.users.all().iter().map(|it| Reply::bulk(it.name.as_slice())).collect(),
        ),
        (b"WHOAMI", []) => Reply::bulk(session.user.name.as_slice()),
        _ => unknown_subcommand("ACL", argv[1]),
    }
}

fn members(category: &[u8]) -> Reply {
    let is_named = |it: &&Category| category.eq_ignore_ascii_case(it.name().as_bytes());
    let Some(&category) = Category::ALL.iter().find(is_named) else {
        return texts::no_category(category);
    };
    let members = Permission::all().filter(|action| action.is_in(category));
    Reply::Array(members.map(|action| Reply::bulk(action.name())).collect())
}

fn password(bits: usize) -> Reply {
    // One hexadecimal digit per four bits, rounded up.
    let digits = bits.div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    if getrandom::fill(&mut bytes).is_err() {
        return Reply::error(texts::NO_RANDOM);
    }
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    Reply::bulk(text)
}

fn set(session: &mut Session, name: &[u8], rules: Argv<'_>) -> Reply {
    match session.server.users.set(name, rules) {
        Ok(user) => {
            session.server.monitors.users_changed();
            if !user.is_on {
                end_those_of(session, |other| other == name);
            }
            Reply::ok()
        }
        Err(refusal) => refusal,
    }
}

fn delete(session: &mut Session, names: Argv<'_>) -> Reply {
    if names.contains(&DEFAULT) {
        return Reply::error(texts::DEFAULT_STAYS);
    }
    let deleted = names.iter().filter(|name| session.server.users.delete(name)).count();
    end_those_of(session, |user| names.contains(&user));
    Reply::Integer(deleted as i64)
}

fn load(session: &mut Session) -> Reply {
    let config = session.server.config();
    let Some(path) = &config.users_file else { return Reply::error(texts::NO_FILE) };
    if let Err(refusal) = session.server.users.load(path, &config.password) {
        return refusal;
    }
    let server = session.server.clone();
    server.monitors.users_changed();
    end_those_of(session, |name| !server.users.get(name).is_some_and(|user| user.is_on));
    Reply::ok()
}

fn save(session: &Session) -> Reply {
    let config = session.server.config();
    let Some(path) = &config.users_file else { return Reply::error(texts::NO_FILE) };
    match session.server.users.save(path) {
        Ok(()) => Reply::ok(),
        Err(error) => Reply::error(format!("ERR {error}")),
    }
}

fn describe(session: &Session, name: &[u8]) -> Reply {
    let Some(user) = session.server.users.get(name) else { return Reply::Null };
    let mut flags = vec![Reply::bulk(if user.is_on { "on" } else { "off" })];
    if user.takes_any {
        flags.push(Reply::bulk("nopass"));
    }
    let passwords = user.passwords.iter().map(|it| Reply::bulk(it.to_string())).collect();
    let allowed = |permissions: &Permissions| {
        [
            ("commands", Reply::bulk(permissions.commands())),
            ("keys", Reply::bulk(permissions.keys())),
            ("channels", Reply::bulk(permissions.channels())),
        ]
    };
    let selectors = user.selectors.iter().map(|selector| map(allowed(selector))).collect();
    let [commands, keys, channels] = allowed(&user.permissions);
    map([
        ("flags", Reply::Set(flags)),
        ("passwords", Reply::Array(passwords)),
        commands,
        keys,
        channels,
        ("selectors", Reply::Array(selectors)),
    ])
}

/// Replies whether a user may run a command, without running it.
fn try_out(session: &Session, name: &[u8], argv: Argv<'_>) -> Reply {
    let Some(user) = session.server.users.get(name) else { return texts::no_user(name) };
    let Some(command) = find(argv[0]) else { return texts::no_such_command(argv[0]) };
    if !command.takes(argv.len()) {
        return text::wrong_arity(command.name);
    }
    match user.check(command, argv) {
        Ok(()) => Reply::ok(),
        Err(Refusal::Command(command)) => {
            let name = shown(name);
            Reply::bulk(format!("User {name} has no permissions to run the '{command}' command"))
        }
        Err(Refusal::Key(key)) => {
            let (name, key) = (shown(name), shown(&key));
            Reply::bulk(format!("User {name} has no permissions to access the '{key}' key"))
        }
    }
}

fn log(session: &Session, most: usize, env: &Env<'_>) -> Reply {
    let seconds = |millis: u64| env.now_millis.saturating_sub(millis) as f64 / 1000.0;
    let entries = session.server.users.refusals.newest(most).into_iter().map(|it| {
        map([
            ("count", Reply::Integer(it.count as i64)),
            ("reason", Reply::bulk(it.reason)),
            ("context", Reply::bulk(it.context)),
            ("object", Reply::bulk(it.object)),
            ("username", Reply::bulk(it.user)),
            ("age-seconds", Reply::Double(seconds(it.created_millis))),
            ("client-info", Reply::bulk(it.client)),
            ("entry-id", Reply::Integer(it.number as i64)),
            ("timestamp-created", Reply::Integer(it.created_millis as i64)),
            ("timestamp-last-updated", Reply::Integer(it.updated_millis as i64)),
        ])
    });
    Reply::Array(entries.collect())
}
