//! Runs the commands of a transaction while the keys are locked.

use std::sync::Arc;
use std::time::Instant;

use tamis_commands::{Argv, Command, Env, Flag, Handler, WriteKeys, text};
use tamis_resp::Reply;

use crate::handlers::dump::restore_decoded;
use crate::handlers::{read_keys, run_server_at_once, write_keys};
use crate::keyspace::ExclusiveAccess;
use crate::session::decoding::Decoded;
use crate::session::exec::prepared::Prepared;
use crate::session::exec::replies::Replies;
use crate::session::write_keys::restore::NotDecoded;
use crate::session::{Call, Session};
use crate::system::held_memory::Hold;
use crate::users::{Denied, User};

/// The minimum number of bytes that the replies of a transaction may use, even if no memory is
/// left.
const LEAST_REPLY_BYTES: u64 = 1 << 20;

/// The minimum number of bytes of replies that a transaction keeps, even if no memory is left. With
/// this minimum, the server does not discard replies to short commands.
const LEAST_KEPT_BYTES: u64 = 16 << 20;

/// The data of a transaction that was decoded before the keys were locked. Each value has the index
/// of its command.
pub(super) type DecodedEach = Vec<(usize, Result<Decoded, NotDecoded>)>;

/// The user, and the version of the user list before the check, if the user may run all commands of
/// the transaction. The value is `None` if each command must be checked when the command runs.
pub(super) type Allowed = Option<(Arc<User>, u64)>;

/// Runs the commands and appends their replies to `out`. The log keeps serialized values until the
/// transaction ends; `images` counts the memory of these values.
pub(super) fn run_queued(
    session: &mut Session,
    prepared: &Prepared<'_>,
    (allowed, decoded): (&Allowed, DecodedEach),
    images: &mut Option<Hold>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    out: &mut Vec<u8>,
) {
    let server = session.server.clone();
    let mut decoded = decoded.into_iter().peekable();
    let mut began = Instant::now();
    let mut config = server.config();
    // All replies of a transaction count as one reply. `client-output-buffer-limit` permits one
    // reply to exceed the limit.
    let most_bytes = match config.output_limit.hard_bytes {
        0 => u64::MAX,
        bytes => bytes,
    };
    let memory_left = server.memory_left();
    let mut replies = Replies::new(
        most_bytes.min(memory_left.max(LEAST_KEPT_BYTES)),
        prepared.commands.len(),
        server.held.hold(0),
        out,
    );
    let left_bytes = most_bytes.min(memory_left.max(LEAST_REPLY_BYTES) / 2);
    for (i, (command, argv)) in prepared.iter().enumerate() {
        let decoded = decoded.next_if(|(of, _)| *of == i).map(|(_, decoded)| decoded);
        // Skip a command that only reads if its reply would be discarded.
        if replies.are_discarded && command.has(Flag::ReadOnly) {
            continue;
        }
        if let Err(refusal) = check(session, allowed, command, argv) {
            replies.push(&refusal, session.protocol);
            continue;
        }
        session.show(command, &[argv], &config);
        let env = Env {
            settings: &config.filters,
            max_reply_bytes: left_bytes.saturating_sub(replies.len()),
            ..*env
        };
        let reply = run_one(session, Call { command, argv, env }, decoded, images, keys);
        if command.has(Flag::Admin) {
            // The next commands use the options that this command has set.
            config = server.config();
        }
        session.count_failure(command, &reply);
        replies.push(&reply, session.protocol);
        began = session.count(command, &[argv], began, &config);
    }
    if replies.are_discarded {
        session.overflow();
    }
}

/// Checks that the user may still run a queued command. An administrator, or a previous command of
/// the transaction, may have removed the permission.
fn check(
    session: &mut Session,
    allowed: &Allowed,
    command: &'static Command,
    argv: Argv<'_>,
) -> Result<(), Reply> {
    let is_allowed = allowed.as_ref().is_some_and(|(user, version)| {
        Arc::ptr_eq(user, &session.user) && *version == session.server.users.version()
    });
    if is_allowed {
        return Ok(());
    }
    session.refresh_user()?;
    session.user.check(command, argv).map_err(|refusal| {
        session.log_refusal(&refusal);
        text::acl::no_longer(matches!(refusal, Denied::Key(_)))
    })
}

/// Runs a command. `decoded` is the data of the command if the data was decoded before the keys
/// were locked.
fn run_one(
    session: &mut Session,
    call: Call<'_>,
    decoded: Option<Result<Decoded, NotDecoded>>,
    images: &mut Option<Hold>,
    keys: &ExclusiveAccess<'_>,
) -> Reply {
    match call.command.handler {
        Handler::Key(handler) => {
            let decoded =
                decoded.map(|it| it.map(Decoded::into_value).map_err(NotDecoded::into_reply));
            session.run_one(handler, call, keys, decoded)
        }
        Handler::Answer(answer) => answer(call.argv, &call.env),
        Handler::Server(handler) => run_server_at_once(session, handler, call),
        Handler::ReadKeys(handler) => read_keys(session, handler, call, keys),
        Handler::WriteKeys(WriteKeys::Restore) => {
            let server = &session.server;
            let is_counted = decoded.is_some();
            let group_bytes = || server.durable.as_ref()?.log.group_bytes();
            let before = group_bytes();
            let restored = restore_decoded(server, call, keys, decoded);
            if let (Some(images), false) = (images, is_counted) {
                images.add((group_bytes().unwrap_or(0) - before.unwrap_or(0)) as u64);
            }
            restored.unwrap_or_else(|refusal| refusal)
        }
        Handler::WriteKeys(handler) => write_keys(&session.server, handler, call, keys),
    }
}
