//! Writes a filter under a key that does not exist.

use redis::Value;
use tamis_formats::redisson::config_key;
use tamis_formats::{Format, Rdb, RedisBitmaps};

use crate::arguments::hash_key::random_words;
use crate::exit::Failure;
use crate::filters::redis_key::value::{StoredKind, StoredValue, command};
use crate::filters::redis_url::RedisUrl;

/// Renames the temporary keys to the final keys, unless a final key exists. The arguments are first
/// the temporary keys, then the final keys. Returns the number of the final key that exists, or 0
/// if no final key exists.
const PUBLISH: &str = "\
local count = #KEYS / 2
for i = 1, count do if redis.call('EXISTS', KEYS[count + i]) == 1 then return i end end
for i = 1, count do
redis.call('RENAME', KEYS[i], KEYS[count + i])
redis.call('PERSIST', KEYS[count + i])
end
return 0";

/// The lifetime of a temporary key, in seconds. After this lifetime, the server deletes a value
/// that was not renamed to its final key.
const LIFETIME_SECONDS: &str = "3600";

/// Writes a filter in `format` under a key that does not exist. Other clients see either the whole
/// filter or no filter.
///
/// # Errors
///
/// A message if the key exists. A message with the error of the server or the connection.
pub fn upload(url: RedisUrl, format: &Format, bytes: &[u8]) -> Result<(), Failure> {
    let mut stored = StoredValue::open(url)?;
    stored.check_absent(format)?;
    let key = stored.url.key.clone();
    match format.name {
        "tamis" => {
            stored.check_loads_tamis(&key)?;
            stored.query_once(&key, command(&[b"TM.LOAD", &key, bytes])).map(drop)
        }
        "redisbloom" => {
            stored.query_once(&key, command(&[b"RESTORE", &key, b"0", bytes])).map(drop)
        }
        _ if Rdb::is_one(bytes) => {
            let rdb = Rdb::new(bytes).map_err(|error| stored.failure(error))?;
            let entries: Vec<_> =
                rdb.entries().collect::<Result<_, _>>().map_err(|error| stored.failure(error))?;
            let mut values = Vec::new();
            for entry in entries {
                let value = if entry.type_name() == "string" {
                    entry.string(u64::MAX).map(|it| StoredBytes::String(it.into_owned()))
                } else {
                    entry.fields().map(|it| StoredBytes::Hash(it.into_iter().collect()))
                };
                let value = value.map_err(|error| stored.failure(error))?;
                values.push((entry.key().to_vec(), value));
            }
            write_all(&mut stored, &values)
        }
        _ => write_all(&mut stored, &[(key, StoredBytes::String(bytes.to_vec()))]),
    }
}

/// A value to be written.
enum StoredBytes {
    String(Vec<u8>),
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
}

fn write_all(stored: &mut StoredValue, values: &[(Vec<u8>, StoredBytes)]) -> Result<(), Failure> {
    let [id] = random_words::<1>()?;
    let temporary = |i: usize, key: &[u8]| {
        // The temporary key must be in the same slot as its final key.
        let (start, end) = if key.contains(&b'{') { ("", "") } else { ("{", "}") };
        [start.as_bytes(), key, end.as_bytes(), format!(":tamis-{id:016x}-{i}").as_bytes()].concat()
    };
    let mut publish = command(&[b"EVAL", PUBLISH.as_bytes()]);
    publish.arg(2 * values.len());
    for (i, (key, value)) in values.iter().enumerate() {
        let temporary = temporary(i, key);
        publish.arg(&temporary);
        match value {
            StoredBytes::String(bytes) => {
                let seconds = LIFETIME_SECONDS.as_bytes();
                let set = command(&[b"SET", &temporary, bytes, b"EX", seconds]);
                stored.query(&temporary, set)?;
            }
            StoredBytes::Hash(fields) => {
                let mut set = command(&[b"HSET", &temporary]);
                for (field, value) in fields {
                    set.arg(field).arg(value);
                }
                stored.query(&temporary, set)?;
                let seconds = LIFETIME_SECONDS.as_bytes();
                stored.query(&temporary, command(&[b"EXPIRE", &temporary, seconds]))?;
            }
        }
    }
    values.iter().for_each(|(key, _)| _ = publish.arg(key));
    match stored.query_once(&values[0].0, publish)? {
        Value::Int(0) => Ok(()),
        Value::Int(number) => {
            let number = usize::try_from(number).unwrap_or(1);
            let key = values.get(number - 1).map_or(&b""[..], |(key, _)| key);
            Err(stored.exists(key))
        }
        _ => Err(stored.failure("the server sent no number")),
    }
}

impl StoredValue {
    /// Rejects a key that exists, or a key that cannot store a filter in `format`.
    ///
    /// # Errors
    ///
    /// A message that names the key.
    pub fn check_absent(&mut self, format: &Format) -> Result<(), Failure> {
        let key = self.url.key.clone();
        let mut keys = vec![key.clone()];
        if format.name == "redis-bitmaps" {
            self.check_key_of_bitmaps()?;
            keys.push(RedisBitmaps::CURSOR.to_vec());
        }
        if format.name == "redisson" {
            keys.push(config_key(&key));
        }
        for key in keys {
            if self.type_of(&key)? != "none" {
                return Err(self.exists(&key));
            }
        }
        Ok(())
    }

    fn exists(&self, key: &[u8]) -> Failure {
        let key = String::from_utf8_lossy(key);
        match self.kind {
            // `DEL` would not delete the shards of this filter.
            StoredKind::Native => self.failure(format_args!(
                "the key {key} holds a filter of tamis-redis: write to another key"
            )),
            _ => self.failure(format_args!(
                "the key {key} exists: delete it (redis-cli DEL), or write to another key"
            )),
        }
    }

    /// Rejects a server without the command that loads a Tamis file.
    fn check_loads_tamis(&mut self, key: &[u8]) -> Result<(), Failure> {
        match self.nodes.query(key, command(&[b"TM.LOAD"])) {
            Err(error) if error.is_unknown_command() => Err(self.failure(
                "the server cannot load a file of Tamis: use 'tamis serve', or a Redis server with \
                 the module of Tamis",
            )),
            _ => Ok(()),
        }
    }
}
