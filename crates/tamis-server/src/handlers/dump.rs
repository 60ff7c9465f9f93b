//! `DUMP` and `RESTORE`: values in the formats of Redis and RedisBloom.

use tamis_commands::text::server;
use tamis_commands::{Value, WriteKeys};
use tamis_formats::RedisValue;
use tamis_resp::Reply;

use crate::handlers::write_log::{self, MAX_IMAGE_BYTES};
use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::session::decoding::{Decoded, decode, payload_decoder};
use crate::session::write_keys::restore::{NotDecoded, RestoreOptions, restore_refusal};
use crate::session::{Call, Session};
use crate::shared_state::SharedState;
use crate::system::clock::now_millis;

pub(super) fn dump(Call { argv, env, .. }: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    keys.read(argv[1], env.now_millis, |value| {
        match env.check_reply(value.map_or(0, Value::longest_reply_bytes)) {
            Ok(()) => value.map_or(Reply::Null, dumped),
            Err(text) => Reply::error(text),
        }
    })
}

/// Dumps a value for a transaction. The transaction holds the keys exclusively. The memory of the
/// payload is counted during the call. The dump needs no copy permit: a transaction creates one
/// payload at a time, and no other transaction runs.
pub(super) fn dump_alone(server: &SharedState, call: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    match server.reserve_memory(memory_to_dump(call, keys)) {
        Some(_hold) => dump(call, keys),
        None => Reply::error(server::REPLY_MEMORY),
    }
}

/// Returns the memory that a dump of a value takes, in bytes. The memory includes the contents of
/// the value and the payload.
fn memory_to_dump(Call { argv, env, .. }: Call<'_>, keys: &KeyspaceRef<'_>) -> u64 {
    let bytes = |value: Option<&Value>| {
        value.map_or(0, |value| value.heap_bytes().max(value.longest_reply_bytes()))
    };
    2 * keys.read(argv[1], env.now_millis, bytes)
}

/// Dumps a value. A separate thread dumps a large value, while other commands use the keys.
pub(super) async fn dump_in_background(session: &Session, call: Call<'_>) -> Reply {
    let Call { argv, env, .. } = call;
    {
        let keys = session.server.keyspace.shared();
        if !keys.is_large(argv[1], env.now_millis) {
            return dump(call, &keys);
        }
    }
    let _permit = session.server.copies.acquire().await.expect("it is never closed");
    let bytes = memory_to_dump(call, &session.server.keyspace.shared());
    let Some(_hold) = session.server.reserve_memory(bytes) else {
        return Reply::error(server::REPLY_MEMORY);
    };
    let (server, key, now) = (session.server.clone(), argv[1].to_vec(), now_millis());
    let dumping = tokio::task::spawn_blocking(move || server.keyspace.lease(&key, now, dumped));
    match dumping.await {
        Ok(dumped) => dumped.map_or(Reply::Null, |(payload, _)| payload),
        Err(_) => Reply::error(server::NOT_COPIED),
    }
}

fn dumped(value: &Value) -> Reply {
    let value = match value {
        Value::RedisBloom(filter) => RedisValue::Bloom((**filter).clone()),
        Value::RedisCuckoo(filter) => RedisValue::Cuckoo((**filter).clone()),
        Value::Bytes(bytes) => RedisValue::String(bytes.to_vec(0..bytes.len())),
        value => RedisValue::Tamis(value.to_image()),
    };
    Reply::Bulk(value.to_payload())
}

/// Restores a value. Decodes the payload before the keys are locked.
pub(super) async fn restore_in_background(
    session: &Session,
    call: Call<'_>,
) -> Result<Reply, Reply> {
    let server = session.server.clone();
    if let Some(refusal) = restore_refusal(call.argv, &call.env, &server.keyspace.shared()) {
        return Err(refusal);
    }
    let decoded = decode(&server, call).await.expect("it has a payload");
    let decoded = decoded.map_err(NotDecoded::into_reply)?;
    let alone = server.keyspace.exclusive_to_change(|leased| leased == call.argv[1]).await;
    session.check_change(call.command, 0, &server.config()).map_err(Reply::error)?;
    restore_decoded(&server, call.at(now_millis()), &alone, Some(Ok(decoded)))
}

/// Restores a value. Decodes the payload if the payload was not decoded before the keys were
/// locked.
pub(crate) fn restore_decoded(
    server: &SharedState,
    call: Call<'_>,
    keys: &ExclusiveAccess<'_>,
    decoded: Option<Result<Decoded, NotDecoded>>,
) -> Result<Reply, Reply> {
    let options = RestoreOptions::parse(call.argv)?;
    // Another command may have created the key before the keys were locked.
    if let Some(refusal) = options.refusal(call.argv, &call.env, keys) {
        return Err(refusal);
    }
    let is_counted = decoded.is_some();
    let value = match decoded {
        Some(decoded) => decoded.map(Decoded::into_value),
        None => payload_decoder(server, &call.env)(call.argv[3]),
    };
    let value = value.map_err(NotDecoded::into_reply)?;
    // The image (the serialized value) in the log may be longer than the value in memory: a
    // reserved filter without items has no bits in memory.
    let image_bytes = value.image_bytes();
    let log = server.durable.as_ref().map(|durable| &durable.log);
    let mut memory_bytes = value.heap_bytes();
    if let Some(group_bytes) = log.and_then(|log| log.group_bytes()) {
        if image_bytes.saturating_add(group_bytes as u64) > MAX_IMAGE_BYTES {
            return Err(Reply::error(server::LARGE_MULTI));
        }
        // In a transaction, the serialized value stays in memory until the transaction ends.
        memory_bytes += if is_counted { 0 } else { image_bytes };
    }
    if memory_bytes > server.memory_left() {
        return Err(Reply::error(server::MEMORY));
    }
    let _admitted = server.admit_image(image_bytes).map_err(Reply::error)?;
    let done = options.place(call.argv[1], value, &call.env, keys);
    write_log::log(server, WriteKeys::Restore, call, keys, &done);
    done
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::config::Config;
    use crate::server::Server;
    use crate::test_server;

    #[test]
    fn a_payload_is_decoded_before_the_keys_are_locked() {
        let server = test_server::start();
        let shared = server.shared();
        // While the test holds shared access, a command that needs exclusive access to the keys
        // waits.
        let held = shared.keyspace.shared();
        let (sender, replies) = mpsc::channel();
        let shared = shared.clone();
        std::thread::spawn(move || {
            let mut session = test_server::session(&shared);
            let argv: [&[u8]; 4] = [b"RESTORE", b"k", b"0", b"no payload"];
            let out = test_server::run(&mut session, &[&argv]);
            sender.send(out).unwrap();
        });
        let reply = tamis_testing::receive("a reply that does not wait for the keys", &replies);
        drop(held);
        assert!(reply.starts_with(b"-ERR DUMP payload version or checksum"));
    }

    #[test]
    fn values_restored_at_the_same_time_fit_in_memory_together() {
        let config = Config { max_memory_bytes: 300_000, ..test_server::config() };
        let server = Server::start(config).unwrap();
        let shared = server.shared();
        let payload = RedisValue::String(vec![b'x'; 200_000]).to_payload();
        // While the test holds shared access, a command that needs exclusive access to the keys
        // waits.
        let held = shared.keyspace.shared();
        let replies: Vec<Vec<u8>> = std::thread::scope(|threads| {
            let restores = ["a", "b", "c"].map(|key| {
                let (shared, payload) = (shared.clone(), &payload);
                threads.spawn(move || {
                    let mut session = test_server::session(&shared);
                    let argv: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", payload];
                    test_server::run(&mut session, &[&argv])
                })
            });
            // Wait until all payloads are decoded. If a slow machine decodes one payload after
            // another, the server rejects the later payloads too.
            std::thread::sleep(Duration::from_millis(200));
            drop(held);
            restores.map(|restore| restore.join().unwrap()).into()
        });
        let restored = replies.iter().filter(|reply| **reply == b"+OK\r\n").count();
        assert_eq!(restored, 1, "{replies:?}");
        assert!(shared.used_memory() <= 300_000);
    }
}
