//! Reads the value of a key: the type of the value, and its bytes in the form of a file.

use redis::{Cmd, Value};
use tamis_formats::redisson::config_key;
use tamis_formats::{Rdb, RedisBitmaps, SnapshotValue, write_snapshot};
use tamis_redis::{Patience, RedisFilter, RedisItemError, RedisNodes, RedisOpenError};

use crate::arguments::decode_options::DecodeArgs;
use crate::exit::Failure;
use crate::filters::redis_url::{RedisUrl, text_key};

/// The number of bytes of a string that one command reads.
const CHUNK_BYTES: u64 = 4 << 20;

/// The fields of the settings of Redisson.
const SETTINGS: [&str; 4] = ["size", "hashIterations", "expectedInsertions", "falseProbability"];

/// The value under the key of a URL.
pub struct StoredValue {
    /// The URL.
    pub url: RedisUrl,
    /// The connections.
    pub nodes: RedisNodes,
    /// The kind of the value.
    pub kind: StoredKind,
}

/// The kind of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// The key does not exist.
    Nothing,
    /// The metadata of a filter of `tamis-redis`.
    Native,
    /// A filter of Redisson. The bitmap of the filter may not exist yet.
    Redisson,
    /// A string that is neither metadata of `tamis-redis` nor a bitmap with settings of Redisson.
    String,
    /// A filter of a module, with the name of its type.
    Module(String),
    /// A value that is no filter, with the name of its type.
    Other(String),
}

/// Returns the time limits of a connection. A response may take 60 seconds.
pub fn patience() -> Patience {
    Patience { response: std::time::Duration::from_secs(60), ..Patience::default() }
}

/// Returns the failure of a command, without the password.
pub fn failure(url: &RedisUrl, error: &RedisItemError) -> Failure {
    let advice = "give the password in the URL or in REDISCLI_AUTH";
    let text = match error {
        RedisItemError::Server { code, .. } if **code == *"NOAUTH" => {
            format!("the server requires a password: {advice}")
        }
        RedisItemError::Server { code, message, .. } => format!("{code} {message}"),
        RedisItemError::Connection { message } if message.contains("authentication failed") => {
            format!(
                "the server rejects the user or the password: {advice}; if the server has no \
                 password, give none"
            )
        }
        RedisItemError::Connection { message } if message.contains("SELECT is not allowed") => {
            "a cluster has only database 0: remove the number before the key".to_owned()
        }
        RedisItemError::Connection { message } => {
            let reason = message.split(" (os error").next().unwrap_or_default();
            format!("the connection failed: {reason}")
        }
        other => other.to_string(),
    };
    // A server may send several lines, and control codes for a terminal.
    let lines: Vec<&str> =
        text.split(char::is_control).filter(|line| !line.trim().is_empty()).collect();
    Failure::new(format!("{}: {}", url.name, lines.join("; ")))
}

/// Returns the failure to open a filter.
pub fn open_failure(url: &RedisUrl, error: RedisOpenError) -> Failure {
    match error {
        RedisOpenError::Redis(error) => failure(url, &error),
        error => Failure::new(format!("{}: {error}", url.name)),
    }
}

/// Returns a command with these arguments.
pub fn command(argv: &[&[u8]]) -> Cmd {
    let mut command = Cmd::new();
    command.arg(argv);
    command
}

fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) => text,
        Value::Okay => "OK".into(),
        _ => String::new(),
    }
}

impl StoredValue {
    /// Connects to the server of a URL and reads the type of the key.
    ///
    /// # Errors
    ///
    /// A message if no server responds, or if the server rejects a command.
    pub fn open(url: RedisUrl) -> Result<Self, Failure> {
        let failed = |error| failure(&url, &error);
        let nodes = RedisNodes::connect(&url.server, patience()).map_err(failed)?;
        let mut stored = Self { url, nodes, kind: StoredKind::Nothing };
        stored.kind = stored.kind_of_key()?;
        Ok(stored)
    }

    /// Opens the filter of `tamis-redis` under the key.
    ///
    /// # Errors
    ///
    /// A message if the filter cannot be opened.
    pub fn native(self) -> Result<(RedisUrl, RedisFilter<RedisNodes>), Failure> {
        let Self { url, nodes, .. } = self;
        match RedisFilter::open(nodes, text_key(&url)?) {
            Ok(filter) => Ok((url, filter)),
            Err(error) => Err(open_failure(&url, error)),
        }
    }

    fn kind_of_key(&mut self) -> Result<StoredKind, Failure> {
        let key = self.url.key.clone();
        Ok(match &*self.type_of(&key)? {
            "none" if self.has_settings()? => StoredKind::Redisson,
            "none" => StoredKind::Nothing,
            "string" => match self.range(&key, 0, 12)? {
                start if start.starts_with(b"tamis-redis ") => StoredKind::Native,
                _ if self.has_settings()? => StoredKind::Redisson,
                _ => StoredKind::String,
            },
            kind if ["list", "set", "zset", "hash", "stream"].contains(&kind) => {
                StoredKind::Other(kind.to_owned())
            }
            module => StoredKind::Module(module.to_owned()),
        })
    }

    /// Returns the type of the value under a key, or `none`.
    ///
    /// # Errors
    ///
    /// A message with the error of the server or the connection.
    pub fn type_of(&mut self, key: &[u8]) -> Result<String, Failure> {
        self.query(key, command(&[b"TYPE", key])).map(text)
    }

    /// Tests whether Redisson has stored settings for the key.
    fn has_settings(&mut self) -> Result<bool, Failure> {
        let config = config_key(&self.url.key);
        match self.nodes.query(&config, command(&[b"TYPE", &config])) {
            Ok(kind) => Ok(text(kind) == "hash"),
            // The user may access the key, but not the key of the settings.
            Err(RedisItemError::Server { code, .. }) if *code == *"NOPERM" => Ok(false),
            Err(error) => Err(failure(&self.url, &error)),
        }
    }

    /// Runs a command on the node of a key.
    ///
    /// # Errors
    ///
    /// A message with the error of the server or the connection.
    pub fn query(&mut self, key: &[u8], command: Cmd) -> Result<Value, Failure> {
        self.nodes.query(key, command).map_err(|error| failure(&self.url, &error))
    }

    /// Runs a command that must not run twice, on the node of a key.
    ///
    /// # Errors
    ///
    /// A message with the error of the server or the connection.
    pub fn query_once(&mut self, key: &[u8], command: Cmd) -> Result<Value, Failure> {
        self.nodes.query_once(key, command).map_err(|error| failure(&self.url, &error))
    }

    /// Returns the integer reply of a command whose argument is a key.
    ///
    /// # Errors
    ///
    /// A message with the error of the server or the connection.
    pub fn count(&mut self, name: &str, key: &[u8]) -> Result<u64, Failure> {
        match self.query(key, command(&[name.as_bytes(), key]))? {
            Value::Int(count) => Ok(count.unsigned_abs()),
            _ => Err(self.failure("the server sent no number")),
        }
    }

    fn range(&mut self, key: &[u8], start: u64, end: u64) -> Result<Vec<u8>, Failure> {
        let (start, last) = (start.to_string(), (end - 1).to_string());
        let range = command(&[b"GETRANGE", key, start.as_bytes(), last.as_bytes()]);
        match self.query(key, range)? {
            Value::BulkString(bytes) => Ok(bytes),
            _ => Err(self.failure("the server sent no string")),
        }
    }

    /// Creates a failure whose message starts with the name of the URL.
    pub fn failure(&self, what: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{}: {what}", self.url.name))
    }

    /// Returns the failure of a command that needs a filter under the key.
    pub fn not_found(&self) -> Failure {
        match &self.kind {
            StoredKind::Other(kind) => {
                let hint =
                    match self.url.text_key().ok().and_then(|key| key.strip_suffix(":config")) {
                        Some(name) if kind == "hash" => {
                            let name = name.trim_start_matches('{').trim_end_matches('}');
                            format!("; for a filter of Redisson, give the key {name}")
                        }
                        _ => String::new(),
                    };
                self.failure(format_args!("the key holds a {kind}, not a filter{hint}"))
            }
            _ => self.failure("there is no such key; 'tamis build -o' creates a filter"),
        }
    }

    /// Returns the failure for a string whose format the user must name.
    pub fn unknown_format(&self) -> Failure {
        self.failure(
            "the key holds a string, whose bits may have several formats: give one with --format \
             (redis-bitmap, redis-bitmaps, redis-bits, java-bitmap)",
        )
    }

    /// Rejects a key that is not the key of the first bitmap, because the class `RedisBitmaps` uses
    /// fixed keys.
    ///
    /// # Errors
    ///
    /// A message that names the key.
    pub fn check_key_of_bitmaps(&self) -> Result<(), Failure> {
        if self.url.key == RedisBitmaps::bitmap_key(0) {
            return Ok(());
        }
        Err(self.failure(
            "the class RedisBitmaps has the keys cursor, bloomfilter-0, bloomfilter-1, ...: give \
             the key bloomfilter-0",
        ))
    }

    /// Reads a string in chunks. If another client sets bits during the read, the copy contains
    /// some of the new bits. No client clears bits.
    fn string(&mut self, key: &[u8]) -> Result<Vec<u8>, Failure> {
        let len = self.count("STRLEN", key)?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len as usize)
            .map_err(|_| self.failure(format_args!("its {len} bytes do not fit in memory")))?;
        while (bytes.len() as u64) < len {
            let start = bytes.len() as u64;
            let part = self.range(key, start, len.min(start + CHUNK_BYTES))?;
            if part.is_empty() {
                return Err(self.failure("another client shortened the value; try again"));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// Reads a filter of a module, as a Tamis file or as the result of `DUMP`.
    fn dump(&mut self, key: &[u8]) -> Result<Vec<u8>, Failure> {
        if let Ok(Value::BulkString(bytes)) = self.nodes.query(key, command(&[b"TM.DUMP", key])) {
            return Ok(bytes);
        }
        match self.query(key, command(&[b"DUMP", key]))? {
            Value::BulkString(bytes) => Ok(bytes),
            _ => Err(self.not_found()),
        }
    }

    /// Returns Redisson's settings and the bitmap as a snapshot.
    fn redisson(&mut self) -> Result<Vec<(Vec<u8>, SnapshotValue)>, Failure> {
        let key = self.url.key.clone();
        let config = config_key(&key);
        let mut get = command(&[b"HMGET", &config]);
        get.arg(&SETTINGS);
        let Value::Array(values) = self.query(&config, get)? else {
            return Err(self.failure("the server sent no settings"));
        };
        let fields = SETTINGS.into_iter().zip(values.into_iter().map(text));
        let settings = SnapshotValue::Hash(fields.filter(|(_, it)| !it.is_empty()).collect());
        let bits = self.string(&key)?;
        let bitmap = (!bits.is_empty()).then_some((key, SnapshotValue::String(bits)));
        Ok([(config, settings)].into_iter().chain(bitmap).collect())
    }

    /// Returns the cursor and the bitmaps of the class `RedisBitmaps` as a snapshot.
    fn bitmaps(&mut self) -> Result<Vec<(Vec<u8>, SnapshotValue)>, Failure> {
        self.check_key_of_bitmaps()?;
        let cursor = self.string(RedisBitmaps::CURSOR)?;
        let cursor = if cursor.is_empty() { b"0".to_vec() } else { cursor };
        let number = std::str::from_utf8(&cursor).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(number) = number else {
            return Err(self.failure("the key cursor holds no number"));
        };
        let mut values = vec![(RedisBitmaps::CURSOR.to_vec(), SnapshotValue::String(cursor))];
        for number in 0..=number {
            let key = RedisBitmaps::bitmap_key(number);
            let bits = self.string(&key)?;
            if bits.is_empty() {
                let key = String::from_utf8_lossy(&key);
                return Err(self.failure(format_args!(
                    "the key {key} is missing, and the cursor is {number}: its items are lost"
                )));
            }
            values.push((key, SnapshotValue::String(bits)));
        }
        Ok(values)
    }
}

/// Reads the filter under a key as the bytes of a file: a string, a snapshot of several keys, or
/// the result of `DUMP`.
///
/// # Errors
///
/// A message if there is no filter, or if the filter cannot be stored as a file.
pub fn download(url: RedisUrl, decode: &DecodeArgs) -> Result<Vec<u8>, Failure> {
    let mut stored = StoredValue::open(url)?;
    let key = stored.url.key.clone();
    let values = match (&stored.kind, decode.format.as_deref()) {
        (StoredKind::Native, _) => {
            return Err(stored.failure(
                "a filter of tamis-redis cannot be written to a file, and no other format places its \
                 bits in the same way: build a filter from the items",
            ));
        }
        (StoredKind::Redisson, None | Some("redisson")) => stored.redisson()?,
        (StoredKind::String, Some("redis-bitmaps")) => stored.bitmaps()?,
        (StoredKind::String, None) => return Err(stored.unknown_format()),
        (StoredKind::Redisson | StoredKind::String, _) => return stored.string(&key),
        (StoredKind::Module(_), _) => return stored.dump(&key),
        (StoredKind::Nothing | StoredKind::Other(_), _) => return Err(stored.not_found()),
    };
    let mut snapshot = Vec::new();
    write_snapshot(values, &mut snapshot).expect("writing to memory never fails");
    Ok(snapshot)
}

/// Returns the planned number of items and the planned rate in the settings of a snapshot of
/// Redisson.
pub fn redisson_plan(snapshot: &[u8]) -> Option<(u64, f64)> {
    let rdb = Rdb::is_one(snapshot).then(|| Rdb::new(snapshot).ok())??;
    let settings = rdb.entries().flatten().find(|entry| entry.type_name() == "hash")?;
    let fields = settings.fields().ok()?;
    let text = |name: &str| std::str::from_utf8(fields.get(name.as_bytes())?).ok();
    Some((text(SETTINGS[2])?.parse().ok()?, text(SETTINGS[3])?.parse().ok()?))
}
