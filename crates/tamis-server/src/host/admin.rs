//! The server: its options, its end.

use std::sync::atomic::Ordering;

use tamis_commands::Words;
use tamis_commands::text::host;
use tamis_resp::Reply;

use super::client::map;
use super::unknown_subcommand;
use crate::config::ConfigError;
use crate::durable::save_in_background;
use crate::pattern::matches;
use crate::session::Session;
use crate::stats::since_1970;
use crate::system_error::without_code;

/// What `MODULE LIST` says of `bf`: major * 10000 + minor * 100 + patch of the RedisBloom that is answered for.
pub(super) const MODULE_VERSION: i64 = 81_000;

pub(super) fn module(words: Words<'_>) -> Reply {
    if !words[1].eq_ignore_ascii_case(b"LIST") {
        return unknown_subcommand("MODULE", words[1]);
    }
    Reply::Array(vec![map([
        ("name", Reply::bulk("bf")),
        ("ver", Reply::Integer(MODULE_VERSION)),
        ("path", Reply::bulk("")),
        ("args", Reply::Array(Vec::new())),
    ])])
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
    // Redis closes the connection without an answer, and clients know that.
    Reply::ok()
}

/// `LASTSAVE`
pub(super) fn last_save(session: &Session) -> Reply {
    let Some(durable) = &session.server.durable else { return Reply::error(host::NOTHING_SAVED) };
    Reply::Integer((durable.last_save_millis.load(Ordering::Relaxed) / 1000) as i64)
}

/// `BGSAVE` and `BGREWRITEAOF`, which differ in their replies: a snapshot is also the start of a new log.
pub(super) fn save(session: &Session, reply: &'static str) -> Reply {
    if session.server.durable.is_none() {
        return Reply::error(host::NOTHING_SAVED);
    }
    if save_in_background(&session.server) {
        Reply::simple(reply)
    } else {
        Reply::error(host::SAVING)
    }
}

/// `SAVE`: as `BGSAVE`, and answered when it is done; only this client waits.
pub(super) async fn save_now(session: &Session) -> Reply {
    let server = session.server.clone();
    let saved = tokio::task::spawn_blocking(move || {
        let durable = server.durable.as_ref().ok_or(host::NOTHING_SAVED.to_owned())?;
        if durable.is_saving() {
            return Err(host::SAVING.to_owned());
        }
        let save = || durable.save(&server.keyspace);
        let saved = server.stats.saves.watch(server.keyspace.changes(), save);
        saved.map_err(|error| format!("ERR {error}"))
    });
    match saved.await {
        Ok(Ok(())) => Reply::ok(),
        Ok(Err(text)) => Reply::error(text),
        Err(_) => Reply::error(host::GIVEN_UP),
    }
}

pub(super) fn config(session: &mut Session, words: Words<'_>) -> Reply {
    match words[1].to_ascii_uppercase().as_slice() {
        b"GET" if words.len() > 2 => {
            let config = session.server.config();
            let is_asked = |name: &str| {
                words[2..].iter().any(|word| matches(&word.to_ascii_lowercase(), name.as_bytes()))
            };
            let found = config.shown().filter(|(name, _)| is_asked(name));
            Reply::Map(found.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value))).collect())
        }
        b"SET" if words.len() > 2 && words.len().is_multiple_of(2) => set(session, &words[2..]),
        b"RESETSTAT" if words.len() == 2 => {
            session.server.stats.reset();
            Reply::ok()
        }
        b"REWRITE" if words.len() == 2 => match session.server.config().rewrite_file() {
            Ok(()) => Reply::ok(),
            Err(error) => host::not_rewritten(without_code(&error)),
        },
        // Names and values come in pairs.
        b"SET" => tamis_commands::text::wrong_arity("config|set"),
        _ => unknown_subcommand("CONFIG", words[1]),
    }
}

/// Sets all options or none.
fn set(session: &mut Session, pairs: Words<'_>) -> Reply {
    let is_about_tls =
        pairs.chunks(2).any(|pair| pair[0].to_ascii_lowercase().starts_with(b"tls-"));
    session.server.change_config(is_about_tls, |config| {
        for pair in pairs.chunks(2) {
            let name = String::from_utf8_lossy(pair[0]).into_owned();
            let value = String::from_utf8_lossy(pair[1]);
            match config.set_live(&name, &value) {
                Ok(()) => {}
                Err(ConfigError::Unknown { .. }) => {
                    return Err(host::no_option(&name));
                }
                Err(error) => {
                    return Err(host::option_value(&name, error));
                }
            }
        }
        Ok(())
    })
}
