//! The handlers of all commands that concern the server, the connection or several keys, and not
//! one value.

mod acl;
mod admin;
mod client;
mod copy;
mod debug;
mod describe;
pub(crate) mod dump;
mod info;
mod latency;
mod lookup;
mod scan;
mod slow_log;
pub(crate) mod transaction;
pub(crate) mod write_log;

use tamis_commands::text::server;
use tamis_commands::{Env, ReadKeys, ServerCommand, WriteKeys};
use tamis_resp::Reply;

use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::session::subcommand::asks_for_help;
use crate::session::write_keys::expiry::time_until_expiry;
use crate::session::write_keys::write;
use crate::session::{Call, Session};
use crate::shared_state::SharedState;
use crate::system::clock::now_millis;

/// Runs a command for the connection or the server, outside a transaction.
pub(crate) async fn run_server(
    session: &mut Session,
    handler: ServerCommand,
    call: Call<'_>,
) -> Reply {
    match handler {
        ServerCommand::Debug if !asks_for_help(call) => debug::debug(session, call.argv).await,
        // `SAVE` writes a snapshot. The snapshot locks all keys exclusively for short times.
        ServerCommand::Save => admin::save_now(session).await,
        _ => run_server_at_once(session, handler, call),
    }
}

/// Runs a command for the connection or the server, inside or outside a transaction.
pub(crate) fn run_server_at_once(
    session: &mut Session,
    handler: ServerCommand,
    call: Call<'_>,
) -> Reply {
    let argv = call.argv;
    match handler {
        _ if asks_for_help(call) => describe::help(call.command),
        ServerCommand::Acl => acl::acl(session, call).unwrap_or_else(|refusal| refusal),
        ServerCommand::Auth => client::auth(session, argv).unwrap_or_else(|refusal| refusal),
        ServerCommand::Client => client::client(session, call).unwrap_or_else(|refusal| refusal),
        ServerCommand::Command => describe::command(argv),
        ServerCommand::Config => admin::config(session, argv),
        ServerCommand::Discard => transaction::discard(session),
        ServerCommand::Echo => Reply::bulk(argv[1]),
        ServerCommand::Hello => client::hello(session, argv).unwrap_or_else(|refusal| refusal),
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
        ServerCommand::Watch => transaction::watch(session, call),
        // A transaction never contains `DEBUG`, `EXEC` or `SAVE`, because `MULTI` does not queue
        // these commands.
        ServerCommand::Debug | ServerCommand::Exec | ServerCommand::Save => {
            Reply::error(server::NOT_IN_MULTI)
        }
    }
}

/// Runs a command that reads several keys, outside a transaction.
pub(crate) async fn run_read_keys(session: &Session, handler: ReadKeys, call: Call<'_>) -> Reply {
    match handler {
        ReadKeys::Dump => dump::dump_in_background(session, call).await,
        _ => {
            let server = session.server.clone();
            read_keys(session, handler, call, &server.keyspace.shared())
        }
    }
}

/// Runs a command that reads several keys.
pub(crate) fn read_keys(
    session: &Session,
    handler: ReadKeys,
    call: Call<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    let max_reply_bytes = call.env.max_reply_bytes.min(session.server.max_long_reply_bytes());
    let env = Env { max_reply_bytes, ..call.env };
    let (call, argv) = (Call { env, ..call }, call.argv);
    match handler {
        _ if asks_for_help(call) => describe::help(call.command),
        ReadKeys::CountExisting => lookup::count_existing(session, call, keys),
        ReadKeys::CountAll => Reply::Integer(keys.len() as i64),
        ReadKeys::Dump => dump::dump_alone(&session.server, call, keys),
        ReadKeys::ExpireTime(unit) => time_until_expiry(unit, 0, argv[1], &env, keys),
        ReadKeys::GetEach => lookup::get_each(session, call, keys),
        ReadKeys::Info => info::info(session, call, keys),
        ReadKeys::List => scan::list(call, keys),
        ReadKeys::Memory => lookup::memory(call, keys),
        ReadKeys::Object => lookup::object(call, keys),
        ReadKeys::Random => scan::random_key(&env, keys),
        ReadKeys::Scan => scan::scan(call, keys),
        ReadKeys::TimeLeft(unit) => time_until_expiry(unit, env.now_millis, argv[1], &env, keys),
    }
}

/// Runs a command that may change several keys, outside a transaction.
pub(crate) async fn run_write_keys(
    session: &mut Session,
    handler: WriteKeys,
    call: Call<'_>,
) -> Reply {
    match handler {
        WriteKeys::Copy => copy::copy_in_background(session, call).await.unwrap_or_else(|it| it),
        WriteKeys::Restore => {
            dump::restore_in_background(session, call).await.unwrap_or_else(|it| it)
        }
        _ => {
            let server = session.server.clone();
            let keys = server.keyspace.exclusive_to_change(|key| call.may_access(key)).await;
            write_keys(&server, handler, call.at(now_millis()), &keys)
        }
    }
}

/// Runs a command that may change several keys. Logs the change before another command can read the
/// changed keys.
pub(crate) fn write_keys(
    server: &SharedState,
    handler: WriteKeys,
    call: Call<'_>,
    keys: &ExclusiveAccess<'_>,
) -> Reply {
    let _admitted = match write_log::admit(server, handler, call, keys) {
        Ok(admitted) => admitted,
        Err(refusal) => return refusal,
    };
    let done = write(handler, call.argv, &call.env, keys, Some(server.memory_left()));
    write_log::log(server, handler, call, keys, &done);
    done.unwrap_or_else(|reply| reply)
}
