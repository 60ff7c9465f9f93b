//! `DUMP` and `RESTORE`: values as Redis and RedisBloom exchange them.

use tamis_commands::text::host;
use tamis_commands::{Env, Value, Words, parse_integer, text};
use tamis_formats::{PayloadError, RedisValue};
use tamis_resp::Reply;

use super::syntax_error;
use crate::session::{Keys, Session, at_present, with_keys};

pub(super) fn dump(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    with_keys!(keys, keys => keys.read(words[1], env.now_millis, |value| {
        value.map_or(Reply::Null, dumped)
    }))
}

/// Dumps a value: a large one on a thread of its own, while others have the keys.
pub(super) async fn dump_beside(session: &Session, words: Words<'_>, env: &Env<'_>) -> Reply {
    {
        let keys = session.server.keyspace.shared();
        if !keys.is_large(words[1], env.now_millis) {
            return dump(words, env, Keys::Shared(&keys));
        }
    }
    let _permit = session.server.copies.acquire().await.expect("it is never closed");
    let (server, key, now) =
        (session.server.clone(), words[1].to_vec(), at_present(env).now_millis);
    let dumping = tokio::task::spawn_blocking(move || server.keyspace.lend(&key, now, dumped));
    match dumping.await {
        Ok(dumped) => dumped.map_or(Reply::Null, |(payload, _)| payload),
        Err(_) => Reply::error(host::NOT_COPIED),
    }
}

fn dumped(value: &Value) -> Reply {
    let value = match value {
        Value::RedisBloom(filter) => RedisValue::Bloom((**filter).clone()),
        Value::RedisCuckoo(filter) => RedisValue::Cuckoo((**filter).clone()),
        Value::Bytes(bytes) => RedisValue::String(bytes.to_vec(0..bytes.len())),
        value => {
            let mut image = Vec::new();
            value.write_image(&mut image).expect("memory takes all");
            RedisValue::Tamis(image)
        }
    };
    Reply::Bulk(value.to_payload())
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
pub(super) fn restore(words: Words<'_>, env: &Env<'_>, keys: Keys<'_, '_>) -> Reply {
    let Keys::Exclusive(keys) = keys else { unreachable!("it runs alone") };
    let (mut replaces, mut is_absolute) = (false, false);
    let mut rest = &words[4..];
    while let [option, behind @ ..] = rest {
        rest = match (option.to_ascii_uppercase().as_slice(), behind) {
            (b"REPLACE", rest) => {
                replaces = true;
                rest
            }
            (b"ABSTTL", rest) => {
                is_absolute = true;
                rest
            }
            // Nothing here remembers when it was touched.
            (b"IDLETIME" | b"FREQ", [number, rest @ ..]) if parse_integer(number).is_some() => rest,
            _ => return syntax_error(),
        };
    }
    let (key, now) = (words[1], env.now_millis);
    if !replaces && keys.read(key, now, |value| value.is_some()) {
        return Reply::error(host::BUSY_KEY);
    }
    let Some(ttl) = parse_integer(words[2]) else { return Reply::error(text::NO_INTEGER) };
    let Ok(ttl) = u64::try_from(ttl) else {
        return Reply::error(host::TTL);
    };
    let value = match RedisValue::from_payload(words[3], env.settings.max_filter_bytes) {
        Ok(RedisValue::Bloom(filter)) => Value::RedisBloom(Box::new(filter)),
        Ok(RedisValue::Cuckoo(filter)) => Value::RedisCuckoo(Box::new(filter)),
        Ok(RedisValue::String(bytes)) => Value::Bytes(bytes.into()),
        Ok(RedisValue::Tamis(image)) => {
            match Value::read_image(&mut &image[..], image.len() as u64) {
                Ok(value) => value,
                Err(_) => return Reply::error(host::BAD_DATA),
            }
        }
        Err(PayloadError::Checksum) => {
            return Reply::error(host::BAD_PAYLOAD);
        }
        Err(_) => return Reply::error(host::BAD_DATA),
    };
    let expires = match (ttl, is_absolute) {
        (0, _) => None,
        (at, true) => Some(at),
        (ttl, false) => Some(now.saturating_add(ttl)),
    };
    keys.remove(key, now);
    // What is over already is not kept.
    if expires.is_none_or(|at| at > now) {
        keys.write(key, now, |slot| *slot = Some(value));
        keys.expiry(key, now, |at| *at = expires);
    }
    Reply::ok()
}
