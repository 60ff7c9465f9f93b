//! `EXEC`: runs the commands of a transaction.

mod decode_ahead;
mod log_group;
mod places;
mod prepared;
mod replies;
mod run_queued;
#[cfg(test)]
mod tests;

use tamis_commands::Env;
use tamis_commands::text::server;
use tamis_resp::Reply;

use crate::handlers::transaction::end;
use crate::handlers::write_log::MAX_IMAGE_BYTES;
use crate::session::checks::logged_bytes;
use crate::session::transaction::Watched;
use crate::session::{Call, Session};
use crate::system::clock::now_millis;
use crate::system::held_memory::Hold;
use decode_ahead::{MAX_DECODED_BYTES, decode_each};
use log_group::begin_log_group;
use places::reserve_places;
use prepared::{Prepared, TURN_COMMANDS};
use run_queued::{Allowed, run_queued};

/// Runs the queued commands without any other command in between. Appends the replies to the queued
/// commands to `out`. If the replies together exceed the limit of a client, the server discards the
/// replies and closes the connection, as Redis does. The changes of the commands remain.
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
    lock_and_run(session, &transaction.queued, &watched, env, out).await?;
    if transaction.queued.len() > TURN_COMMANDS {
        // Freeing the memory of a million commands would block the other connections for too long.
        tokio::task::spawn_blocking(move || drop(transaction));
    }
    Ok(())
}

/// Prepares the transaction, locks the keys, and runs the commands.
async fn lock_and_run(
    session: &mut Session,
    queued: &[Vec<Vec<u8>>],
    watched: &Watched,
    env: &Env<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Reply> {
    let prepared = Prepared::of(queued).await;
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
    // Rust drops the following local variables in reverse order.
    let _places = reserve_places(&server, &prepared).await;
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
    // While this task waited for the keys, the log may have failed or the memory may have been used
    // up.
    let _admitted = check_changes(session, &prepared)?;
    let group = begin_log_group(&server, &prepared, &decoded, env, &alone)?;
    // The drop order matters: the log group is dropped before its serialized values (`images`), and
    // `images` before the lock of the keys.
    let (mut images, _group) = group.unzip();
    run_queued(session, &prepared, (&allowed, decoded), &mut images, env, &alone, out);
    Ok(())
}

/// Checks that the commands of a transaction may change data now. Returns a reservation of disk
/// space for the changes of the transaction, which form one frame of the log. Returns `None` if
/// there is no log or no change.
fn check_changes(session: &Session, prepared: &Prepared<'_>) -> Result<Option<Hold>, Reply> {
    let config = session.server.config();
    let changes = prepared.iter().filter(|(command, _)| command.may_change());
    let bytes = changes.map(|(command, argv)| logged_bytes(command, argv)).sum();
    let mut admitted = None;
    for command in &prepared.distinct {
        // Reserve the space of all commands in one step.
        let bytes = if admitted.is_none() { bytes } else { 0 };
        let one = session.check_change(command, bytes, &config);
        admitted = admitted.or(one.map_err(|why| server::discarded(&why))?);
    }
    Ok(admitted)
}

/// Checks all commands of a transaction before the keys are locked. The check yields to other
/// connections. Returns the user and the version of the user list before the check, if the user may
/// run all commands. Returns `None` if any command is not allowed.
async fn allowed(session: &mut Session, prepared: &Prepared<'_>) -> Allowed {
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
