//! The commands about the server, the connection and several keys: those that are no function of one value.

mod acl;
mod admin;
mod bitop;
mod client;
mod copy;
mod debug;
mod describe;
mod dump;
mod info;
mod keys;
mod latency;
mod slow_log;
mod transaction;

pub(crate) use dump::{payload_decoder, restore_decoded};
pub(crate) use keys::MAX_PATTERN_BYTES;
use tamis_commands::text::host;
use tamis_commands::{Action, Command, Data, Env, Flag, Words, load_refusal};
use tamis_resp::Reply;
pub(crate) use transaction::exec;

pub(crate) use info::{REDIS_VERSION, memory_of_process};

use crate::server::Shared;
use crate::session::{Keys, Session, at_present};

/// Runs a command of the host.
pub(crate) async fn run(
    session: &mut Session,
    command: &Command,
    words: Words<'_>,
    env: &Env<'_>,
) -> Reply {
    if asks_for_help(command, words) {
        return describe::help(command);
    }
    match command.name {
        "COPY" => copy::copy_in_background(session, command, words, env).await,
        "DEBUG" => debug::debug(session, words, env).await,
        "DISCARD" => transaction::discard(session),
        "DUMP" => dump::dump_in_background(session, words, env).await,
        "MULTI" => transaction::multi(session),
        "RESTORE" => dump::restore_in_background(session, command, words, env).await,
        // It is alone with the keys for moments itself.
        "SAVE" => admin::save_now(session).await,
        "UNWATCH" => transaction::unwatch(session),
        "WATCH" => transaction::watch(session, words, env),
        // What is logged of it is in the order in which it ran, with nothing of the same keys in between.
        _ if command.has(Flag::Write) => {
            let server = session.server.clone();
            let is_meant = |leased: &[u8]| {
                command.keys.first == 0 || command.keys.of(words).any(|key| key == leased)
            };
            let alone = server.keyspace.exclusive_to_change(is_meant).await;
            run_with(session, command, words, &at_present(env), Keys::Exclusive(&alone))
        }
        _ => {
            if let Some(reply) = run_without_keys(session, command, words, env) {
                return reply;
            }
            let server = session.server.clone();
            let shared = server.keyspace.shared();
            run_with(session, command, words, env, Keys::Shared(&shared))
        }
    }
}

/// Runs a command that needs no key, even while another command has the keys exclusively. `None` if it needs them.
fn run_without_keys(
    session: &mut Session,
    command: &Command,
    words: Words<'_>,
    env: &Env<'_>,
) -> Option<Reply> {
    Some(match command.name {
        "ACL" => acl::acl(session, words, env),
        "AUTH" => client::auth(session, words),
        "CLIENT" => client::client(session, words, env),
        "COMMAND" => describe::command(words),
        "CONFIG" => admin::config(session, words),
        "ECHO" => Reply::bulk(words[1]),
        "HELLO" => client::hello(session, words),
        "LATENCY" => latency::latency(session, words),
        "MODULE" => admin::module(words),
        "MONITOR" => client::monitor(session),
        "PING" => client::ping(words),
        "QUIT" => client::quit(session),
        "RESET" => client::reset(session),
        "SELECT" => client::select(words),
        "SHUTDOWN" => admin::shutdown(session),
        "SLOWLOG" => slow_log::slow_log(session, words),
        "TIME" => admin::time(),
        "BGREWRITEAOF" | "BGSAVE" | "LASTSAVE" => admin::save(session, command.name),
        _ => return None,
    })
}

/// Runs a command of the host on keys that the caller holds already.
pub(crate) fn run_with(
    session: &mut Session,
    command: &Command,
    words: Words<'_>,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
) -> Reply {
    if asks_for_help(command, words) {
        return describe::help(command);
    }
    if let Some(reply) = run_without_keys(session, command, words, env) {
        return reply;
    }
    let max_reply_bytes = env.max_reply_bytes.min(session.server.max_long_reply_bytes());
    let env = &Env { max_reply_bytes, ..*env };
    match command.name {
        "DUMP" => dump::dump_alone(&session.server, words, env, keys),
        "INFO" => info::info(session, words, env, keys),
        _ => {
            if let Some(refusal) = keys::must_wait(&session.server, command.name, words, env, keys)
            {
                return refusal;
            }
            let reply =
                keys::run(command.name, words, env, keys, Some(session.server.memory_left()))
                    .unwrap_or_else(|| unreachable!("no function runs {}", command.name));
            keys::log(&session.server, command, words, env, keys, &reply);
            keys::count_lookups(session, command, words, &reply);
            reply
        }
    }
}

/// Does again what a command about keys did, from the log; `None` if it is no such command.
pub(crate) fn redo(
    command: &Command,
    words: Words<'_>,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
) -> Option<Reply> {
    command.has(Flag::Write).then(|| keys::run(command.name, words, env, keys, None)).flatten()
}

/// Replies to a subcommand that does not exist, or that takes another number of words.
fn unknown_subcommand(command: &str, word: &[u8]) -> Reply {
    if let Some(action) = Action::find(&[command.as_bytes(), b"|", word].concat()) {
        return tamis_commands::text::wrong_arity(&action.name());
    }
    let word = String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
    host::unknown_subcommand(command, &word)
}

/// Tests whether these words are the `HELP` of a command with subcommands.
fn asks_for_help(command: &Command, words: Words<'_>) -> bool {
    !command.subcommands().is_empty() && words.len() == 2 && words[1].eq_ignore_ascii_case(b"HELP")
}

/// Checks that the words name a subcommand, if the command has some, and that there are as many words as it takes.
pub(crate) fn check_subcommand(command: &'static Command, words: Words<'_>) -> Result<(), Reply> {
    let Some(word) = words.get(1).filter(|_| !command.subcommands().is_empty()) else {
        return Ok(());
    };
    let action = Action::of(command, words);
    match action.subcommand {
        None => Err(unknown_subcommand(command.name, word)),
        Some(it) if !it.arity.takes(words.len()) => {
            Err(tamis_commands::text::wrong_arity(&action.name()))
        }
        Some(_) => Ok(()),
    }
}

/// Returns whether a command with data would be refused now, whatever the data is; false for a command without data.
pub(crate) fn refuses_data(
    command: &Command,
    words: Words<'_>,
    env: &Env<'_>,
    server: &Shared,
) -> bool {
    let keys = server.keyspace.shared();
    match command.data(words) {
        Some(Data::Payload(_)) => dump::restore_refusal(words, env, Keys::Shared(&keys)).is_some(),
        Some(Data::File(_)) => {
            let is_there = keys.read(words[1], env.now_millis, |value| value.is_some());
            load_refusal(is_there, words).is_some()
        }
        None => false,
    }
}

fn syntax_error() -> Reply {
    Reply::error(tamis_commands::text::SYNTAX)
}
