//! `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`

use tamis_commands::text::server;
use tamis_commands::{Argv, Env, MAX_STRING_BYTES, Value, parse_integer, text};
use tamis_formats::{PayloadError, RedisValue};
use tamis_resp::Reply;

use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::session::write_keys::outcome::WriteResult;

/// Returns the error of a `RESTORE` before its payload is decoded. Returns `None` if the command
/// may succeed.
pub(crate) fn restore_refusal(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> Option<Reply> {
    RestoreOptions::parse(argv).map_or_else(Some, |options| options.refusal(argv, env, keys))
}

/// Restores a value while the keys are locked, for a transaction.
pub(super) fn restore(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    limit: Limit,
) -> WriteResult {
    let options = RestoreOptions::parse(argv)?;
    if let Some(refusal) = options.refusal(argv, env, keys) {
        return Err(refusal);
    }
    let value = decode_payload(argv[3], env.settings.max_filter_bytes, limit);
    options.place(argv[1], value.map_err(NotDecoded::into_reply)?, env, keys)
}

/// The limits of a value that a client restores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// The remaining memory under `maxmemory`, in bytes.
    pub max_bytes: u64,
    /// The current time, in milliseconds since 1970.
    pub now_millis: u64,
}

/// The options in `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`.
pub(crate) struct RestoreOptions<'w> {
    replaces: bool,
    is_absolute: bool,
    ttl: &'w [u8],
}

impl<'w> RestoreOptions<'w> {
    pub fn parse(argv: Argv<'w>) -> Result<Self, Reply> {
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
                // The server does not record the last access to a key, so the options `IDLETIME`
                // and `FREQ` have no effect.
                (b"IDLETIME" | b"FREQ", [number, rest @ ..]) if parse_integer(number).is_some() => {
                    rest
                }
                _ => return Err(Reply::error(text::SYNTAX)),
            };
        }
        Ok(options)
    }

    /// Returns the error of the command before its payload is decoded. Returns `None` if the
    /// command may succeed.
    pub fn refusal(&self, argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Option<Reply> {
        if !self.replaces && keys.exists(argv[1], env.now_millis) {
            return Some(Reply::error(server::BUSY_KEY));
        }
        match parse_integer(self.ttl) {
            None => Some(Reply::error(text::NO_INTEGER)),
            Some(ttl) if ttl < 0 => Some(Reply::error(server::TTL)),
            Some(_) => None,
        }
    }

    /// Sets the value and the expiry time of the key in one step.
    pub fn place(
        &self,
        key: &[u8],
        value: Value,
        env: &Env<'_>,
        keys: &KeyspaceRef<'_>,
    ) -> WriteResult {
        let ttl = parse_integer(self.ttl).and_then(|ttl| u64::try_from(ttl).ok());
        let now = env.now_millis;
        let expires = match (ttl.unwrap_or(0), self.is_absolute) {
            (0, _) => None,
            (at, true) => Some(at),
            (ttl, false) => Some(now.saturating_add(ttl)),
        };
        // Do not store a value that has already expired.
        if expires.is_none_or(|at| at > now) {
            keys.put(key, now, value, expires);
        } else {
            keys.remove(key, now);
        }
        Ok(Reply::ok())
    }
}

/// Decodes a payload. The decoded strings take at most the memory of the limit. The log contains
/// the decoded value in serialized form, so a replay never decodes a payload of a client.
pub(crate) fn decode_payload(
    payload: &[u8],
    max_filter_bytes: u64,
    limit: Limit,
) -> Result<Value, NotDecoded> {
    let refused = |text| NotDecoded::Refused(Reply::error(text));
    let left_bytes = limit.max_bytes;
    let max_bytes = max_filter_bytes.min(left_bytes);
    let value = match RedisValue::from_payload(payload, max_bytes) {
        Ok(RedisValue::Bloom(filter)) => Value::RedisBloom(Box::new(filter)),
        Ok(RedisValue::Cuckoo(filter)) => Value::RedisCuckoo(Box::new(filter)),
        // A server that starts rejects a log with a string that is longer than this limit, so such
        // a string must not be restored.
        Ok(RedisValue::String(bytes)) if bytes.len() > MAX_STRING_BYTES => {
            return Err(refused(server::BAD_DATA));
        }
        Ok(RedisValue::String(bytes)) => Value::Bytes(bytes.into()),
        Ok(RedisValue::Tamis(image)) => {
            let read = Value::read_dump(&mut &image[..], image.len() as u64, None);
            read.map_err(|_| refused(server::BAD_DATA))?
        }
        Err(PayloadError::Checksum | PayloadError::Newer { .. }) => {
            return Err(refused(server::BAD_PAYLOAD));
        }
        Err(PayloadError::TooLarge) if left_bytes < max_filter_bytes => {
            return Err(NotDecoded::Memory);
        }
        Err(_) => return Err(refused(server::BAD_DATA)),
    };
    if value.heap_bytes() > left_bytes {
        return Err(NotDecoded::Memory);
    }
    if value.is_ahead(limit.now_millis) {
        return Err(refused(text::tm::CLOCK_AHEAD));
    }
    Ok(value)
}

/// The reason why the data of a command was not decoded.
#[derive(Debug)]
pub(crate) enum NotDecoded {
    /// The server has not enough memory for the value.
    Memory,
    /// The data is invalid or not allowed.
    Refused(Reply),
}

impl NotDecoded {
    /// Converts the reason for the failed decoding to the error reply of the command.
    pub fn into_reply(self) -> Reply {
        match self {
            NotDecoded::Memory => Reply::error(text::server::MEMORY),
            NotDecoded::Refused(reply) => reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis::{AnyFilter, Hasher, Plan, Span, Window};
    use tamis_commands::Settings;
    use tamis_formats::TamisFile;
    use tamis_redisbloom::{RedisCuckoo, RedisCuckooOptions};
    use tamis_resp::Protocol;

    use super::*;
    use crate::keyspace::Keyspace;

    fn restore_now(payload: &[u8], now_millis: u64) -> (Reply, Keyspace) {
        let keyspace = Keyspace::new();
        let settings = Settings::default();
        let env = Env::new(&settings, Protocol::Resp2, now_millis);
        let argv: [&[u8]; 4] = [b"RESTORE", b"k", b"5000", payload];
        let limit = Limit { max_bytes: u64::MAX, now_millis };
        let (Ok(reply) | Err(reply)) = restore(&argv, &env, &keyspace.exclusive(), limit);
        (reply, keyspace)
    }

    fn payload_of(value: &Value) -> Vec<u8> {
        RedisValue::Tamis(value.to_image()).to_payload()
    }

    #[test]
    fn a_restored_key_has_its_time_from_the_first_moment() {
        let payload = RedisValue::String(b"text".to_vec()).to_payload();
        let (reply, keyspace) = restore_now(&payload, 1000);
        let keys = keyspace.shared();
        assert_eq!((reply, keys.expires_millis(b"k", 1000)), (Reply::ok(), Some(Some(6000))));
        let first = keys.version(b"k", 1000);
        keys.put(b"k", 1000, Value::Bytes(b"other".to_vec().into()), Some(7000));
        assert_eq!(keys.version(b"k", 1000), first + 1, "value and time are one change");
    }

    #[test]
    fn a_string_that_no_image_holds_is_not_restored() {
        let long = RedisValue::String(vec![0; MAX_STRING_BYTES + 1]).to_payload();
        let (reply, _) = restore_now(&long, 1000);
        assert_eq!(reply, Reply::error(server::BAD_DATA));
    }

    #[test]
    fn a_window_whose_clock_is_ahead_is_not_restored() {
        let plan = Plan::window(100, 0.01, 4).unwrap();
        let mut window = Window::from_plan(&plan, Hasher::default(), Span::Millis(4000)).unwrap();
        window.advance(1_000_000);
        window.insert(&1_u64);
        let window = Value::Filter(Box::new(TamisFile::new(AnyFilter::Window(window))));
        let payload = payload_of(&window);
        let at = |now_millis| restore_now(&payload, now_millis).0;
        assert_eq!(at(900_000), Reply::error(text::tm::CLOCK_AHEAD));
        assert_eq!(at(950_000), Reply::ok(), "clocks differ a little");
    }

    #[test]
    fn a_header_without_its_bytes_is_no_payload() {
        let options = RedisCuckooOptions { capacity: 1 << 30, ..Default::default() };
        let cuckoo = Value::RedisCuckoo(Box::new(RedisCuckoo::new(&options).unwrap()));
        let payload = payload_of(&cuckoo);
        assert!(payload.len() < 100);
        assert_eq!(restore_now(&payload, 0).0, Reply::error(server::BAD_DATA));
    }
}
