//! Commands for the connection: authentication, protocol version, and closing of connections.

use std::sync::atomic::Ordering;

use tamis_commands::text::{self, Text, acl, server};
use tamis_commands::{Argv, Env, parse_integer};
use tamis_resp::{Protocol, Reply};

use crate::connection::clients::{Client, ClientProperties};
use crate::handlers::transaction;
use crate::session::subcommand::unknown_subcommand;
use crate::session::{Call, Session};
use crate::users::DEFAULT;
use crate::version::{MODULE_VERSION, REDIS_VERSION};

pub(super) fn ping(argv: Argv<'_>) -> Reply {
    match argv {
        [_] => Reply::simple("PONG"),
        [_, message] => Reply::bulk(*message),
        _ => text::wrong_arity("ping"),
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
        None => Reply::error(text::NO_INTEGER),
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
    *session.client.properties.lock() = ClientProperties { resp: 2, ..Default::default() };
    session.reset_user();
    Reply::simple("RESET")
}

/// Authenticates the connection. Returns the error reply if the authentication fails.
fn authenticate(session: &mut Session, user: &[u8], password: &[u8]) -> Result<(), Reply> {
    let Some(found) = session.server.users.authenticate(user, password) else {
        session.log_refused("auth", b"AUTH", user);
        tracing::warn!(peer = %session.client.peer, "authentication failed: wrong user or \
            password");
        return Err(Reply::error(acl::WRONG_PASSWORD));
    };
    session.authenticate(found);
    Ok(())
}

pub(super) fn auth(session: &mut Session, argv: Argv<'_>) -> Result<Reply, Reply> {
    match argv {
        [_, _] if session.server.users.default_user().accepts_any_password => {
            return Err(Reply::error(acl::NO_PASSWORD));
        }
        [_, password] => authenticate(session, DEFAULT, password)?,
        [_, user, password] => authenticate(session, user, password)?,
        _ => return Err(Reply::error(text::SYNTAX)),
    }
    Ok(Reply::ok())
}

/// Checks a client name as Redis does. A name must be a single word, because spaces separate the
/// fields in `CLIENT LIST`.
fn name_of(word: &[u8], error: Text) -> Result<String, Reply> {
    let is_plain = word.iter().all(u8::is_ascii_graphic);
    if is_plain { Ok(String::from_utf8_lossy(word).into_owned()) } else { Err(Reply::error(error)) }
}

pub(super) fn hello(session: &mut Session, argv: Argv<'_>) -> Result<Reply, Reply> {
    let protocol = match argv.get(1).map(|version| parse_integer(version)) {
        None => session.protocol,
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return Err(Reply::error(server::NO_PROTOCOL)),
        Some(None) => return Err(Reply::error(server::PROTOCOL)),
    };
    let (mut name, mut credentials) = (None, None);
    let mut rest = argv.get(2..).unwrap_or_default();
    while let [option, behind @ ..] = rest {
        rest = match (option.to_ascii_uppercase().as_slice(), behind) {
            (b"AUTH", [user, password, rest @ ..]) => {
                credentials = Some((*user, *password));
                rest
            }
            (b"SETNAME", [word, rest @ ..]) => {
                name = Some(name_of(word, server::CLIENT_NAME)?);
                rest
            }
            _ => return Err(server::hello_option(&text::shown(option))),
        };
    }
    if let Some((user, password)) = credentials {
        authenticate(session, user, password)?;
    }
    if !session.is_authenticated {
        return Err(Reply::error(acl::NO_AUTH_HELLO));
    }
    session.protocol = protocol;
    let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
    let mut properties = session.client.properties.lock();
    properties.resp = version;
    properties.name = name.unwrap_or(std::mem::take(&mut properties.name));
    drop(properties);
    Ok(map([
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(REDIS_VERSION)),
        ("proto", Reply::Integer(i64::from(version))),
        ("id", Reply::Integer(session.client.id as i64)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", Reply::Array(vec![bf_module()])),
    ]))
}

/// Returns the reply fields of the module `bf`, which clients expect to be loaded.
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

pub(super) fn client(session: &mut Session, call: Call<'_>) -> Result<Reply, Reply> {
    let Call { argv, env, .. } = call;
    Ok(match (argv[1].to_ascii_uppercase().as_slice(), &argv[2..]) {
        (b"ID", []) => Reply::Integer(session.client.id as i64),
        (b"GETNAME", []) => match session.client.properties.lock().name.as_str() {
            "" => Reply::Null,
            name => Reply::bulk(name),
        },
        (b"SETNAME", [name]) => {
            session.client.properties.lock().name = name_of(name, server::CLIENT_NAME)?;
            Reply::ok()
        }
        (b"SETINFO", [field, text]) => {
            let text = name_of(text, server::LIBRARY_NAME)?;
            let mut properties = session.client.properties.lock();
            match field.to_ascii_uppercase().as_slice() {
                b"LIB-NAME" => properties.library = text,
                b"LIB-VER" => properties.library_version = text,
                _ => return Err(server::client_option(&text::shown(field))),
            }
            Reply::ok()
        }
        (b"INFO", []) => verbatim(session.client.line(env.now_millis)),
        (b"LIST", arguments) => list(session, arguments, &env)?,
        (b"KILL", arguments) if !arguments.is_empty() => kill(session, arguments)?,
        (b"NO-EVICT" | b"NO-TOUCH", [word])
            if word.eq_ignore_ascii_case(b"ON") || word.eq_ignore_ascii_case(b"OFF") =>
        {
            // The server never evicts keys and does not record accesses to keys.
            Reply::ok()
        }
        (b"REPLY", [word]) if word.eq_ignore_ascii_case(b"ON") => Reply::ok(),
        (b"NO-EVICT" | b"NO-TOUCH" | b"REPLY", _) => Reply::error(text::SYNTAX),
        _ => unknown_subcommand("CLIENT", argv[1]),
    })
}

pub(super) fn verbatim(text: String) -> Reply {
    Reply::Verbatim { format: *b"txt", text: text.into_bytes() }
}

fn list(session: &Session, arguments: Argv<'_>, env: &Env<'_>) -> Result<Reply, Reply> {
    let ids: Option<Vec<u64>> = match arguments {
        [] => None,
        [option, kind] if option.eq_ignore_ascii_case(b"TYPE") => {
            if !kind.eq_ignore_ascii_case(b"normal") {
                return Ok(verbatim(String::new()));
            }
            None
        }
        [option, ids @ ..] if option.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let ids = ids.iter().map(|id| parse_integer(id).map(|id| id as u64));
            Some(ids.collect::<Option<_>>().ok_or(Reply::error(server::CLIENT_ID))?)
        }
        _ => return Err(Reply::error(text::SYNTAX)),
    };
    let is_listed = |client: &Client| ids.as_ref().is_none_or(|ids| ids.contains(&client.id));
    let clients = session.server.clients.all();
    let listed = clients.iter().filter(|it| is_listed(it));
    Ok(verbatim(listed.map(|it| it.line(env.now_millis)).collect()))
}

fn kill(session: &mut Session, arguments: Argv<'_>) -> Result<Reply, Reply> {
    let all = session.server.clients.all();
    // The old form of `CLIENT KILL` takes an address. The reply to the old form is an error if no
    // client has the address.
    if let [address] = arguments {
        let found = all.iter().find(|it| it.peer.to_string().as_bytes() == *address);
        end(session, found.ok_or(Reply::error(server::NO_CLIENT))?);
        return Ok(Reply::ok());
    }
    let mut skip_me = true;
    let (mut ids, mut peer, mut local, mut user) = (None, None, None, None);
    for pair in arguments.chunks(2) {
        let &[option, value] = pair else { return Err(Reply::error(text::SYNTAX)) };
        match option.to_ascii_uppercase().as_slice() {
            b"ID" => match parse_integer(value) {
                Some(id) if id > 0 => ids = Some(id as u64),
                _ => return Err(Reply::error(server::CLIENT_ID_RANGE)),
            },
            b"ADDR" => peer = Some(value),
            b"LADDR" => local = Some(value),
            b"SKIPME" if value.eq_ignore_ascii_case(b"YES") => skip_me = true,
            b"SKIPME" if value.eq_ignore_ascii_case(b"NO") => skip_me = false,
            b"TYPE" if value.eq_ignore_ascii_case(b"NORMAL") => {}
            b"USER" => match session.server.users.get(value) {
                Some(_) => user = Some(value),
                None => return Err(server::no_user(&text::shown(value))),
            },
            _ => return Err(Reply::error(text::SYNTAX)),
        }
    }
    let own = session.client.id;
    let is_meant = |client: &Client| {
        !(skip_me && client.id == own)
            && ids.is_none_or(|id| client.id == id)
            && peer.is_none_or(|peer| client.peer.to_string().as_bytes() == peer)
            && local.is_none_or(|local| client.local.to_string().as_bytes() == local)
            && user.is_none_or(|user| client.properties.lock().user() == user)
    };
    let meant: Vec<_> = all.iter().filter(|it| is_meant(it)).collect();
    for client in &meant {
        end(session, client);
    }
    Ok(Reply::Integer(meant.len() as i64))
}

/// Closes the connections of users that were deleted or disabled.
pub(super) fn close_connections_of(session: &mut Session, is_gone: impl Fn(&[u8]) -> bool) {
    for client in session.server.clients.all() {
        let is_gone = client.properties.lock().user.as_deref().is_some_and(&is_gone);
        if is_gone {
            end(session, &client);
        }
    }
}

fn end(session: &mut Session, client: &Client) {
    if client.id == session.client.id {
        // If the client ends its own connection, close the connection after the reply is sent.
        session.is_closing = true;
        return;
    }
    client.last_millis.store(0, Ordering::Relaxed);
    client.end_request.send();
}
