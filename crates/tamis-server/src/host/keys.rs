//! Keys, whatever they hold.

use tamis_commands::text::host;
use tamis_commands::{Command, Env, Flag, Run, Value, Words, find, parse_integer, text};
use tamis_resp::Reply;

use super::dump::Limit;
use super::{syntax_error, unknown_subcommand};
use crate::durability::Record;
use crate::durable::Durable;
use crate::pattern::matches;
use crate::server::Shared as Server;
use crate::session::{Keys, Session, with_keys};

/// Runs a command about keys; `None` if it is none. `left_bytes` is the memory that a client's command may take; `None` for
/// a command from the log.
pub(super) fn run(
    name: &str,
    words: Words<'_>,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
    left_bytes: Option<u64>,
) -> Option<Reply> {
    let now = env.now_millis;
    let max_bytes = left_bytes.unwrap_or(u64::MAX);
    Some(match name {
        "BITOP" => super::bitop::bitop(words, env, keys, max_bytes),
        "COPY" => super::copy::copy(words, env, keys, None, max_bytes),
        "DBSIZE" => Reply::Integer(with_keys!(keys, keys => keys.len()) as i64),
        "DEL" | "UNLINK" => count(words, |key| with_keys!(keys, keys => keys.remove(key, now))),
        "EXISTS" | "TOUCH" => count(
            words,
            |key| with_keys!(keys, keys => keys.read(key, now, |value| value.is_some())),
        ),
        "EXPIRE" | "EXPIREAT" | "PEXPIRE" | "PEXPIREAT" => expire(name, words, env, keys),
        "TTL" | "PTTL" | "EXPIRETIME" | "PEXPIRETIME" => time_left(name, words[1], env, keys),
        "PERSIST" => Reply::Integer(i64::from(
            with_keys!(keys, keys => keys.expiry(words[1], now, |at| at.take().is_some()))
                .unwrap_or(false),
        )),
        "FLUSHALL" | "FLUSHDB" if !is_flush(words) => syntax_error(),
        "FLUSHALL" | "FLUSHDB" => match keys {
            Keys::Exclusive(keys) => {
                let cleared = keys.clear();
                let in_background =
                    !words.get(1).is_some_and(|how| how.eq_ignore_ascii_case(b"SYNC"));
                if in_background {
                    keys.free_in_background(cleared);
                }
                Reply::ok()
            }
            Keys::Shared(_) => unreachable!("it runs alone"),
        },
        "KEYS" if words[1].len() > MAX_PATTERN_BYTES => pattern_too_long(),
        "KEYS" => {
            let mut found = Vec::new();
            each_key(keys, now, |key, _| {
                if matches(words[1], key) {
                    found.push(Reply::bulk(key));
                }
            });
            Reply::Array(found)
        }
        "MEMORY" => memory(words, env, keys),
        "MGET" => mget(words, env, keys),
        "MSET" => mset(words, env, keys),
        "OBJECT" => object(words, env, keys),
        "RANDOMKEY" => random_key(env, keys),
        "RENAME" | "RENAMENX" => rename(name, words, env, keys),
        "RESTORE" => {
            let limit = left_bytes.map(|max_bytes| Limit { max_bytes, now_millis: now });
            super::dump::restore(words, env, keys, limit)
        }
        "SCAN" => scan(words, env, keys),
        "TM.MERGE" => merge(words, env, keys, max_bytes),
        _ => return None,
    })
}

/// The longest pattern that keys are compared with: the time is its length times theirs.
pub(crate) const MAX_PATTERN_BYTES: usize = 1024;

fn pattern_too_long() -> Reply {
    Reply::error(host::LONG_PATTERN)
}

fn is_flush(words: Words<'_>) -> bool {
    match words {
        [_] => true,
        [_, how] => how.eq_ignore_ascii_case(b"ASYNC") || how.eq_ignore_ascii_case(b"SYNC"),
        _ => false,
    }
}

/// Keeps what a command did, which still is alone with the keys.
pub(super) fn log(
    server: &Server,
    command: &Command,
    words: Words<'_>,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
    reply: &Reply,
) {
    let Some(durable) = &server.durable else { return };
    // BITOP with nothing to combine takes the destination out, and answers with its length.
    let has_changed = !matches!(reply, Reply::Error(_))
        && (command.name == "BITOP" || !matches!(reply, Reply::Integer(0)));
    if !command.has(Flag::Write) || !has_changed {
        return;
    }
    match command.name {
        "RENAME" | "RENAMENX" if words[1] == words[2] => {}
        // A key each, since a snapshot may already have some of them.
        "DEL" | "UNLINK" => {
            server.log_together(words[1..].iter().map(|key| vec![&b"DEL"[..], key]), env);
        }
        "MSET" => server.log_together(sets(words).map(Vec::from), env),
        "RENAME" | "RENAMENX" if durable.is_saving() => {
            // The snapshot may have passed one place and not come to the other.
            log_image(durable, words[2], Some(words[1]), env, keys);
        }
        // Or have the copy, or what it is of, from another moment.
        "COPY" if durable.is_saving() => log_image(durable, words[2], None, env, keys),
        "BITOP" if durable.is_saving() => log_image(durable, words[2], None, env, keys),
        // Or have one filter from before and the other from after.
        "TM.MERGE" if durable.is_saving() => log_image(durable, words[1], None, env, keys),
        _ => server.log_command(words, env),
    }
}

/// Logs the whole value of a key, and that another key is removed.
fn log_image(
    durable: &Durable,
    key: &[u8],
    removed: Option<&[u8]>,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
) {
    let Keys::Exclusive(keys) = keys else { unreachable!("it runs alone") };
    let expires_millis = keys.expires_millis(key, env.now_millis).flatten();
    let mut image = Vec::new();
    let is_there = keys.read(key, env.now_millis, |value| {
        value.map(|value| value.write_image(&mut image).expect("memory takes all")).is_some()
    });
    let delete = |key| {
        let words = vec![&b"DEL"[..], key];
        Record::Command { now_millis: env.now_millis, words }
    };
    let value = match is_there {
        true => Record::Image { key, expires_millis, image: &image },
        false => delete(key),
    };
    let records: Vec<Record<'_>> = [value].into_iter().chain(removed.map(delete)).collect();
    durable.log.append_all(&records);
}

fn count(words: Words<'_>, is_one: impl Fn(&[u8]) -> bool) -> Reply {
    Reply::Integer(words[1..].iter().filter(|key| is_one(key)).count() as i64)
}

fn each_key(keys: Keys<'_, '_>, now_millis: u64, mut each: impl FnMut(&[u8], &Value)) {
    with_keys!(keys, keys => {
        for part in 0..keys.parts() {
            keys.each_key(part, now_millis, &mut each);
        }
    });
}

fn expire(name: &str, words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    let invalid = || {
        let name = name.to_ascii_lowercase();
        host::expire_time(&name)
    };
    let Some(number) = parse_integer(words[2]) else { return Reply::error(text::NO_INTEGER) };
    let millis = if name.starts_with('P') { Some(number) } else { number.checked_mul(1000) };
    let start = if name.ends_with("AT") { 0 } else { env.now_millis as i64 };
    let Some(at) = millis.and_then(|millis| millis.checked_add(start)) else { return invalid() };
    let at = at.max(0) as u64;
    let mut rules = [false; 4];
    for word in &words[3..] {
        match ["NX", "XX", "GT", "LT"]
            .iter()
            .position(|rule| word.eq_ignore_ascii_case(rule.as_bytes()))
        {
            Some(rule) => rules[rule] = true,
            None => {
                let word = String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
                return host::expire_option(&word);
            }
        }
    }
    let [nx, xx, gt, lt] = rules;
    if nx && (xx || gt || lt) {
        return Reply::error(host::EXPIRE_NX);
    }
    if gt && lt {
        return Reply::error(host::EXPIRE_GT_LT);
    }
    let set = |expires: &mut Option<u64>| {
        let allowed = match *expires {
            // No time is later than any.
            None => !xx && !gt,
            Some(before) => !(nx || gt && at <= before || lt && at >= before),
        };
        if allowed {
            *expires = Some(at);
        }
        allowed
    };
    let is_set = with_keys!(keys, keys => keys.expiry(words[1], env.now_millis, set));
    Reply::Integer(i64::from(is_set.unwrap_or(false)))
}

fn time_left(name: &str, key: &[u8], env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    let found = with_keys!(keys, keys => keys.expires_millis(key, env.now_millis));
    Reply::Integer(match found {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => match name {
            "TTL" => ((at.saturating_sub(env.now_millis) + 500) / 1000) as i64,
            "PTTL" => at.saturating_sub(env.now_millis) as i64,
            "EXPIRETIME" => ((at + 500) / 1000) as i64,
            _ => at as i64,
        },
    })
}

/// The largest value that is renamed while a snapshot is saved: its bytes go into the log.
pub(super) const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// Returns the reply if a command must wait for the snapshot that is being saved.
pub(super) fn must_wait(
    server: &Server,
    name: &str,
    words: Words<'_>,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
) -> Option<Reply> {
    let durable = server.durable.as_ref().filter(|durable| durable.is_saving())?;
    // A transaction is one frame of the log.
    let group_bytes = durable.log.group_bytes().unwrap_or(0) as u64;
    let bytes = image_bytes(name, words, env, keys);
    (bytes > 0 && bytes.saturating_add(group_bytes) > MAX_IMAGE_BYTES)
        .then(|| Reply::error(host::LARGE_WHILE_SAVING))
}

/// Returns how many bytes of values a command puts into the log if it runs while a snapshot is saved, about.
pub(super) fn image_bytes(name: &str, words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> u64 {
    if !["BITOP", "COPY", "RENAME", "RENAMENX", "TM.MERGE"].contains(&name) {
        return 0;
    }
    let bytes_of = |key: &&[u8]| {
        with_keys!(keys, keys => {
            keys.read(key, env.now_millis, |value| value.map_or(0, Value::memory_bytes))
        })
    };
    words[1..].iter().map(bytes_of).max().unwrap_or(0)
}

fn rename(name: &str, words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    let Keys::Exclusive(keys) = keys else { unreachable!("it runs alone") };
    let (from, to, now) = (words[1], words[2], env.now_millis);
    let is_there = |key| keys.read(key, now, |value| value.is_some());
    if !is_there(from) {
        return Reply::error(host::NO_KEY);
    }
    if name == "RENAMENX" {
        if is_there(to) {
            return Reply::Integer(0);
        }
        return Reply::Integer(i64::from(keys.rename(from, to, now)));
    }
    keys.rename(from, to, now);
    Reply::ok()
}

fn merge(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>, left_bytes: u64) -> Reply {
    let Keys::Exclusive(keys) = keys else { unreachable!("it runs alone") };
    let destination = words[1];
    // What is merged into itself stays as it is.
    let sources: Vec<&[u8]> =
        words[2..].iter().copied().filter(|source| *source != destination).collect();
    let merged =
        keys.write_by(destination, &sources, env.now_millis, left_bytes, |value, found| {
            let sources: Vec<_> = sources.iter().copied().zip(found.iter().copied()).collect();
            let was_there = value.is_some();
            let reply = tamis_commands::merge(destination, value, &sources, env).reply;
            if !was_there && value.as_ref().is_some_and(|value| value.heap_bytes() > left_bytes) {
                *value = None;
                return Reply::error(host::MEMORY);
            }
            reply
        });
    merged.unwrap_or_else(|| Reply::error(host::MEMORY))
}

/// Counts the keys that were found, and those that were not, for commands that read several.
pub(super) fn count_lookups(session: &Session, command: &Command, words: Words<'_>, reply: &Reply) {
    let keys = words.len() as u64 - 1;
    let found = match (command.name, reply) {
        ("EXISTS" | "TOUCH", Reply::Integer(found)) => *found as u64,
        ("MGET", Reply::Array(values)) => {
            values.iter().filter(|value| **value != Reply::Null).count() as u64
        }
        _ => return,
    };
    session.note_lookups(true, found);
    session.note_lookups(false, keys.saturating_sub(found));
}

/// The most bytes of strings in one reply, as long as the longest string.
const MAX_REPLY_BYTES: usize = 512 << 20;

fn mget(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    let Some(Run::Read(get)) = find(b"GET").map(|it| it.run) else { unreachable!("it reads") };
    let read = |key: &&[u8]| {
        let reply = with_keys!(keys, keys => {
            keys.read(key, env.now_millis, |value| get(value, &[b"GET", key], env))
        });
        // A value of another type is no string.
        if matches!(reply, Reply::Error(_)) { Reply::Null } else { reply }
    };
    let len = |key: &&[u8]| {
        with_keys!(keys, keys => keys.read(key, env.now_millis, |value| match value {
            Some(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        }))
    };
    // A key may be named many times, and its string be sparse.
    let bytes = words[1..].iter().map(len).fold(0, usize::saturating_add);
    if bytes > MAX_REPLY_BYTES {
        return Reply::error(host::LONG_REPLY);
    }
    if let Err(text) = env.check_reply(bytes as u64) {
        return Reply::error(text);
    }
    Reply::Array(words[1..].iter().map(read).collect())
}

/// Returns the `SET` of each pair of an `MSET`.
fn sets<'w>(words: Words<'w>) -> impl Iterator<Item = [&'w [u8]; 3]> {
    words[1..].chunks_exact(2).map(|pair| [&b"SET"[..], pair[0], pair[1]])
}

fn mset(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    if words.len().is_multiple_of(2) {
        return text::wrong_arity("mset");
    }
    let Some(Run::Write(set)) = find(b"SET").map(|it| it.run) else { unreachable!("it writes") };
    for words in sets(words) {
        with_keys!(keys, keys => {
            keys.change(words[1], env.now_millis, |value| set(value, &words, env))
        });
    }
    Reply::ok()
}

fn memory(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    if !words[1].eq_ignore_ascii_case(b"USAGE") || words.len() < 3 {
        return unknown_subcommand("MEMORY", words[1]);
    }
    let bytes = with_keys!(keys, keys => keys.memory_of(words[2], env.now_millis));
    bytes.map_or(Reply::Null, |bytes| Reply::Integer(bytes as i64))
}

fn object(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    let Some(key) = words.get(2) else { return unknown_subcommand("OBJECT", words[1]) };
    let answer = match words[1].to_ascii_uppercase().as_slice() {
        b"ENCODING" => {
            with_keys!(keys, keys => keys.read(key, env.now_millis, |value| {
                value.map(|value| Reply::bulk(value.encoding()))
            }))
        }
        b"FREQ" => return Reply::error(host::NO_LFU),
        b"REFCOUNT" | b"IDLETIME" => {
            let is_there =
                with_keys!(keys, keys => keys.read(key, env.now_millis, |it| it.is_some()));
            is_there
                .then_some(Reply::Integer(i64::from(words[1].eq_ignore_ascii_case(b"REFCOUNT"))))
        }
        _ => return unknown_subcommand("OBJECT", words[1]),
    };
    answer.unwrap_or(Reply::Null)
}

fn random_key(env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    with_keys!(keys, keys => {
        // From a part that the time picks, since any key will do.
        let first = env.now_millis as usize % keys.parts();
        for part in (first..keys.parts()).chain(0..first) {
            let mut found = None;
            keys.each_key(part, env.now_millis, |key, _| found = Some(Reply::bulk(key)));
            if let Some(key) = found {
                return key;
            }
        }
    });
    Reply::Null
}

/// Answers with whole parts of the keyspace until there are enough keys: a key that is there all the time is
/// in exactly one of them. The cursor is the next part.
fn scan(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    let Some(mut part) = parse_integer(words[1]).and_then(|n| usize::try_from(n).ok()) else {
        return Reply::error(host::CURSOR);
    };
    let (mut pattern, mut enough, mut kind) = (None, 10, None);
    for pair in words[2..].chunks(2) {
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
    with_keys!(keys, keys => {
        while part < keys.parts() && seen < enough {
            keys.each_key(part, env.now_millis, |key, value| {
                seen += 1;
                let is_kind = kind.is_none_or(|kind| {
                    kind.eq_ignore_ascii_case(value.type_name().as_bytes())
                });
                if is_kind && pattern.is_none_or(|pattern| matches(pattern, key)) {
                    found.push(Reply::bulk(key));
                }
            });
            part += 1;
        }
        let next = if part < keys.parts() { part } else { 0 };
        Reply::Array(vec![Reply::bulk(next.to_string()), Reply::Array(found)])
    })
}
