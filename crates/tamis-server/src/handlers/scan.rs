//! Commands that list keys: `KEYS`, `SCAN`, `RANDOMKEY`.

use tamis_commands::text::server;
use tamis_commands::{Env, parse_integer, text};
use tamis_resp::Reply;

use crate::keyspace::KeyspaceRef;
use crate::pattern::{MAX_PATTERN_BYTES, matches};
use crate::session::Call;

pub(super) fn list(Call { argv, env, .. }: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let pattern = argv[1];
    if pattern.len() > MAX_PATTERN_BYTES {
        return pattern_too_long();
    }
    let mut found = Vec::new();
    for part in 0..keys.shard_count() {
        keys.each_key(part, env.now_millis, |key, _| {
            if matches(pattern, key) {
                found.push(Reply::bulk(key));
            }
        });
    }
    Reply::Array(found)
}

pub(super) fn random_key(env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    // Start at a shard that the current time selects, because `RANDOMKEY` may return any key.
    let first = env.now_millis as usize % keys.shard_count();
    for part in (first..keys.shard_count()).chain(0..first) {
        let mut found = None;
        keys.each_key(part, env.now_millis, |key, _| found = Some(Reply::bulk(key)));
        if let Some(key) = found {
            return key;
        }
    }
    Reply::Null
}

/// Returns whole shards of the keyspace until the reply contains enough keys. A key that exists
/// during the whole scan is returned exactly once, because the key is in exactly one shard. The
/// cursor is the index of the next shard.
pub(super) fn scan(Call { argv, env, .. }: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let Some(mut part) = parse_integer(argv[1]).and_then(|n| usize::try_from(n).ok()) else {
        return Reply::error(server::CURSOR);
    };
    let (mut pattern, mut enough, mut kind) = (None, 10, None);
    for pair in argv[2..].chunks(2) {
        let &[name, value] = pair else { return Reply::error(text::SYNTAX) };
        match name.to_ascii_uppercase().as_slice() {
            b"MATCH" if value.len() > MAX_PATTERN_BYTES => return pattern_too_long(),
            b"MATCH" => pattern = Some(value),
            b"TYPE" => kind = Some(value),
            b"COUNT" => match parse_integer(value) {
                Some(count) if count >= 1 => enough = count as usize,
                Some(_) => return Reply::error(text::SYNTAX),
                None => return Reply::error(text::NO_INTEGER),
            },
            _ => return Reply::error(text::SYNTAX),
        }
    }
    let (mut found, mut seen) = (Vec::new(), 0);
    while part < keys.shard_count() && seen < enough {
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
    let next = if part < keys.shard_count() { part } else { 0 };
    Reply::Array(vec![Reply::bulk(next.to_string()), Reply::Array(found)])
}

fn pattern_too_long() -> Reply {
    Reply::error(server::LONG_PATTERN)
}
