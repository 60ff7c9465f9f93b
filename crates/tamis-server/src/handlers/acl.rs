//! `ACL`: manages users and their permissions, and lists refusals.

use tamis_commands::text::{self, acl as texts, shown};
use tamis_commands::{Argv, Category, Env, Permission, find, parse_integer};
use tamis_resp::Reply;

use crate::handlers::client::{close_connections_of, map};
use crate::session::subcommand::unknown_subcommand;
use crate::session::{Call, Session};
use crate::system::hex;
use crate::users::{DEFAULT, Denied, Permissions, category_named};

pub(super) fn acl(session: &mut Session, call: Call<'_>) -> Result<Reply, Reply> {
    let Call { argv, env, .. } = call;
    let name = argv[1].to_ascii_uppercase();
    Ok(match (name.as_slice(), &argv[2..]) {
        (b"CAT", []) => {
            Reply::Array(Category::ALL.iter().map(|it| Reply::bulk(it.name())).collect())
        }
        (b"CAT", [category]) => members(category),
        (b"DELUSER", names @ [_, ..]) => delete(session, names),
        (b"DRYRUN", [user, command @ ..]) if !command.is_empty() => dry_run(session, user, command),
        (b"GENPASS", []) => password(256),
        (b"GENPASS", [bits]) => match parse_integer(bits) {
            Some(bits @ 1..=4096) => password(bits as usize),
            _ => Reply::error(texts::GENPASS),
        },
        (b"GETUSER", [user]) => describe(session, user),
        (b"LIST", []) => Reply::Array(
            session.server.users.all().iter().map(|it| Reply::bulk(it.line())).collect(),
        ),
        (b"LOAD", []) => load(session)?,
        (b"LOG", []) => log(session, 10, &env),
        (b"LOG", [word]) if word.eq_ignore_ascii_case(b"RESET") => {
            session.server.users.log.clear();
            Reply::ok()
        }
        (b"LOG", [count]) => match parse_integer(count) {
            Some(count) if count >= 0 => log(session, count as usize, &env),
            _ => Reply::error(text::NO_INTEGER),
        },
        (b"SAVE", []) => save(session)?,
        (b"SETUSER", [user, rules @ ..]) => set(session, user, rules)?,
        (b"USERS", []) => Reply::Array(
            session.server.users.all().iter().map(|it| Reply::bulk(it.name.as_slice())).collect(),
        ),
        (b"WHOAMI", []) => Reply::bulk(session.user.name.as_slice()),
        _ => unknown_subcommand("ACL", argv[1]),
    })
}

fn members(category: &[u8]) -> Reply {
    let Some(category) = category_named(category) else { return texts::no_category(category) };
    let members = Permission::all().filter(|permission| permission.is_in(category));
    Reply::Array(members.map(|permission| Reply::bulk(permission.name())).collect())
}

fn password(bits: usize) -> Reply {
    // Each hexadecimal digit has four bits. Round the number of bits up to whole digits.
    let digits = bits.div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    if getrandom::fill(&mut bytes).is_err() {
        return Reply::error(texts::NO_RANDOM);
    }
    let mut text = hex::encode(&bytes);
    text.truncate(digits);
    Reply::bulk(text)
}

fn set(session: &mut Session, name: &[u8], rules: Argv<'_>) -> Result<Reply, Reply> {
    let user = session.server.users.set_within(name, rules, session.server.memory_left())?;
    session.server.monitors.users_changed();
    if !user.is_on {
        close_connections_of(session, |other| other == name);
    }
    Ok(Reply::ok())
}

fn delete(session: &mut Session, names: Argv<'_>) -> Reply {
    if names.contains(&DEFAULT) {
        return Reply::error(texts::DEFAULT_STAYS);
    }
    let deleted = names.iter().filter(|name| session.server.users.delete(name)).count();
    close_connections_of(session, |user| names.contains(&user));
    Reply::Integer(deleted as i64)
}

fn load(session: &mut Session) -> Result<Reply, Reply> {
    let server = session.server.clone();
    let config = server.config();
    let path = config.users_file.as_ref().ok_or(Reply::error(texts::NO_FILE))?;
    server.users.load(path, &config.password)?;
    server.monitors.users_changed();
    close_connections_of(session, |name| !server.users.get(name).is_some_and(|user| user.is_on));
    Ok(Reply::ok())
}

fn save(session: &Session) -> Result<Reply, Reply> {
    let config = session.server.config();
    let path = config.users_file.as_ref().ok_or(Reply::error(texts::NO_FILE))?;
    let saved = session.server.users.save(path);
    saved.map(|()| Reply::ok()).map_err(|error| Reply::error(format!("ERR {error}")))
}

fn describe(session: &Session, name: &[u8]) -> Reply {
    let Some(user) = session.server.users.get(name) else { return Reply::Null };
    let mut flags = vec![Reply::bulk(if user.is_on { "on" } else { "off" })];
    if user.accepts_any_password {
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

/// Checks whether a user may run a command, without running the command.
fn dry_run(session: &Session, name: &[u8], argv: Argv<'_>) -> Reply {
    let Some(user) = session.server.users.get(name) else { return texts::no_user(name) };
    let Some(command) = find(argv[0]) else { return texts::no_such_command(argv[0]) };
    if !command.takes(argv.len()) {
        return text::wrong_arity(command.name);
    }
    match user.check(command, argv) {
        Ok(()) => Reply::ok(),
        Err(Denied::Command(command)) => Reply::bulk(format!(
            "User {} has no permissions to run the '{command}' command",
            shown(name)
        )),
        Err(Denied::Key(key)) => Reply::bulk(format!(
            "User {} has no permissions to access the '{}' key",
            shown(name),
            shown(&key)
        )),
    }
}

fn log(session: &Session, most: usize, env: &Env<'_>) -> Reply {
    let seconds = |millis: u64| env.now_millis.saturating_sub(millis) as f64 / 1000.0;
    let entries = session.server.users.log.newest(most).into_iter().map(|it| {
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
