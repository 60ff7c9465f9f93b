//! Commands that may change several keys, as functions of the keyspace. The commands of clients and
//! the replay of the log use the same functions.

mod bitop;
pub(crate) mod copy;
pub(crate) mod expiry;
pub(crate) mod outcome;
pub(crate) mod restore;

use tamis_commands::text::server;
use tamis_commands::{Argv, Env, Outcome, Value, WriteKeys, set_string, text};
use tamis_resp::Reply;

use crate::keyspace::ExclusiveAccess;
use bitop::bitop;
use copy::copy;
use expiry::{expire, persist};
use outcome::{WriteResult, count_changes};
use restore::{Limit, restore};

/// Runs a command that may change several keys. `left_bytes` is the maximum memory for a command of
/// a client. If `left_bytes` is `None`, the command comes from the log.
pub(crate) fn write(
    handler: WriteKeys,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    left_bytes: Option<u64>,
) -> WriteResult {
    let now = env.now_millis;
    let max_bytes = left_bytes.unwrap_or(u64::MAX);
    match handler {
        WriteKeys::BitOp => bitop(argv, env, keys, max_bytes),
        WriteKeys::Copy => copy(argv, env, keys, None, max_bytes),
        WriteKeys::Delete => {
            count_changes(argv[1..].iter().filter(|key| keys.remove(key, now)).count())
        }
        WriteKeys::ExpireAfter(unit) => expire(unit, now as i64, argv, env, keys),
        WriteKeys::ExpireAt(unit) => expire(unit, 0, argv, env, keys),
        WriteKeys::Flush => flush(argv, keys),
        WriteKeys::Merge => merge(argv, env, keys, max_bytes),
        WriteKeys::Persist => persist(argv[1], env, keys),
        WriteKeys::Rename => rename(argv, env, keys, false),
        WriteKeys::RenameIfAbsent => rename(argv, env, keys, true),
        WriteKeys::Restore => restore(argv, env, keys, Limit { max_bytes, now_millis: now }),
        WriteKeys::SetEach => set_each(argv, env, keys),
    }
}

/// Runs `FLUSHALL [ASYNC | SYNC]`.
fn flush(argv: Argv<'_>, keys: &ExclusiveAccess<'_>) -> WriteResult {
    let in_background = match argv {
        [_] => true,
        [_, how] if how.eq_ignore_ascii_case(b"ASYNC") => true,
        [_, how] if how.eq_ignore_ascii_case(b"SYNC") => false,
        _ => return Err(Reply::error(text::SYNTAX)),
    };
    let cleared = keys.clear();
    if in_background {
        keys.free_in_background(cleared);
    }
    Ok(Reply::ok())
}

/// Runs `RENAME key newkey`, or `RENAMENX key newkey` if `if_absent` is true.
fn rename(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    if_absent: bool,
) -> WriteResult {
    let (from, to, now) = (argv[1], argv[2], env.now_millis);
    if !keys.exists(from, now) {
        return Err(Reply::error(server::NO_KEY));
    }
    // If `from` and `to` are equal, the key `to` exists, so `RENAMENX` replies with 0.
    if if_absent && keys.exists(to, now) {
        return Err(Reply::Integer(0));
    }
    keys.rename(from, to, now);
    let reply = if if_absent { Reply::Integer(1) } else { Reply::ok() };
    if from == to { Err(reply) } else { Ok(reply) }
}

fn merge(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    left_bytes: u64,
) -> WriteResult {
    let destination = argv[1];
    // Merging the destination into itself changes nothing, so the destination is not a source.
    let sources: Vec<&[u8]> =
        argv[2..].iter().copied().filter(|source| *source != destination).collect();
    let merge = |value: &mut Option<Value>, found: &[Option<&Value>]| {
        let sources: Vec<_> = sources.iter().copied().zip(found.iter().copied()).collect();
        let was_there = value.is_some();
        let merged = tamis_commands::merge(destination, value, &sources, env);
        if !was_there && value.as_ref().is_some_and(|value| value.heap_bytes() > left_bytes) {
            *value = None;
            return Reply::error(server::MEMORY);
        }
        merged.unwrap_or_else(Outcome::from).reply
    };
    let merged = keys.write_by(destination, &sources, env.now_millis, left_bytes, merge);
    match merged.unwrap_or_else(|| Reply::error(server::MEMORY)) {
        error @ Reply::Error(_) => Err(error),
        reply => Ok(reply),
    }
}

/// Returns one `SET` command for each pair of an `MSET`.
pub(crate) fn sets<'w>(argv: Argv<'w>) -> impl Iterator<Item = [&'w [u8]; 3]> {
    argv[1..].chunks_exact(2).map(|pair| [&b"SET"[..], pair[0], pair[1]])
}

fn set_each(argv: Argv<'_>, env: &Env<'_>, keys: &ExclusiveAccess<'_>) -> WriteResult {
    if argv.len().is_multiple_of(2) {
        return Err(text::wrong_arity("mset"));
    }
    for argv in sets(argv) {
        keys.change(argv[1], env.now_millis, |value| {
            set_string(value, &argv, env).unwrap_or_else(Outcome::from)
        });
    }
    Ok(Reply::ok())
}
