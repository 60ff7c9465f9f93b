//! Handlers of the commands for the server, the connection and several keys: all commands that are
//! not a function of one value.

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
use tamis_commands::text::server;
use tamis_commands::{
    Argv, Command, Data, Env, Permission, ReadKeys, ServerCommand, WriteKeys, load_refusal,
};
use tamis_resp::Reply;
pub(crate) use transaction::exec;

pub(crate) use info::{REDIS_VERSION, memory_of_process};

use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::server::SharedState;
use crate::session::{Session, at_present};

/// The outcome of a command that may change several keys: the reply, and whether a key changed.
pub(super) struct Done {
    reply: Reply,
    has_changed: bool,
}

impl Done {
    fn changed(reply: Reply) -> Self {
        Self { reply, has_changed: true }
    }

    fn unchanged(reply: Reply) -> Self {
        Self { reply, has_changed: false }
    }
}

/// Runs a command for the connection or the server, outside a transaction.
pub(crate) async fn run_server_command(
    session: &mut Session,
    handler: ServerCommand,
    command: &'static Command,
    argv: Argv<'_>,
    env: &Env<'_>,
) -> Reply {
    match handler {
        ServerCommand::Debug if !asks_for_help(command, argv) => {
            debug::debug(session, argv, env).await
        }
        // The snapshot locks the keys exclusively for short moments.
        ServerCommand::Save => admin::save_now(session).await,
        _ => run_server_command_at_once(session, handler, command, argv, env),
    }
}

/// Runs a command for the connection or the server, inside or outside a transaction.
pub(crate) fn run_server_command_at_once(
    session: &mut Session,
    handler: ServerCommand,
    command: &'static Command,
    argv: Argv<'_>,
    env: &Env<'_>,
) -> Reply {
    match handler {
        _ if asks_for_help(command, argv) => describe::help(command),
        ServerCommand::Acl => acl::acl(session, argv, env),
        ServerCommand::Auth => client::auth(session, argv),
        ServerCommand::Client => client::client(session, argv, env),
        ServerCommand::Command => describe::command(argv),
        ServerCommand::Config => admin::config(session, argv),
        ServerCommand::Discard => transaction::discard(session),
        ServerCommand::Echo => Reply::bulk(argv[1]),
        ServerCommand::Hello => client::hello(session, argv),
        ServerCommand::LastSave => admin::last_save(session),
        ServerCommand::Latency => latency::latency(session, argv),
        ServerCommand::Module => admin::module(argv),
        ServerCommand::Monitor => client::monitor(session),
        ServerCommand::Multi => transaction::multi(session),
        ServerCommand::Ping => client::ping(argv),
        ServerCommand::Quit => client::quit(session),
        ServerCommand::Reset => client::reset(session),
        ServerCommand::RewriteLog => {
            admin::save(session, "Background append only file rewriting started")
        }
        ServerCommand::SaveInBackground => admin::save(session, "Background saving started"),
        ServerCommand::Select => client::select(argv),
        ServerCommand::Shutdown => admin::shutdown(session),
        ServerCommand::SlowLog => slow_log::slow_log(session, argv),
        ServerCommand::Time => admin::time(),
        ServerCommand::Unwatch => transaction::unwatch(session),
        ServerCommand::Watch => transaction::watch(session, argv, env),
        // `MULTI` never queues these commands.
        ServerCommand::Debug | ServerCommand::Exec | ServerCommand::Save => {
            Reply::error(server::NOT_IN_MULTI)
        }
    }
}

/// Runs a command that reads several keys, outside a transaction.
pub(crate) async fn run_read_keys(
    session: &Session,
    handler: ReadKeys,
    command: &'static Command,
    argv: Argv<'_>,
    env: &Env<'_>,
) -> Reply {
    match handler {
        ReadKeys::Dump => dump::dump_in_background(session, argv, env).await,
        _ => {
            let server = session.server.clone();
            read_keys(session, handler, command, argv, env, &server.keyspace.shared())
        }
    }
}

/// Runs a command that reads several keys.
pub(crate) fn read_keys(
    session: &Session,
    handler: ReadKeys,
    command: &'static Command,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    let max_reply_bytes = env.max_reply_bytes.min(session.server.max_long_reply_bytes());
    let env = &Env { max_reply_bytes, ..*env };
    match handler {
        _ if asks_for_help(command, argv) => describe::help(command),
        ReadKeys::CountExisting => keys::count_existing(session, argv, env, keys),
        ReadKeys::CountAll => Reply::Integer(keys.len() as i64),
        ReadKeys::Dump => dump::dump_alone(&session.server, argv, env, keys),
        ReadKeys::ExpireTime(unit) => keys::expire_time(unit, argv[1], env, keys),
        ReadKeys::GetEach => keys::get_each(session, argv, env, keys),
        ReadKeys::Info => info::info(session, argv, env, keys),
        ReadKeys::List => keys::list(argv[1], env, keys),
        ReadKeys::Memory => keys::memory(argv, env, keys),
        ReadKeys::Object => keys::object(argv, env, keys),
        ReadKeys::Random => keys::random_key(env, keys),
        ReadKeys::Scan => keys::scan(argv, env, keys),
        ReadKeys::TimeLeft(unit) => keys::time_left(unit, argv[1], env, keys),
    }
}

/// Runs a command that may change several keys, outside a transaction.
pub(crate) async fn run_write_keys(
    session: &mut Session,
    handler: WriteKeys,
    command: &'static Command,
    argv: Argv<'_>,
    env: &Env<'_>,
) -> Reply {
    match handler {
        WriteKeys::Copy => copy::copy_in_background(session, command, argv, env).await,
        WriteKeys::Restore => dump::restore_in_background(session, command, argv, env).await,
        _ => {
            let server = session.server.clone();
            let is_meant = |leased: &[u8]| {
                command.keys.first == 0 || command.keys.of(argv).any(|key| key == leased)
            };
            let keys = server.keyspace.exclusive_to_change(is_meant).await;
            write_keys(&server, handler, argv, &at_present(env), &keys)
        }
    }
}

/// Runs a command that may change several keys, and logs the change before another command can see
/// these keys.
pub(crate) fn write_keys(
    server: &SharedState,
    handler: WriteKeys,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) -> Reply {
    if let Some(refusal) = keys::must_wait(server, handler, argv, env, keys) {
        return refusal;
    }
    let done = keys::write(handler, argv, env, keys, Some(server.memory_left()));
    keys::log(server, handler, argv, env, keys, &done);
    done.reply
}

/// Replays a change of several keys from the log.
pub(crate) fn redo(
    handler: WriteKeys,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) -> Reply {
    keys::write(handler, argv, env, keys, None).reply
}

/// Replies to an unknown subcommand, or to one with a wrong number of arguments.
fn unknown_subcommand(command: &str, word: &[u8]) -> Reply {
    if let Some(permission) = Permission::find(&[command.as_bytes(), b"|", word].concat()) {
        return tamis_commands::text::wrong_arity(&permission.name());
    }
    let word = String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
    server::unknown_subcommand(command, &word)
}

/// Tests whether the arguments request the `HELP` of a command with subcommands.
fn asks_for_help(command: &Command, argv: Argv<'_>) -> bool {
    !command.subcommands.is_empty() && argv.len() == 2 && argv[1].eq_ignore_ascii_case(b"HELP")
}

/// Checks that the arguments name a subcommand, if the command has any, and that their number
/// matches its arity.
pub(crate) fn check_subcommand(command: &'static Command, argv: Argv<'_>) -> Result<(), Reply> {
    let Some(word) = argv.get(1).filter(|_| !command.subcommands.is_empty()) else {
        return Ok(());
    };
    let permission = Permission::of(command, argv);
    match permission.subcommand {
        None => Err(unknown_subcommand(command.name, word)),
        Some(it) if !it.arity.takes(argv.len()) => {
            Err(tamis_commands::text::wrong_arity(&permission.name()))
        }
        Some(_) => Ok(()),
    }
}

/// Tests whether a command with data would fail now, independent of its data; false for a command
/// without data.
pub(crate) fn refuses_data(
    command: &Command,
    argv: Argv<'_>,
    env: &Env<'_>,
    server: &SharedState,
) -> bool {
    let keys = server.keyspace.shared();
    match command.data(argv) {
        Some(Data::Payload(_)) => dump::restore_refusal(argv, env, &keys).is_some(),
        Some(Data::File(_)) => {
            let is_there = keys.read(argv[1], env.now_millis, |value| value.is_some());
            load_refusal(is_there, argv).is_some()
        }
        None => false,
    }
}

fn syntax_error() -> Reply {
    Reply::error(tamis_commands::text::SYNTAX)
}
