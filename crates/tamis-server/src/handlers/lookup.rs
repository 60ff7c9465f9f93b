//! Commands that look up keys: `EXISTS`, `MGET`, `MEMORY`, `OBJECT`.

use tamis_commands::text::server;
use tamis_commands::{Value, get_string};
use tamis_resp::Reply;

use crate::keyspace::KeyspaceRef;
use crate::session::subcommand::unknown_subcommand;
use crate::session::{Call, Session};

pub(super) fn count_existing(session: &Session, call: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let Call { argv, env, .. } = call;
    let found = argv[1..].iter().filter(|key| keys.exists(key, env.now_millis)).count() as u64;
    session.note_lookups(true, found);
    session.note_lookups(false, argv.len() as u64 - 1 - found);
    Reply::Integer(found as i64)
}

/// The maximum total bytes of strings in one reply, which is also the length of the longest
/// possible string.
const MAX_REPLY_BYTES: usize = 512 << 20;

pub(super) fn get_each(session: &Session, call: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let Call { argv, env, .. } = call;
    let read = |key: &&[u8]| {
        let get = |value: Option<&Value>| get_string(value, &[], &env);
        let reply = keys.read(key, env.now_millis, get);
        // A value that is not a string counts as missing.
        if matches!(reply, Reply::Error(_)) { Reply::Null } else { reply }
    };
    let len = |key: &&[u8]| {
        keys.read(key, env.now_millis, |value| match value {
            Some(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        })
    };
    // The reply may be larger than the memory of all keys: the command may name a key many times,
    // and a string may be sparse.
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

pub(super) fn memory(Call { argv, env, .. }: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    if !argv[1].eq_ignore_ascii_case(b"USAGE") || argv.len() < 3 {
        return unknown_subcommand("MEMORY", argv[1]);
    }
    let bytes = keys.memory_of(argv[2], env.now_millis);
    bytes.map_or(Reply::Null, |bytes| Reply::Integer(bytes as i64))
}

pub(super) fn object(Call { argv, env, .. }: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let Some(key) = argv.get(2) else { return unknown_subcommand("OBJECT", argv[1]) };
    let answer = match argv[1].to_ascii_uppercase().as_slice() {
        b"ENCODING" => {
            keys.read(key, env.now_millis, |value| value.map(|value| Reply::bulk(value.encoding())))
        }
        b"FREQ" => return Reply::error(server::NO_LFU),
        b"REFCOUNT" | b"IDLETIME" => keys
            .exists(key, env.now_millis)
            .then_some(Reply::Integer(i64::from(argv[1].eq_ignore_ascii_case(b"REFCOUNT")))),
        _ => return unknown_subcommand("OBJECT", argv[1]),
    };
    answer.unwrap_or(Reply::Null)
}
