//! Commands for keys of any type.

use tamis_commands::text::server;
use tamis_commands::{
    Argv, Env, TimeUnit, Value, WriteKeys, get_string, parse_integer, set_string, text,
};
use tamis_resp::Reply;

use crate::handlers::dump::Limit;
use crate::handlers::{Done, syntax_error, unknown_subcommand};
use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::pattern::matches;
use crate::persistence::Durable;
use crate::persistence::Record;
use crate::server::SharedState as Server;
use crate::session::Session;

/// Runs a command that may change several keys. `left_bytes` is the memory that a command of a
/// client may take; `None` for a command from the log.
pub(super) fn write(
    handler: WriteKeys,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    left_bytes: Option<u64>,
) -> Done {
    let now = env.now_millis;
    let max_bytes = left_bytes.unwrap_or(u64::MAX);
    match handler {
        WriteKeys::BitOp => crate::handlers::bitop::bitop(argv, env, keys, max_bytes),
        WriteKeys::Copy => crate::handlers::copy::copy(argv, env, keys, None, max_bytes),
        WriteKeys::Delete => {
            let removed = argv[1..].iter().filter(|key| keys.remove(key, now)).count();
            Done { reply: Reply::Integer(removed as i64), has_changed: removed > 0 }
        }
        WriteKeys::ExpireAfter(unit) => expire(unit, now as i64, argv, env, keys),
        WriteKeys::ExpireAt(unit) => expire(unit, 0, argv, env, keys),
        WriteKeys::Flush => flush(argv, keys),
        WriteKeys::Merge => merge(argv, env, keys, max_bytes),
        WriteKeys::Persist => {
            let is_done = keys.expiry(argv[1], now, |at| at.take().is_some()).unwrap_or(false);
            Done { reply: Reply::Integer(i64::from(is_done)), has_changed: is_done }
        }
        WriteKeys::Rename => rename(argv, env, keys),
        WriteKeys::RenameIfAbsent => rename_if_absent(argv, env, keys),
        WriteKeys::Restore => {
            let limit = left_bytes.map(|max_bytes| Limit { max_bytes, now_millis: now });
            crate::handlers::dump::restore(argv, env, keys, limit)
        }
        WriteKeys::SetEach => set_each(argv, env, keys),
    }
}

pub(super) fn list(pattern: &[u8], env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    if pattern.len() > MAX_PATTERN_BYTES {
        return pattern_too_long();
    }
    let mut found = Vec::new();
    each_key(keys, env.now_millis, |key, _| {
        if matches(pattern, key) {
            found.push(Reply::bulk(key));
        }
    });
    Reply::Array(found)
}

/// `FLUSHALL [ASYNC | SYNC]`
fn flush(argv: Argv<'_>, keys: &ExclusiveAccess<'_>) -> Done {
    let in_background = match argv {
        [_] => true,
        [_, how] if how.eq_ignore_ascii_case(b"ASYNC") => true,
        [_, how] if how.eq_ignore_ascii_case(b"SYNC") => false,
        _ => return Done::unchanged(syntax_error()),
    };
    let cleared = keys.clear();
    if in_background {
        keys.free_in_background(cleared);
    }
    Done::changed(Reply::ok())
}

/// The longest pattern, in bytes. Matching a key takes time proportional to the product of both
/// lengths.
pub(crate) const MAX_PATTERN_BYTES: usize = 1024;

fn pattern_too_long() -> Reply {
    Reply::error(server::LONG_PATTERN)
}

/// Logs the changes of a command, before any other command can see the keys.
pub(super) fn log(
    server: &Server,
    handler: WriteKeys,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    done: &Done,
) {
    let Some(durable) = server.durable.as_ref().filter(|_| done.has_changed) else { return };
    match (handler, image_keys(handler, argv)) {
        // Log each key separately, because a snapshot may already contain some of them.
        (WriteKeys::Delete, _) => {
            server.log_together(argv[1..].iter().map(|key| vec![&b"DEL"[..], key]), env);
        }
        (WriteKeys::SetEach, _) => server.log_together(sets(argv).map(Vec::from), env),
        (_, Some((written, removed))) if durable.is_saving() => {
            log_image(durable, written, removed, env, keys);
        }
        _ => server.log_command(argv, env),
    }
}

/// Returns the key that a command writes from the values of other keys, and the key that it
/// removes. While a snapshot is saved, the log gets the whole value. The reason: the snapshot may
/// contain one of the keys from before the command and the other from after it.
fn image_keys<'w>(handler: WriteKeys, argv: Argv<'w>) -> Option<(&'w [u8], Option<&'w [u8]>)> {
    match handler {
        WriteKeys::BitOp | WriteKeys::Copy => Some((argv[2], None)),
        WriteKeys::Merge => Some((argv[1], None)),
        WriteKeys::Rename | WriteKeys::RenameIfAbsent => Some((argv[2], Some(argv[1]))),
        _ => None,
    }
}

/// Logs the whole value of a key, and the removal of another key.
fn log_image(
    durable: &Durable,
    key: &[u8],
    removed: Option<&[u8]>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) {
    let expires_millis = keys.expires_millis(key, env.now_millis).flatten();
    let mut image = Vec::new();
    let is_there = keys.read(key, env.now_millis, |value| {
        value.map(|value| value.write_image(&mut image).expect("memory takes all")).is_some()
    });
    let delete = |key| {
        let argv = vec![&b"DEL"[..], key];
        Record::Command { now_millis: env.now_millis, argv }
    };
    let value = match is_there {
        true => Record::Image { key, expires_millis, image: &image },
        false => delete(key),
    };
    let records: Vec<Record<'_>> = [value].into_iter().chain(removed.map(delete)).collect();
    durable.log.append_all(&records);
}

pub(super) fn count_existing(
    session: &Session,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    let exists = |key: &&&[u8]| keys.read(key, env.now_millis, |value| value.is_some());
    let found = argv[1..].iter().filter(exists).count() as u64;
    session.note_lookups(true, found);
    session.note_lookups(false, argv.len() as u64 - 1 - found);
    Reply::Integer(found as i64)
}

fn each_key(keys: &KeyspaceRef<'_>, now_millis: u64, mut each: impl FnMut(&[u8], &Value)) {
    for part in 0..keys.parts() {
        keys.each_key(part, now_millis, &mut each);
    }
}

/// Sets the expiry time of a key. `start_millis` is the time from which the argument counts, in
/// milliseconds since 1970.
fn expire(
    unit: TimeUnit,
    start_millis: i64,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) -> Done {
    let at = match expire_at(unit, start_millis, argv) {
        Ok(at) => at,
        Err(refusal) => return Done::unchanged(refusal),
    };
    let rules = match ExpireRules::parse(&argv[3..]) {
        Ok(rules) => rules,
        Err(refusal) => return Done::unchanged(refusal),
    };
    let set = |expires: &mut Option<u64>| {
        let is_allowed = rules.allow(*expires, at);
        if is_allowed {
            *expires = Some(at);
        }
        is_allowed
    };
    let is_set = keys.expiry(argv[1], env.now_millis, set).unwrap_or(false);
    Done { reply: Reply::Integer(i64::from(is_set)), has_changed: is_set }
}

/// Returns the time in the second argument of a command, in milliseconds since 1970.
fn expire_at(unit: TimeUnit, start_millis: i64, argv: Argv<'_>) -> Result<u64, Reply> {
    let number = parse_integer(argv[2]).ok_or_else(|| Reply::error(text::NO_INTEGER))?;
    let millis = match unit {
        TimeUnit::Millis => Some(number),
        TimeUnit::Seconds => number.checked_mul(1000),
    };
    let at = millis.and_then(|millis| millis.checked_add(start_millis));
    at.map(|at| at.max(0) as u64).ok_or_else(|| {
        let name = String::from_utf8_lossy(argv[0]).to_ascii_lowercase();
        server::expire_time(&name)
    })
}

/// The conditions under which `EXPIRE` may replace the expiry time of a key.
struct ExpireRules {
    if_none: bool,
    if_some: bool,
    if_later: bool,
    if_earlier: bool,
}

impl ExpireRules {
    fn parse(options: Argv<'_>) -> Result<Self, Reply> {
        let mut rules = Self { if_none: false, if_some: false, if_later: false, if_earlier: false };
        for option in options {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => rules.if_none = true,
                b"XX" => rules.if_some = true,
                b"GT" => rules.if_later = true,
                b"LT" => rules.if_earlier = true,
                _ => {
                    let option = &option[..option.len().min(128)];
                    return Err(server::expire_option(&String::from_utf8_lossy(option)));
                }
            }
        }
        if rules.if_none && (rules.if_some || rules.if_later || rules.if_earlier) {
            return Err(Reply::error(server::EXPIRE_NX));
        }
        if rules.if_later && rules.if_earlier {
            return Err(Reply::error(server::EXPIRE_GT_LT));
        }
        Ok(rules)
    }

    /// Tests whether the expiry time may be set. A key without an expiry time counts as one that
    /// expires last.
    fn allow(&self, before: Option<u64>, at: u64) -> bool {
        match before {
            None => !self.if_some && !self.if_later,
            Some(before) => {
                !(self.if_none || self.if_later && at <= before || self.if_earlier && at >= before)
            }
        }
    }
}

pub(super) fn time_left(
    unit: TimeUnit,
    key: &[u8],
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    time_reply(unit, keys.expires_millis(key, env.now_millis), env.now_millis)
}

pub(super) fn expire_time(
    unit: TimeUnit,
    key: &[u8],
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    time_reply(unit, keys.expires_millis(key, env.now_millis), 0)
}

/// Replies with the time between `start_millis` and the expiry time of a key: -2 if the key does
/// not exist, -1 if it has no expiry time.
fn time_reply(unit: TimeUnit, expires_millis: Option<Option<u64>>, start_millis: u64) -> Reply {
    Reply::Integer(match expires_millis {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => {
            let millis = at.saturating_sub(start_millis);
            match unit {
                TimeUnit::Millis => millis as i64,
                TimeUnit::Seconds => ((millis + 500) / 1000) as i64,
            }
        }
    })
}

/// The maximum size of a value that may be renamed while a snapshot is saved, in bytes. The value
/// is written to the log.
pub(super) const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// Returns the error reply if a command must wait until the running snapshot is saved.
pub(super) fn must_wait(
    server: &Server,
    handler: WriteKeys,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) -> Option<Reply> {
    let durable = server.durable.as_ref().filter(|durable| durable.is_saving())?;
    // A transaction is one frame of the log.
    let group_bytes = durable.log.group_bytes().unwrap_or(0) as u64;
    let bytes = image_bytes(handler, argv, env, keys);
    (bytes > 0 && bytes.saturating_add(group_bytes) > MAX_IMAGE_BYTES)
        .then(|| Reply::error(server::LARGE_WHILE_SAVING))
}

/// Estimates how many bytes of values a command writes to the log if it runs while a snapshot is
/// saved.
pub(super) fn image_bytes(
    handler: WriteKeys,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
) -> u64 {
    if image_keys(handler, argv).is_none() {
        return 0;
    }
    let bytes_of =
        |key: &&[u8]| keys.read(key, env.now_millis, |value| value.map_or(0, Value::memory_bytes));
    argv[1..].iter().map(bytes_of).max().unwrap_or(0)
}

fn rename(argv: Argv<'_>, env: &Env<'_>, keys: &ExclusiveAccess<'_>) -> Done {
    let (from, to, now) = (argv[1], argv[2], env.now_millis);
    if !exists(from, now, keys) {
        return Done::unchanged(Reply::error(server::NO_KEY));
    }
    keys.rename(from, to, now);
    Done { reply: Reply::ok(), has_changed: from != to }
}

fn rename_if_absent(argv: Argv<'_>, env: &Env<'_>, keys: &ExclusiveAccess<'_>) -> Done {
    let (from, to, now) = (argv[1], argv[2], env.now_millis);
    if !exists(from, now, keys) {
        return Done::unchanged(Reply::error(server::NO_KEY));
    }
    // If both names are the same key, the key itself exists.
    if exists(to, now, keys) {
        return Done::unchanged(Reply::Integer(0));
    }
    keys.rename(from, to, now);
    Done::changed(Reply::Integer(1))
}

fn exists(key: &[u8], now_millis: u64, keys: &KeyspaceRef<'_>) -> bool {
    keys.read(key, now_millis, |value| value.is_some())
}

fn merge(argv: Argv<'_>, env: &Env<'_>, keys: &ExclusiveAccess<'_>, left_bytes: u64) -> Done {
    let destination = argv[1];
    // Merging the destination into itself changes nothing.
    let sources: Vec<&[u8]> =
        argv[2..].iter().copied().filter(|source| *source != destination).collect();
    let merged =
        keys.write_by(destination, &sources, env.now_millis, left_bytes, |value, found| {
            let sources: Vec<_> = sources.iter().copied().zip(found.iter().copied()).collect();
            let was_there = value.is_some();
            let reply = tamis_commands::merge(destination, value, &sources, env).reply;
            if !was_there && value.as_ref().is_some_and(|value| value.heap_bytes() > left_bytes) {
                *value = None;
                return Reply::error(server::MEMORY);
            }
            reply
        });
    let reply = merged.unwrap_or_else(|| Reply::error(server::MEMORY));
    let has_changed = !matches!(reply, Reply::Error(_));
    Done { reply, has_changed }
}

/// The maximum bytes of strings in one reply, equal to the longest string.
const MAX_REPLY_BYTES: usize = 512 << 20;

pub(super) fn get_each(
    session: &Session,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    let read = |key: &&[u8]| {
        let get = |value: Option<&Value>| get_string(value, &[], env);
        let reply = keys.read(key, env.now_millis, get);
        // A value of another type counts as missing.
        if matches!(reply, Reply::Error(_)) { Reply::Null } else { reply }
    };
    let len = |key: &&[u8]| {
        keys.read(key, env.now_millis, |value| match value {
            Some(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        })
    };
    // The command may name a key many times, and its string may be sparse.
    let bytes = argv[1..].iter().map(len).fold(0, usize::saturating_add);
    if bytes > MAX_REPLY_BYTES {
        return Reply::error(server::LONG_REPLY);
    }
    if let Err(text) = env.check_reply(bytes as u64) {
        return Reply::error(text);
    }
    let values: Vec<Reply> = argv[1..].iter().map(read).collect();
    let found = values.iter().filter(|value| **value != Reply::Null).count();
    session.note_lookups(true, found as u64);
    session.note_lookups(false, (values.len() - found) as u64);
    Reply::Array(values)
}

/// Returns a `SET` for each pair of an `MSET`.
fn sets<'w>(argv: Argv<'w>) -> impl Iterator<Item = [&'w [u8]; 3]> {
    argv[1..].chunks_exact(2).map(|pair| [&b"SET"[..], pair[0], pair[1]])
}

fn set_each(argv: Argv<'_>, env: &Env<'_>, keys: &ExclusiveAccess<'_>) -> Done {
    if argv.len().is_multiple_of(2) {
        return Done::unchanged(text::wrong_arity("mset"));
    }
    for argv in sets(argv) {
        keys.change(argv[1], env.now_millis, |value| set_string(value, &argv, env));
    }
    Done::changed(Reply::ok())
}

pub(super) fn memory(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    if !argv[1].eq_ignore_ascii_case(b"USAGE") || argv.len() < 3 {
        return unknown_subcommand("MEMORY", argv[1]);
    }
    let bytes = keys.memory_of(argv[2], env.now_millis);
    bytes.map_or(Reply::Null, |bytes| Reply::Integer(bytes as i64))
}

pub(super) fn object(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let Some(key) = argv.get(2) else { return unknown_subcommand("OBJECT", argv[1]) };
    let answer = match argv[1].to_ascii_uppercase().as_slice() {
        b"ENCODING" => {
            keys.read(key, env.now_millis, |value| value.map(|value| Reply::bulk(value.encoding())))
        }
        b"FREQ" => return Reply::error(server::NO_LFU),
        b"REFCOUNT" | b"IDLETIME" => exists(key, env.now_millis, keys)
            .then_some(Reply::Integer(i64::from(argv[1].eq_ignore_ascii_case(b"REFCOUNT")))),
        _ => return unknown_subcommand("OBJECT", argv[1]),
    };
    answer.unwrap_or(Reply::Null)
}

pub(super) fn random_key(env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    // Start at a part that the time selects, because any key may be returned.
    let first = env.now_millis as usize % keys.parts();
    for part in (first..keys.parts()).chain(0..first) {
        let mut found = None;
        keys.each_key(part, env.now_millis, |key, _| found = Some(Reply::bulk(key)));
        if let Some(key) = found {
            return key;
        }
    }
    Reply::Null
}

/// Returns whole parts of the keyspace until there are enough keys. A key that exists during the
/// whole scan is in exactly one part. The cursor is the index of the next part.
pub(super) fn scan(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let Some(mut part) = parse_integer(argv[1]).and_then(|n| usize::try_from(n).ok()) else {
        return Reply::error(server::CURSOR);
    };
    let (mut pattern, mut enough, mut kind) = (None, 10, None);
    for pair in argv[2..].chunks(2) {
        let &[name, value] = pair else { return syntax_error() };
        match name.to_ascii_uppercase().as_slice() {
            b"MATCH" if value.len() > MAX_PATTERN_BYTES => return pattern_too_long(),
            b"MATCH" => pattern = Some(value),
            b"TYPE" => kind = Some(value),
            b"COUNT" => match parse_integer(value) {
                Some(count) if count >= 1 => enough = count as usize,
                Some(_) => return syntax_error(),
                None => return Reply::error(text::NO_INTEGER),
            },
            _ => return syntax_error(),
        }
    }
    let (mut found, mut seen) = (Vec::new(), 0);
    while part < keys.parts() && seen < enough {
        keys.each_key(part, env.now_millis, |key, value| {
            seen += 1;
            let is_kind =
                kind.is_none_or(|kind| kind.eq_ignore_ascii_case(value.type_name().as_bytes()));
            if is_kind && pattern.is_none_or(|pattern| matches(pattern, key)) {
                found.push(Reply::bulk(key));
            }
        });
        part += 1;
    }
    let next = if part < keys.parts() { part } else { 0 };
    Reply::Array(vec![Reply::bulk(next.to_string()), Reply::Array(found)])
}
