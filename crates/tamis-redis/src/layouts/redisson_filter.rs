//! Redisson's `RBloomFilter`: a bitmap, and a Redis hash with the settings of the filter.

use redis::Value;
use tamis_formats::CreateError as RedisPlanError;
use tamis_formats::redisson::{Redisson, config_key};

use crate::error::{Difference, RedisItemError, RedisOpenError, printable};
use crate::layouts::bits::{self, MAX_BITS, MAX_SCRIPT_BITS};
use crate::transport::blocking::{Transport, ask};
use crate::transport::request::{NodeReply, NodeRequest, integer, value};

/// Stores the settings unless the key of the settings exists. The script replies with 1 if the
/// script stored the settings.
const TRY_INIT: &str = "\
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'size', ARGV[1], 'hashIterations', ARGV[2], \
'expectedInsertions', ARGV[3], 'falseProbability', ARGV[4])
return 1";

/// Sets bits if the settings in Redis equal the settings of the client. The keys are the settings
/// and the bitmap. The arguments are the size, the number of probes, and the arguments
/// of `BITFIELD`.
const CHECKED_SET: &str = "\
local config = redis.call('HMGET', KEYS[1], 'size', 'hashIterations')
if not config[1] then return redis.error_reply('TAMISNOCONFIG no settings') end
if config[1] ~= ARGV[1] or config[2] ~= ARGV[2] then \
return redis.error_reply('TAMISCONFIG ' .. config[1] .. ' ' .. config[2]) end
return redis.call('BITFIELD', KEYS[2], unpack(ARGV, 3))";

/// The filter of a Java program with Redisson. The bits in Redis are the same as with Redisson.
///
/// An item consists of the bytes that the codec writes for an object. A program can compute the
/// bytes of `StringCodec`, `LongCodec`, `ByteArrayCodec` and the JSON codecs. This crate cannot
/// compute the bytes of Redisson's default codec.
///
/// Every insert, lookup and count compares the settings in Redis with the settings of the client,
/// as Redisson does. If the settings differ, an insert changes nothing. If Redis loses the bitmap
/// and keeps the settings, the filter looks empty.
///
/// All methods take `&self`. Calls at the same time behave as the calls of several clients.
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedissonFilter, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let users = RedissonFilter::open(node, "users")?;
/// assert_eq!(users.contains_each(&["alice"]), [Ok(true)]);
/// println!("about {} items", users.count()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RedissonFilter<T> {
    transport: T,
    name: Vec<u8>,
    expected: u64,
    rate: f64,
    rule: Redisson,
}

impl<T: Transport> RedissonFilter<T> {
    /// Creates the settings, like `tryInit` of Redisson. Returns the filter, and true if the
    /// settings did not exist before the call.
    ///
    /// # Errors
    ///
    /// [`RedisOpenError::Differs`] if the settings in Redis have another size or another number of
    /// probes; [`RedisOpenError::Plan`] if Redisson refuses the plan; [`RedisOpenError::Redis`] if
    /// the server or the connection fails.
    pub fn try_init(
        transport: T,
        name: &str,
        expected_insertions: u64,
        rate: f64,
    ) -> Result<(Self, bool), RedisOpenError> {
        let rule = Redisson::plan(expected_insertions, rate).map_err(|e| plan_error(&e))?;
        let config = config_key(name.as_bytes());
        let mut request = NodeRequest::script(TRY_INIT, std::slice::from_ref(&config));
        let command = request.command.arg(rule.size()).arg(rule.hash_iterations());
        command.arg(expected_insertions).arg(rate.to_string());
        let reply = ask(&transport, request)?;
        let is_created = integer(&config, Ok(reply))? == 1;
        let found = Self::open(transport, name)?;
        let (probes, found_probes) = (rule.hash_iterations(), found.rule.hash_iterations());
        let differences = Difference::all([
            Difference::of("size", &rule.size(), &found.rule.size()),
            Difference::of("hashIterations", &probes, &found_probes),
        ]);
        RedisOpenError::check(name.as_bytes(), differences)?;
        Ok((found, is_created))
    }

    /// Opens a filter. Reads the settings of the filter from Redis.
    ///
    /// # Errors
    ///
    /// [`RedisOpenError::NotFound`] if Redis has no settings; Redisson calls this filter not
    /// initialized. [`RedisOpenError::Differs`] if the stored size or number of probes does not
    /// match the stored items and rate. [`RedisOpenError::Plan`] if Redisson refuses the stored
    /// items and rate. [`RedisOpenError::Redis`] if the server or the connection fails.
    pub fn open(transport: T, name: &str) -> Result<Self, RedisOpenError> {
        let config = config_key(name.as_bytes());
        let mut request = NodeRequest::new("HMGET", config.clone());
        for field in ["size", "hashIterations", "expectedInsertions", "falseProbability"] {
            request.command.arg(field);
        }
        let Value::Array(fields) = ask(&transport, request)? else {
            return Err(RedisItemError::unexpected(&config, "is not an array").into());
        };
        let texts: Vec<Option<String>> =
            fields.into_iter().map(|field| redis::from_redis_value(field).ok()).collect();
        let not_found = || RedisOpenError::NotFound { name: printable(&config) };
        let field = |i: usize| texts.get(i).cloned().flatten().ok_or_else(not_found);
        let (size, probes) = (field(0)?, field(1)?);
        let (expected, rate) = (field(2)?, field(3)?);
        let (Ok(expected), Ok(rate)) = (expected.parse(), rate.parse()) else {
            return Err(not_found());
        };
        let rule = Redisson::plan(expected, rate).map_err(|e| plan_error(&e))?;
        let differences = Difference::all([
            Difference::of("size", &rule.size().to_string(), &size),
            Difference::of("hashIterations", &rule.hash_iterations().to_string(), &probes),
        ]);
        RedisOpenError::check(name.as_bytes(), differences)?;
        Ok(Self { transport, name: name.into(), expected, rate, rule })
    }

    /// Inserts items. Returns one result for each item, in the order of the items: true if the item
    /// is new. An insert takes one round trip.
    pub fn insert_each<I: AsRef<[u8]>>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, true)
    }

    /// Tests whether each item may be in the filter, in one round trip.
    pub fn contains_each<I: AsRef<[u8]>>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, false)
    }

    /// Estimates the number of items from the number of set bits, like `count` of Redisson. The
    /// server counts the set bits. Returns `u64::MAX` if all bits are set.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the settings changed, or if the server or the connection fails.
    pub fn count(&self) -> Result<u64, RedisItemError> {
        let requests = [self.settings(), NodeRequest::new("BITCOUNT", self.name.clone())];
        let replies = self.transport.send(&requests).into_iter().map(|reply| value(b"", reply));
        let mut replies = replies.collect::<Result<Vec<_>, _>>()?;
        let ones = integer(&self.name, Ok(replies.remove(1)))? as f64;
        self.check(Ok(replies.remove(0)))?;
        let (size, k) = (self.rule.size() as f64, f64::from(self.rule.hash_iterations()));
        Ok((-size / k * (-ones / size).ln_1p()).round() as u64)
    }

    /// Deletes the bitmap and the settings. Returns true if at least one of the two keys existed.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub fn delete(&self) -> Result<bool, RedisItemError> {
        let config = config_key(&self.name);
        let mut request = NodeRequest::new("UNLINK", config.clone());
        request.command.arg(&self.name);
        let reply = ask(&self.transport, request)?;
        Ok(integer(&config, Ok(reply))? > 0)
    }

    /// Returns the planned number of items.
    #[must_use]
    pub fn expected_insertions(&self) -> u64 {
        self.expected
    }

    /// Returns the planned false positive rate.
    #[must_use]
    pub fn false_probability(&self) -> f64 {
        self.rate
    }

    /// Returns `size` and `hashIterations` of the filter.
    #[must_use]
    pub fn rule(&self) -> Redisson {
        self.rule
    }

    fn settings(&self) -> NodeRequest {
        let mut request = NodeRequest::new("HMGET", config_key(&self.name));
        request.command.arg("size").arg("hashIterations");
        request
    }

    /// Compares the settings in Redis with the settings of the client.
    fn check(&self, reply: NodeReply) -> Result<(), RedisItemError> {
        let found: Vec<Option<String>> =
            redis::from_redis_value(value(&config_key(&self.name), reply)?).unwrap_or_default();
        let name = printable(&self.name);
        let (size, probes) =
            (self.rule.size().to_string(), self.rule.hash_iterations().to_string());
        match &found[..] {
            [Some(found_size), Some(found_probes)]
                if (found_size, found_probes) == (&size, &probes) =>
            {
                Ok(())
            }
            [Some(_), Some(_)] => Err(RedisItemError::ConfigChanged { name }),
            _ => Err(RedisItemError::NoFilter { name }),
        }
    }

    fn each<I: AsRef<[u8]>>(
        &self,
        items: &[I],
        is_insert: bool,
    ) -> Vec<Result<bool, RedisItemError>> {
        if items.is_empty() {
            return Vec::new();
        }
        let offsets = |item: &I| self.rule.offsets(item.as_ref()).collect();
        let offsets: Vec<Vec<u64>> = items.iter().map(offsets).collect();
        let chunks = bits::chunks(&offsets, if is_insert { MAX_SCRIPT_BITS } else { MAX_BITS });
        let about = chunks.iter().map(|chunk| &offsets[chunk.clone()]);
        let requests: Vec<NodeRequest> = if is_insert {
            about.map(|offsets| self.checked_set(offsets)).collect()
        } else {
            let reads = about.map(|offsets| bits::read(&self.name, offsets));
            [self.settings()].into_iter().chain(reads).collect()
        };
        let mut replies = self.transport.send(&requests);
        if !is_insert && let Err(error) = self.check(replies.remove(0)) {
            return vec![Err(error); items.len()];
        }
        let results = bits::answers(&self.name, &offsets, chunks, replies, is_insert);
        results.into_iter().map(|result| result.map_err(|error| self.error(error))).collect()
    }

    fn checked_set(&self, offsets: &[Vec<u64>]) -> NodeRequest {
        let keys = [config_key(&self.name), self.name.clone()];
        let mut request = NodeRequest::script(CHECKED_SET, &keys);
        request.command.arg(self.rule.size()).arg(self.rule.hash_iterations());
        bits::append_sets(&mut request, offsets);
        request
    }

    /// Converts the error codes of the script to variants of [`RedisItemError`].
    fn error(&self, error: RedisItemError) -> RedisItemError {
        let name = printable(&self.name);
        match &error {
            RedisItemError::Server { code, .. } if **code == *"TAMISNOCONFIG" => {
                RedisItemError::NoFilter { name }
            }
            RedisItemError::Server { code, .. } if **code == *"TAMISCONFIG" => {
                RedisItemError::ConfigChanged { name }
            }
            _ => error,
        }
    }
}

fn plan_error(error: &RedisPlanError) -> RedisOpenError {
    RedisOpenError::Plan { why: error.to_string() }
}
