//! `EXEC`: runs the commands of a transaction.

mod decode_ahead;
mod log_group;
mod places;
mod prepared;
mod replies;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use tamis_commands::text::server;
use tamis_commands::{Argv, Command, Env, Flag, Handler, WriteKeys, text};
use tamis_resp::Reply;

use crate::handlers::dump::restore_decoded;
use crate::handlers::transaction::end;
use crate::handlers::write_log::MAX_IMAGE_BYTES;
use crate::handlers::{read_keys, run_server_command_at_once, write_keys};
use crate::persistence::decoding::Decoded;
use crate::persistence::not_decoded::NotDecoded;
use crate::session::Session;
use crate::session::call::Call;
use crate::session::checks::logged_bytes;
use crate::session::transaction::Watched;
use crate::system::clock::now_millis;
use crate::system::held_memory::Hold;
use crate::users::{Denied, User};
use decode_ahead::{MAX_DECODED_BYTES, decode_each};
use log_group::begin_log_group;
use places::reserve_places;
use prepared::{Prepared, TURN_COMMANDS};
use replies::Replies;

/// Runs the queued commands with no other command in between, and appends their replies to `out`.
/// If the replies together exceed the limit of a client, the server discards them and closes the
/// connection, as Redis does. The effects of the commands stay.
///
/// # Errors
///
/// Returns the error reply if the transaction does not run.
pub(crate) async fn exec(
    session: &mut Session,
    env: &Env<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Reply> {
    if session.transaction.is_none() {
        return Err(Reply::error(server::EXEC_ALONE));
    }
    let none = Watched::new(session.server.held.hold(0));
    let watched = std::mem::replace(&mut session.watched, none);
    let transaction = end(session).expect("just seen");
    if transaction.is_broken {
        return Err(Reply::error(server::BROKEN_MULTI));
    }
    let prepared = Prepared::of(&transaction.queued).await;
    check_changes(session, &prepared)?;
    let allowed = allowed(session, &prepared).await;
    let server = session.server.clone();
    {
        // Do not decode data for a transaction that will not run.
        let (keys, now) = (server.keyspace.shared(), now_millis());
        if !watched.are_unchanged(|key| keys.version(key, now)) {
            return Err(Reply::NullArray);
        }
    }
    let places = reserve_places(&server, &prepared).await;
    let decoded = match &allowed {
        Some(_) => {
            let has_log = server.durable.is_some();
            let max_bytes = if has_log { MAX_IMAGE_BYTES } else { MAX_DECODED_BYTES };
            decode_each(&server, &prepared, env, max_bytes).await
        }
        None => Vec::new(),
    };
    let is_meant = |leased: &[u8]| {
        prepared.iter().any(|(command, argv)| {
            command.may_change() && Call { command, argv, env: *env }.may_access(leased)
        })
    };
    let alone = server.keyspace.exclusive_to_change(is_meant).await;
    let env = &env.at(now_millis());
    if !watched.are_unchanged(|key| alone.version(key, env.now_millis)) {
        return Err(Reply::NullArray);
    }
    // While this task waited for the keys, the log may have failed, or the memory may have been
    // used up.
    let admitted = check_changes(session, &prepared)?;
    let (group, mut images) = begin_log_group(&server, &prepared, &decoded, env, &alone)?.unzip();
    let mut decoded = decoded.into_iter().peekable();
    let mut began = Instant::now();
    let mut config = session.server.config();
    // All replies count as a single one, which `client-output-buffer-limit` allows to exceed the
    // limit.
    let mut left_bytes = match config.output_limit.hard_bytes {
        0 => u64::MAX,
        bytes => bytes,
    };
    let memory_left = server.memory_left();
    let mut replies = Replies::new(
        left_bytes.min(memory_left.max(LEAST_KEPT_BYTES)),
        prepared.commands.len(),
        server.held.hold(0),
        out,
    );
    left_bytes = left_bytes.min(memory_left.max(LEAST_REPLY_BYTES) / 2);
    for (i, (command, argv)) in prepared.iter().enumerate() {
        let decoded = decoded.next_if(|(of, _)| *of == i).map(|(_, decoded)| decoded);
        // The only effect of this command would be a reply that is discarded.
        if replies.are_discarded && command.has(Flag::ReadOnly) {
            continue;
        }
        let is_allowed = allowed.as_ref().is_some_and(|(user, version)| {
            Arc::ptr_eq(user, &session.user) && *version == server.users.version()
        });
        if !is_allowed && let Err(refusal) = check(session, command, argv) {
            replies.push(&refusal, session.protocol);
            continue;
        }
        session.show(command, &[argv], &config);
        let env = Env {
            settings: &config.filters,
            max_reply_bytes: left_bytes.saturating_sub(replies.len()),
            ..*env
        };
        let call = Call { command, argv, env };
        let reply = match (command.handler, decoded) {
            (Handler::Key(handler), decoded) => {
                let decoded =
                    decoded.map(|it| it.map(Decoded::into_value).map_err(NotDecoded::into_reply));
                session.run_one(handler, call, &alone, decoded)
            }
            (Handler::Answer(answer), _) => answer(argv, &env),
            (Handler::Server(handler), _) => run_server_command_at_once(session, handler, call),
            (Handler::ReadKeys(handler), _) => read_keys(session, handler, call, &alone),
            (Handler::WriteKeys(WriteKeys::Restore), decoded) => {
                let is_counted = decoded.is_some();
                let group_bytes = || server.durable.as_ref()?.log.group_bytes();
                let before = group_bytes();
                let restored = restore_decoded(&server, call, &alone, decoded);
                if let (Some(images), false) = (&mut images, is_counted) {
                    images.add((group_bytes().unwrap_or(0) - before.unwrap_or(0)) as u64);
                }
                restored.unwrap_or_else(|refusal| refusal)
            }
            (Handler::WriteKeys(handler), _) => write_keys(&server, handler, call, &alone),
        };
        if command.has(Flag::Admin) {
            // Later commands use the options that this command has set.
            config = session.server.config();
        }
        session.count_failure(command, &reply);
        replies.push(&reply, session.protocol);
        began = session.count(command, &[argv], began, &config);
    }
    if replies.are_discarded {
        session.overflow();
    }
    drop(replies);
    // Drop the group before the keys are unlocked.
    drop(group);
    drop(images);
    drop(admitted);
    drop(alone);
    drop(prepared);
    drop(places);
    if transaction.queued.len() > TURN_COMMANDS {
        // Freeing the memory of a million commands takes longer than other connections should wait.
        tokio::task::spawn_blocking(move || drop(transaction));
    }
    Ok(())
}

/// The bytes of replies that a transaction may always use, independent of the memory left.
const LEAST_REPLY_BYTES: u64 = 1 << 20;

/// The bytes of replies that a transaction always keeps, independent of the memory left, so that
/// replies to short commands are not rejected.
const LEAST_KEPT_BYTES: u64 = 16 << 20;

/// Checks that the commands of a transaction may change data now. Returns the disk space for their
/// changes, which together are one frame of the log; `None` if there is no log or no change.
fn check_changes(session: &Session, prepared: &Prepared<'_>) -> Result<Option<Hold>, Reply> {
    let config = session.server.config();
    let changes = prepared.iter().filter(|(command, _)| command.may_change());
    let bytes = changes.map(|(command, argv)| logged_bytes(command, argv)).sum();
    let mut admitted = None;
    for command in &prepared.distinct {
        // All commands together are admitted once.
        let bytes = if admitted.is_none() { bytes } else { 0 };
        let one = session.check_change(command, bytes, &config);
        admitted = admitted.or(one.map_err(|why| server::discarded(&why))?);
    }
    Ok(admitted)
}

/// Checks all commands of a transaction before the keys are locked, yielding to other connections.
/// Returns the user, who may run all commands, and the version of the list of users before the
/// check. Returns `None` if any command is not allowed.
async fn allowed(session: &mut Session, prepared: &Prepared<'_>) -> Option<(Arc<User>, u64)> {
    let version = session.server.users.version();
    session.refresh_user().ok()?;
    let user = session.user.clone();
    for (i, (command, argv)) in prepared.iter().enumerate() {
        user.check(command, argv).ok()?;
        if (i + 1).is_multiple_of(TURN_COMMANDS) {
            tokio::task::yield_now().await;
        }
    }
    Some((user, version))
}

/// Checks that the user may still run a queued command: an operator or an earlier command may have
/// removed the permission.
fn check(session: &mut Session, command: &'static Command, argv: Argv<'_>) -> Result<(), Reply> {
    session.refresh_user()?;
    session.user.check(command, argv).map_err(|refusal| {
        session.log_refusal(&refusal);
        text::acl::no_longer(matches!(refusal, Denied::Key(_)))
    })
}
