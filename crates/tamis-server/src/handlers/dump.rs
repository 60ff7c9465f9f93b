//! `DUMP` and `RESTORE`: values in the formats of Redis and RedisBloom.

use tamis_commands::text::server;
use tamis_commands::{Argv, Command, Env, Value, WriteKeys, parse_integer, text};
use tamis_formats::{PayloadError, RedisValue};
use tamis_resp::Reply;

use crate::decoding::{Decoded, NotDecoded, decode};
use crate::handlers::{Done, keys, syntax_error};
use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::server::SharedState;
use crate::session::{Session, at_present};

pub(super) fn dump(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    keys.read(argv[1], env.now_millis, |value| {
        match env.check_reply(value.map_or(0, Value::longest_reply_bytes)) {
            Ok(()) => value.map_or(Reply::Null, dumped),
            Err(text) => Reply::error(text),
        }
    })
}

/// Dumps a value for a transaction, which holds the keys exclusively. The memory of the payload is
/// counted during the call. No permit is needed: the transaction creates one payload at a time, and
/// no other transaction runs.
pub(super) fn dump_alone(
    server: &SharedState,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Reply {
    match server.reserve_memory(memory_to_dump(argv, env, keys)) {
        Some(_hold) => dump(argv, env, keys),
        None => Reply::error(server::REPLY_MEMORY),
    }
}

/// Returns the memory that dumping a value takes, in bytes: its contents and the payload around
/// them.
fn memory_to_dump(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> u64 {
    let bytes = |value: Option<&Value>| {
        value.map_or(0, |value| value.heap_bytes().max(value.longest_reply_bytes()))
    };
    2 * keys.read(argv[1], env.now_millis, bytes)
}

/// Dumps a value. A separate thread dumps a large one, while other commands use the keys.
pub(super) async fn dump_in_background(session: &Session, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    {
        let keys = session.server.keyspace.shared();
        if !keys.is_large(argv[1], env.now_millis) {
            return dump(argv, env, &keys);
        }
    }
    let _permit = session.server.copies.acquire().await.expect("it is never closed");
    let bytes = memory_to_dump(argv, env, &session.server.keyspace.shared());
    let Some(_hold) = session.server.reserve_memory(bytes) else {
        return Reply::error(server::REPLY_MEMORY);
    };
    let (server, key, now) = (session.server.clone(), argv[1].to_vec(), at_present(env).now_millis);
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
        value => {
            let mut image = Vec::new();
            value.write_image(&mut image).expect("memory takes all");
            RedisValue::Tamis(image)
        }
    };
    Reply::Bulk(value.to_payload())
}

/// Restores a value. Its payload is decoded before the keys are locked.
pub(super) async fn restore_in_background(
    session: &Session,
    command: &Command,
    argv: Argv<'_>,
    env: &Env<'_>,
) -> Reply {
    let server = session.server.clone();
    if let Some(refusal) = restore_refusal(argv, env, &server.keyspace.shared()) {
        return refusal;
    }
    let decoded = decode(&server, command, argv, env).await.expect("it has a payload");
    if let Err(refusal) = decoded {
        return refusal.into_reply();
    }
    let alone = server.keyspace.exclusive_to_change(|leased| leased == argv[1]).await;
    if let Err(refusal) = session.check_change(command, &server.config()) {
        return Reply::error(refusal);
    }
    restore_decoded(&server, argv, &at_present(env), &alone, decoded)
}

/// Returns why a `RESTORE` fails, before its payload is decoded; `None` if it may succeed.
pub(super) fn restore_refusal(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Option<Reply> {
    Options::parse(argv).map_or_else(Some, |options| options.refusal(argv, env, keys))
}

/// Restores a value whose payload was decoded before the keys were locked.
pub(crate) fn restore_decoded(
    server: &SharedState,
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    decoded: Result<Decoded, NotDecoded>,
) -> Reply {
    let options = match Options::parse(argv) {
        Ok(options) => options,
        Err(refusal) => return refusal,
    };
    // Another command may have created the key in the meantime.
    if let Some(refusal) = options.refusal(argv, env, keys) {
        return refusal;
    }
    let value = match decoded {
        Ok(decoded) => decoded.into_value(),
        Err(refusal) => return refusal.into_reply(),
    };
    if !server.has_memory_for(Some(&value)) {
        return Reply::error(server::MEMORY);
    }
    let done = options.place(argv[1], value, env, keys);
    keys::log(server, WriteKeys::Restore, argv, env, keys, &done);
    done.reply
}

/// Returns a function that decodes a payload within the memory that is left now.
pub(crate) fn payload_decoder(
    server: &SharedState,
    env: &Env<'_>,
) -> impl FnOnce(&[u8]) -> Result<Value, NotDecoded> + Send + 'static {
    let limit = Limit { max_bytes: server.memory_left(), now_millis: env.now_millis };
    let max_filter_bytes = env.settings.max_filter_bytes;
    move |payload| decode_payload(payload, max_filter_bytes, Some(limit))
}

/// Restores a value while the keys are locked, for a transaction or the log. `limit` is `None` for
/// the log, which contains only accepted commands.
pub(super) fn restore(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    limit: Option<Limit>,
) -> Done {
    let restored = Options::parse(argv).and_then(|options| {
        if let Some(refusal) = options.refusal(argv, env, keys) {
            return Err(refusal);
        }
        let value = decode_payload(argv[3], env.settings.max_filter_bytes, limit);
        Ok((options, value.map_err(NotDecoded::into_reply)?))
    });
    match restored {
        Ok((options, value)) => options.place(argv[1], value, env, keys),
        Err(refusal) => Done::unchanged(refusal),
    }
}

/// The limits of a value that a client restores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// The memory that is left, in bytes.
    pub max_bytes: u64,
    /// Milliseconds since 1970.
    pub now_millis: u64,
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
struct Options<'w> {
    replaces: bool,
    is_absolute: bool,
    ttl: &'w [u8],
}

impl<'w> Options<'w> {
    fn parse(argv: Argv<'w>) -> Result<Self, Reply> {
        let mut options = Self { replaces: false, is_absolute: false, ttl: argv[2] };
        let mut rest = &argv[4..];
        while let [option, behind @ ..] = rest {
            rest = match (option.to_ascii_uppercase().as_slice(), behind) {
                (b"REPLACE", rest) => {
                    options.replaces = true;
                    rest
                }
                (b"ABSTTL", rest) => {
                    options.is_absolute = true;
                    rest
                }
                // The server does not record when a key was last used.
                (b"IDLETIME" | b"FREQ", [number, rest @ ..]) if parse_integer(number).is_some() => {
                    rest
                }
                _ => return Err(syntax_error()),
            };
        }
        Ok(options)
    }

    /// Returns why the command fails, before its payload is decoded; `None` if it may succeed.
    fn refusal(&self, argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Option<Reply> {
        let is_there = || keys.read(argv[1], env.now_millis, |value| value.is_some());
        if !self.replaces && is_there() {
            return Some(Reply::error(server::BUSY_KEY));
        }
        match parse_integer(self.ttl) {
            None => Some(Reply::error(text::NO_INTEGER)),
            Some(ttl) if ttl < 0 => Some(Reply::error(server::TTL)),
            Some(_) => None,
        }
    }

    /// Sets the value and the expiry time of the key in one step.
    fn place(&self, key: &[u8], value: Value, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Done {
        let ttl = parse_integer(self.ttl).and_then(|ttl| u64::try_from(ttl).ok());
        let now = env.now_millis;
        let expires = match (ttl.unwrap_or(0), self.is_absolute) {
            (0, _) => None,
            (at, true) => Some(at),
            (ttl, false) => Some(now.saturating_add(ttl)),
        };
        // A value that has already expired is not stored.
        if expires.is_none_or(|at| at > now) {
            keys.put(key, now, value, expires);
        } else {
            keys.remove(key, now);
        }
        Done::changed(Reply::ok())
    }
}

/// Decodes a payload. Its strings take no more memory than the limit.
fn decode_payload(
    payload: &[u8],
    max_filter_bytes: u64,
    limit: Option<Limit>,
) -> Result<Value, NotDecoded> {
    let refused = |text| NotDecoded::Refused(Reply::error(text));
    let left_bytes = limit.map_or(u64::MAX, |limit| limit.max_bytes);
    let max_bytes = max_filter_bytes.min(left_bytes);
    let value = match RedisValue::from_payload(payload, max_bytes) {
        Ok(RedisValue::Bloom(filter)) => Value::RedisBloom(Box::new(filter)),
        Ok(RedisValue::Cuckoo(filter)) => Value::RedisCuckoo(Box::new(filter)),
        Ok(RedisValue::String(bytes)) => Value::Bytes(bytes.into()),
        Ok(RedisValue::Tamis(image)) => {
            let read = match limit {
                Some(_) => Value::from_dump(&image),
                None => Value::read_image(&mut &image[..], image.len() as u64),
            };
            read.map_err(|_| refused(server::BAD_DATA))?
        }
        Err(PayloadError::Checksum) => return Err(refused(server::BAD_PAYLOAD)),
        Err(PayloadError::TooLarge) if left_bytes < max_filter_bytes => {
            return Err(NotDecoded::Memory);
        }
        Err(_) => return Err(refused(server::BAD_DATA)),
    };
    if value.heap_bytes() > left_bytes {
        return Err(NotDecoded::Memory);
    }
    match limit {
        Some(limit) if value.is_ahead(limit.now_millis) => Err(refused(text::tm::CLOCK_AHEAD)),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tamis::{AnyFilter, Hasher, Plan, Span, Window};
    use tamis_commands::Settings;
    use tamis_formats::TamisFile;
    use tamis_redisbloom::{RedisCuckoo, RedisCuckooOptions};
    use tamis_resp::Protocol;

    use super::*;
    use crate::config::Config;
    use crate::keyspace::Keyspace;
    use crate::server::Server;

    fn restore_now(payload: &[u8], now_millis: u64, limit: Option<Limit>) -> (Reply, Keyspace) {
        let keyspace = Keyspace::new();
        let settings = Settings::default();
        let env = Env::new(&settings, Protocol::Resp2, now_millis);
        let argv: [&[u8]; 4] = [b"RESTORE", b"k", b"5000", payload];
        let reply = restore(&argv, &env, &keyspace.exclusive(), limit).reply;
        (reply, keyspace)
    }

    fn payload_of(value: &Value) -> Vec<u8> {
        let mut image = Vec::new();
        value.write_image(&mut image).unwrap();
        RedisValue::Tamis(image).to_payload()
    }

    #[test]
    fn a_restored_key_has_its_time_from_the_first_moment() {
        let payload = RedisValue::String(b"text".to_vec()).to_payload();
        let (reply, keyspace) = restore_now(&payload, 1000, None);
        let keys = keyspace.shared();
        assert_eq!((reply, keys.expires_millis(b"k", 1000)), (Reply::ok(), Some(Some(6000))));
        let first = keys.version(b"k", 1000);
        keys.put(b"k", 1000, Value::Bytes(b"other".to_vec().into()), Some(7000));
        assert_eq!(keys.version(b"k", 1000), first + 1, "value and time are one change");
    }

    #[test]
    fn a_window_whose_clock_is_ahead_is_not_restored() {
        let plan = Plan::window(100, 0.01, 4).unwrap();
        let mut window = Window::new(&plan, Hasher::default(), Span::Millis(4000)).unwrap();
        window.advance(1_000_000);
        window.insert(&1_u64);
        let window = Value::Filter(Box::new(TamisFile::new(AnyFilter::Window(window))));
        let payload = payload_of(&window);
        let at = |now_millis| {
            restore_now(&payload, now_millis, Some(Limit { max_bytes: u64::MAX, now_millis })).0
        };
        assert_eq!(at(900_000), Reply::error(text::tm::CLOCK_AHEAD));
        assert_eq!(at(950_000), Reply::ok(), "clocks differ a little");
        assert_eq!(restore_now(&payload, 10, None).0, Reply::ok(), "the log has what was accepted");
    }

    #[test]
    fn a_header_without_its_bytes_is_no_payload() {
        let options = RedisCuckooOptions { capacity: 1 << 30, ..Default::default() };
        let cuckoo = Value::RedisCuckoo(Box::new(RedisCuckoo::new(&options).unwrap()));
        let payload = payload_of(&cuckoo);
        assert!(payload.len() < 100);
        let limit = Limit { max_bytes: u64::MAX, now_millis: 0 };
        assert_eq!(restore_now(&payload, 0, Some(limit)).0, Reply::error(server::BAD_DATA));
    }

    #[test]
    fn a_payload_is_decoded_before_the_keys_are_taken() {
        let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
        let server = Server::start(config).unwrap();
        let shared = server.shared();
        let address = server.addresses()[0];
        // A command that needs exclusive access to the keys waits for this lock.
        let held = shared.keyspace.shared();
        let (sender, replies) = mpsc::channel();
        let shared = shared.clone();
        std::thread::spawn(move || {
            let client = shared.clients.add(address, address, 0);
            let mut session = Session::new(shared.clone(), client.client.clone());
            let mut out = Vec::new();
            let argv: [&[u8]; 4] = [b"RESTORE", b"k", b"0", b"no payload"];
            crate::server::runtime().block_on(session.run(&[&argv], &mut out));
            sender.send(out).unwrap();
        });
        let reply = replies.recv_timeout(Duration::from_secs(30)).expect("it waits for the keys");
        drop(held);
        assert!(reply.starts_with(b"-ERR DUMP payload version or checksum"));
    }

    #[test]
    fn values_restored_at_the_same_time_fit_in_memory_together() {
        let config = Config {
            port: 0,
            threads: 1,
            append_only: false,
            max_memory_bytes: 300_000,
            ..Config::default()
        };
        let server = Server::start(config).unwrap();
        let shared = server.shared();
        let address = server.addresses()[0];
        let payload = RedisValue::String(vec![b'x'; 200_000]).to_payload();
        // A command that needs exclusive access to the keys waits for this lock.
        let held = shared.keyspace.shared();
        let replies: Vec<Vec<u8>> = std::thread::scope(|threads| {
            let restores = ["a", "b", "c"].map(|key| {
                let (shared, payload) = (shared.clone(), &payload);
                threads.spawn(move || {
                    let client = shared.clients.add(address, address, 0);
                    let mut session = Session::new(shared.clone(), client.client.clone());
                    let mut out = Vec::new();
                    let argv: [&[u8]; 4] = [b"RESTORE", key.as_bytes(), b"0", payload];
                    crate::server::runtime().block_on(session.run(&[&argv], &mut out));
                    out
                })
            });
            // Wait until all payloads are decoded. A slow machine may decode them one after the
            // other, and then rejects the later ones too.
            std::thread::sleep(Duration::from_millis(200));
            drop(held);
            restores.map(|restore| restore.join().unwrap()).into()
        });
        let restored = replies.iter().filter(|reply| **reply == b"+OK\r\n").count();
        assert_eq!(restored, 1, "{replies:?}");
        assert!(shared.used_memory() <= 300_000);
    }
}
