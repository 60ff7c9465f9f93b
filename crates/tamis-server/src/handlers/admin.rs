//! Commands for the options and the shutdown of the server.

use std::sync::atomic::Ordering;

use tamis_commands::Argv;
use tamis_commands::text::server;
use tamis_resp::Reply;

use crate::config::ConfigError;
use crate::handlers::client::bf_module;
use crate::pattern::matches;
use crate::persistence::background_save::save_in_background;
use crate::session::Session;
use crate::session::subcommand::unknown_subcommand;
use crate::system::clock::since_1970;
use crate::system::system_error::without_code;

pub(super) fn module(argv: Argv<'_>) -> Reply {
    if !argv[1].eq_ignore_ascii_case(b"LIST") {
        return unknown_subcommand("MODULE", argv[1]);
    }
    Reply::Array(vec![bf_module()])
}

pub(super) fn time() -> Reply {
    let now = since_1970();
    Reply::Array(vec![
        Reply::bulk(now.as_secs().to_string()),
        Reply::bulk(now.subsec_micros().to_string()),
    ])
}

pub(super) fn shutdown(session: &mut Session) -> Reply {
    session.is_closing = true;
    session.server.stop();
    // As in Redis, the server closes the connection and sends no reply: clients expect no reply to
    // `SHUTDOWN`.
    Reply::ok()
}

/// Runs `LASTSAVE`.
pub(super) fn last_save(session: &Session) -> Reply {
    let Some(durable) = &session.server.durable else { return Reply::error(server::NOTHING_SAVED) };
    Reply::Integer((durable.last_save_millis.load(Ordering::Relaxed) / 1000) as i64)
}

/// `BGSAVE` and `BGREWRITEAOF` differ only in their replies. `BGSAVE` and `BGREWRITEAOF` both write
/// a snapshot, and every snapshot starts a new log.
pub(super) fn save(session: &Session, reply: &'static str) -> Reply {
    if session.server.durable.is_none() {
        return Reply::error(server::NOTHING_SAVED);
    }
    let begins = save_in_background(&session.server);
    if begins { Reply::simple(reply) } else { Reply::error(server::SAVING) }
}

/// `SAVE`: writes a snapshot as `BGSAVE` does, but replies after the snapshot is complete. Only the
/// client that sent `SAVE` waits.
pub(super) async fn save_now(session: &Session) -> Reply {
    let server = session.server.clone();
    let saved = tokio::task::spawn_blocking(move || {
        let durable = server.durable.as_ref().ok_or(server::NOTHING_SAVED.to_owned())?;
        if durable.is_saving() {
            return Err(server::SAVING.to_owned());
        }
        let save = || durable.save(&server.keyspace);
        let saved = server.stats.saves.watch(server.keyspace.changes(), save);
        saved.map_err(|error| format!("ERR {error}"))
    });
    match saved.await {
        Ok(Ok(())) => Reply::ok(),
        Ok(Err(text)) => Reply::error(text),
        Err(_) => Reply::error(server::GIVEN_UP),
    }
}

pub(super) fn config(session: &mut Session, argv: Argv<'_>) -> Reply {
    match argv[1].to_ascii_uppercase().as_slice() {
        b"GET" if argv.len() > 2 => {
            let config = session.server.config();
            let patterns: Vec<_> = argv[2..].iter().map(|word| word.to_ascii_lowercase()).collect();
            let found = config.shown().filter(|(name, _)| {
                patterns.iter().any(|pattern| matches(pattern, name.as_bytes()))
            });
            Reply::Map(found.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value))).collect())
        }
        b"SET" if argv.len() > 2 && argv.len().is_multiple_of(2) => set(session, &argv[2..]),
        b"RESETSTAT" if argv.len() == 2 => {
            session.server.stats.reset();
            Reply::ok()
        }
        b"REWRITE" if argv.len() == 2 => match session.server.config().rewrite_file() {
            Ok(()) => Reply::ok(),
            Err(error) => server::not_rewritten(without_code(&error)),
        },
        // `CONFIG SET` needs a value for each name.
        b"SET" => tamis_commands::text::wrong_arity("config|set"),
        _ => unknown_subcommand("CONFIG", argv[1]),
    }
}

/// Sets either all options or no option.
fn set(session: &mut Session, pairs: Argv<'_>) -> Reply {
    let is_about_tls =
        pairs.chunks(2).any(|pair| pair[0].to_ascii_lowercase().starts_with(b"tls-"));
    session.server.change_config(is_about_tls, |config| {
        for pair in pairs.chunks(2) {
            let name = String::from_utf8_lossy(pair[0]).into_owned();
            let set = config.set_live(&name, &String::from_utf8_lossy(pair[1]));
            set.map_err(|error| match error {
                ConfigError::Unknown { .. } => server::no_option(&name),
                error => server::option_value(&name, error),
            })?;
        }
        Ok(())
    })
}
