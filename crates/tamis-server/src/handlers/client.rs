//! Commands for the connection: its user, its protocol, and its end.

use std::sync::atomic::Ordering;

use tamis_commands::text::{self, acl, server};
use tamis_commands::{Argv, Env, parse_integer};
use tamis_resp::{Protocol, Reply};

use crate::clients::Client;
use crate::handlers::transaction;
use crate::session::Session;
use crate::subcommand::unknown_subcommand;
use crate::users::DEFAULT;
use crate::version::{MODULE_VERSION, REDIS_VERSION};

pub(super) fn ping(argv: Argv<'_>) -> Reply {
    match argv {
        [_] => Reply::simple("PONG"),
        [_, message] => Reply::bulk(*message),
        _ => tamis_commands::text::wrong_arity("ping"),
    }
}

pub(super) fn quit(session: &mut Session) -> Reply {
    session.is_closing = true;
    Reply::ok()
}

pub(super) fn select(argv: Argv<'_>) -> Reply {
    match parse_integer(argv[1]) {
        Some(0) => Reply::ok(),
        Some(_) => Reply::error(server::DB_INDEX),
        None => Reply::error(tamis_commands::text::NO_INTEGER),
    }
}

pub(super) fn monitor(session: &mut Session) -> Reply {
    if session.monitoring.is_none() {
        session.monitoring =
            Some(session.server.monitors.begin(&session.client, &session.server.clients.output));
    }
    Reply::ok()
}

pub(super) fn reset(session: &mut Session) -> Reply {
    transaction::end(session);
    session.monitoring = None;
    session.protocol = Protocol::Resp2;
    *session.client.about.lock() = crate::clients::About { resp: 2, ..Default::default() };
    session.reset_user();
    Reply::simple("RESET")
}

/// Authenticates the connection; returns the error reply if this fails.
fn authenticate(session: &mut Session, user: &[u8], password: &[u8]) -> Result<(), Reply> {
    if let Some(user) = session.server.users.authenticate(user, password) {
        session.authenticate(user);
        return Ok(());
    }
    session.log_refused("auth", b"AUTH", user);
    tracing::warn!(peer = %session.client.peer, "authentication failed: wrong user or password");
    Err(Reply::error(acl::WRONG_PASSWORD))
}

pub(super) fn auth(session: &mut Session, argv: Argv<'_>) -> Reply {
    let (user, password) = match argv {
        [_, password] => {
            if session.server.users.default_user().takes_any {
                return Reply::error(acl::NO_PASSWORD);
            }
            (DEFAULT, *password)
        }
        [_, user, password] => (*user, *password),
        _ => return Reply::error(text::SYNTAX),
    };
    match authenticate(session, user, password) {
        Ok(()) => Reply::ok(),
        Err(refusal) => refusal,
    }
}

/// Checks a name as Redis does: it must be a single word in a list.
fn name_of(word: &[u8]) -> Option<String> {
    let is_plain = word.iter().all(|c| (b'!'..=b'~').contains(c));
    is_plain.then(|| String::from_utf8_lossy(word).into_owned())
}

pub(super) fn hello(session: &mut Session, argv: Argv<'_>) -> Reply {
    let mut protocol = session.protocol;
    if let Some(version) = argv.get(1) {
        protocol = match parse_integer(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Reply::error(server::NO_PROTOCOL),
            None => {
                return Reply::error(server::PROTOCOL);
            }
        };
    }
    let mut name = None;
    let mut credentials = None;
    let mut rest = argv.get(2..).unwrap_or_default();
    while let [option, behind @ ..] = rest {
        rest = match (option.to_ascii_uppercase().as_slice(), behind) {
            (b"AUTH", [user, password, rest @ ..]) => {
                credentials = Some((*user, *password));
                rest
            }
            (b"SETNAME", [word, rest @ ..]) => {
                name = Some(match name_of(word) {
                    Some(name) => name,
                    None => return Reply::error(server::CLIENT_NAME),
                });
                rest
            }
            _ => {
                let option = text::shown(option);
                return server::hello_option(&option);
            }
        };
    }
    if let Some((user, password)) = credentials
        && let Err(refusal) = authenticate(session, user, password)
    {
        return refusal;
    }
    if !session.is_authenticated {
        return Reply::error(acl::NO_AUTH_HELLO);
    }
    session.protocol = protocol;
    let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
    {
        let mut about = session.client.about.lock();
        about.resp = version;
        if let Some(name) = name {
            about.name = name;
        }
    }
    let fields = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(REDIS_VERSION)),
        ("proto", Reply::Integer(i64::from(version))),
        ("id", Reply::Integer(session.client.id as i64)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", Reply::Array(vec![bf_module()])),
    ];
    map(fields)
}

/// Returns the fields of the module that clients expect to be loaded.
pub(super) fn bf_module() -> Reply {
    map([
        ("name", Reply::bulk("bf")),
        ("ver", Reply::Integer(MODULE_VERSION)),
        ("path", Reply::bulk("")),
        ("args", Reply::Array(Vec::new())),
    ])
}

pub(super) fn map<const N: usize>(fields: [(&'static str, Reply); N]) -> Reply {
    Reply::Map(fields.map(|(name, value)| (Reply::bulk(name), value)).into())
}

pub(super) fn client(session: &mut Session, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    let arguments = &argv[2..];
    match (argv[1].to_ascii_uppercase().as_slice(), arguments) {
        (b"ID", []) => Reply::Integer(session.client.id as i64),
        (b"GETNAME", []) => match session.client.about.lock().name.as_str() {
            "" => Reply::Null,
            name => Reply::bulk(name),
        },
        (b"SETNAME", [name]) => match name_of(name) {
            Some(name) => {
                session.client.about.lock().name = name;
                Reply::ok()
            }
            None => Reply::error(server::CLIENT_NAME),
        },
        (b"SETINFO", [field, text]) => {
            let Some(text) = name_of(text) else {
                return Reply::error(server::LIBRARY_NAME);
            };
            let mut about = session.client.about.lock();
            match field.to_ascii_uppercase().as_slice() {
                b"LIB-NAME" => about.library = text,
                b"LIB-VER" => about.library_version = text,
                _ => {
                    let field = text::shown(field);
                    return server::client_option(&field);
                }
            }
            Reply::ok()
        }
        (b"INFO", []) => verbatim(session.client.line(env.now_millis)),
        (b"LIST", arguments) => list(session, arguments, env),
        (b"KILL", arguments) if !arguments.is_empty() => kill(session, arguments),
        (b"NO-EVICT" | b"NO-TOUCH", [word])
            if word.eq_ignore_ascii_case(b"ON") || word.eq_ignore_ascii_case(b"OFF") =>
        {
            // The server never evicts keys and does not record accesses.
            Reply::ok()
        }
        (b"REPLY", [word]) if word.eq_ignore_ascii_case(b"ON") => Reply::ok(),
        (b"NO-EVICT" | b"NO-TOUCH" | b"REPLY", _) => Reply::error(text::SYNTAX),
        _ => unknown_subcommand("CLIENT", argv[1]),
    }
}

fn verbatim(text: String) -> Reply {
    Reply::Verbatim { format: *b"txt", text: text.into_bytes() }
}

fn list(session: &Session, arguments: Argv<'_>, env: &Env<'_>) -> Reply {
    let ids: Option<Vec<u64>> = match arguments {
        [] => None,
        [option, kind] if option.eq_ignore_ascii_case(b"TYPE") => {
            if !kind.eq_ignore_ascii_case(b"normal") {
                return verbatim(String::new());
            }
            None
        }
        [option, ids @ ..] if option.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let ids = ids.iter().map(|id| parse_integer(id).map(|id| id as u64)).collect();
            match ids {
                Some(ids) => Some(ids),
                None => return Reply::error(server::CLIENT_ID),
            }
        }
        _ => return Reply::error(text::SYNTAX),
    };
    let is_asked = |client: &Client| ids.as_ref().is_none_or(|ids| ids.contains(&client.id));
    let clients = session.server.clients.all();
    verbatim(clients.iter().filter(|it| is_asked(it)).map(|it| it.line(env.now_millis)).collect())
}

fn kill(session: &mut Session, arguments: Argv<'_>) -> Reply {
    let all = session.server.clients.all();
    // The old form takes an address. Its reply is an error if no client has this address.
    if let [address] = arguments {
        let found = all.iter().find(|it| it.peer.to_string().as_bytes() == *address);
        return match found {
            Some(client) => {
                end(session, client);
                Reply::ok()
            }
            None => Reply::error(server::NO_CLIENT),
        };
    }
    let mut skip_me = true;
    let (mut ids, mut peer, mut local, mut user) = (None, None, None, None);
    for pair in arguments.chunks(2) {
        let &[option, value] = pair else { return Reply::error(text::SYNTAX) };
        match option.to_ascii_uppercase().as_slice() {
            b"ID" => match parse_integer(value) {
                Some(id) if id > 0 => ids = Some(id as u64),
                _ => return Reply::error(server::CLIENT_ID_RANGE),
            },
            b"ADDR" => peer = Some(value),
            b"LADDR" => local = Some(value),
            b"SKIPME" if value.eq_ignore_ascii_case(b"YES") => skip_me = true,
            b"SKIPME" if value.eq_ignore_ascii_case(b"NO") => skip_me = false,
            b"TYPE" if value.eq_ignore_ascii_case(b"NORMAL") => {}
            b"USER" => match session.server.users.get(value) {
                Some(_) => user = Some(value),
                None => {
                    let name = text::shown(value);
                    return server::no_user(&name);
                }
            },
            _ => return Reply::error(text::SYNTAX),
        }
    }
    let own = session.client.id;
    let is_meant = |client: &Client| {
        !(skip_me && client.id == own)
            && ids.is_none_or(|id| client.id == id)
            && peer.is_none_or(|peer| client.peer.to_string().as_bytes() == peer)
            && local.is_none_or(|local| client.local.to_string().as_bytes() == local)
            && user.is_none_or(|user| client.about.lock().user() == user)
    };
    let meant: Vec<_> = all.iter().filter(|it| is_meant(it)).collect();
    for client in &meant {
        end(session, client);
    }
    Reply::Integer(meant.len() as i64)
}

/// Closes the connections of users that were deleted or disabled.
pub(super) fn end_those_of(session: &mut Session, is_gone: impl Fn(&[u8]) -> bool) {
    for client in session.server.clients.all() {
        let is_meant = client.about.lock().user.as_deref().is_some_and(&is_gone);
        if is_meant {
            end(session, &client);
        }
    }
}

fn end(session: &mut Session, client: &Client) {
    if client.id == session.client.id {
        // Close the connection after the reply.
        session.is_closing = true;
        return;
    }
    client.last_millis.store(0, Ordering::Relaxed);
    client.killed.notify_one();
}
