//! Reads the filter under a key, for each kind of value that can store a filter.
//!
//! | the key holds | read by |
//! | --- | --- |
//! | a filter of `tamis serve` or the module | `TM.DUMP`, or `DUMP` if it has grown |
//! | a filter of RedisBloom | `DUMP` |
//! | the metadata of a filter of `tamis-redis` | `GET` of each shard |
//! | a bitmap with the settings of Redisson beside it | `HMGET` and `GET` in one transaction |
//! | another string | `GET`, and the format of the settings |

use tamis::AnyFilter;
use tamis_commands::Value;
use tamis_formats::redisson::config_key;
use tamis_formats::{
    Contents, DecodeOptions, Format, Funnel, Items, PayloadError, RedisValue, SnapshotValue,
    TamisFile, write_snapshot,
};
use tamis_redis::RedisCopyBuilder;
use tamis_resp::Reply;

use crate::errors::redis_error::RedisSourceError;
use crate::ids::base::Base;
use crate::kinds::redis::connection::IsStopped;
use crate::kinds::redis::copied::{Copied, Grown};
use crate::kinds::redis::options::RedisOptions;
use crate::kinds::redis::watch::Watch;

/// The prefix of the metadata of `tamis-redis`.
const NATIVE: &[u8] = b"tamis-redis ";

/// The maximum size of the metadata of `tamis-redis`, and of the settings of Redisson, in bytes.
const MAX_SETTINGS: u64 = 32 << 10;

/// The fields of the settings of Redisson.
const SETTINGS: [&str; 4] = ["size", "hashIterations", "expectedInsertions", "falseProbability"];

/// Watches the key of a filter and reads it.
pub(super) fn read(
    watch: &mut Watch,
    key: &[u8],
    options: &RedisOptions,
    is_stopped: IsStopped<'_>,
) -> Result<Base, RedisSourceError> {
    Reading { watch, key, options, is_stopped }.read()
}

struct Reading<'v> {
    watch: &'v mut Watch,
    key: &'v [u8],
    options: &'v RedisOptions,
    is_stopped: IsStopped<'v>,
}

impl Reading<'_> {
    fn read(mut self) -> Result<Base, RedisSourceError> {
        let config = config_key(self.key);
        self.watch.watch(vec![self.key.to_vec()], self.is_stopped)?;
        match &*self.type_of(self.key)? {
            "none" => Err(RedisSourceError::NoKey),
            "string" => {
                let range: [&[u8]; 4] = [b"GETRANGE", self.key, b"0", b"11"];
                let start = self.value(&range, MAX_SETTINGS)?.unwrap_or_default();
                if start == NATIVE {
                    return self.native();
                }
                if self.options.format.is_none() && self.type_of(&config)? == "hash" {
                    self.watch.watch(vec![config.clone()], self.is_stopped)?;
                    return self.redisson(&config);
                }
                let format = self.options.format.ok_or(RedisSourceError::NoFormat)?;
                let bytes = self.value(&[b"GET", self.key], self.options.max_bytes)?;
                self.decode(format, &bytes.ok_or(RedisSourceError::NoKey)?)
            }
            kind @ ("list" | "set" | "zset" | "hash" | "stream") => {
                Err(RedisSourceError::OtherType(kind.to_owned()))
            }
            _ => self.dump(),
        }
    }

    fn type_of(&mut self, key: &[u8]) -> Result<String, RedisSourceError> {
        match self.watch.reader().call(&[b"TYPE", key], self.is_stopped)? {
            Reply::Simple(kind) => Ok(kind.chars().filter(|it| !it.is_control()).collect()),
            _ => Err(RedisSourceError::Unexpected("a type")),
        }
    }

    fn value(
        &mut self,
        argv: &[&[u8]],
        max_bytes: u64,
    ) -> Result<Option<Vec<u8>>, RedisSourceError> {
        self.watch.reader().value(argv, max_bytes, self.is_stopped)
    }

    /// Reads a filter of a Redis module or of `tamis serve`.
    fn dump(&mut self) -> Result<Base, RedisSourceError> {
        let max_bytes = self.options.max_bytes;
        match self.value(&[b"TM.DUMP", self.key], max_bytes) {
            Ok(Some(bytes)) => return tamis(TamisFile::decode(&bytes)?.filter),
            Ok(None) => return Err(RedisSourceError::NoKey),
            // `TM.DUMP` fails on RedisBloom, which does not have the command. `TM.DUMP` also fails on Tamis for a
            // filter with the layout of RedisBloom.
            Err(RedisSourceError::Server(_)) => {}
            Err(error) => return Err(error),
        }
        let bytes = self.value(&[b"DUMP", self.key], max_bytes)?.ok_or(RedisSourceError::NoKey)?;
        // The limit applies to the size after decompression.
        match RedisValue::from_payload(&bytes, max_bytes)? {
            RedisValue::Bloom(filter) => Ok(self.copied(Contents::new(filter))),
            RedisValue::Cuckoo(filter) => Ok(self.copied(Contents::new(filter))),
            // The value is a Tamis image if `TM.DUMP` is not allowed, or if the filter has grown beyond its
            // reservation.
            RedisValue::Tamis(image) => of_image(&image, max_bytes),
            RedisValue::String(_) => Err(RedisSourceError::NoFormat),
        }
    }

    /// Returns a copy of a filter whose items are arbitrary bytes.
    fn copied(&self, contents: Contents) -> Base {
        let funnel = self.options.funnel.unwrap_or(Funnel::Bytes);
        Base::foreign(Box::new(Copied::new(contents, funnel)))
    }

    /// Reads a filter of `tamis-redis`.
    fn native(&mut self) -> Result<Base, RedisSourceError> {
        let metadata = self.value(&[b"GET", self.key], MAX_SETTINGS)?;
        let metadata = metadata.ok_or(RedisSourceError::NoKey)?;
        let mut builder = RedisCopyBuilder::new(self.key, &metadata)?;
        // Adding a layer changes the first layer of its shard, so the watch on the first layers also detects new
        // layers.
        let keys = (0..builder.shards()).map(|shard| builder.key(shard, 0)).collect();
        self.watch.watch(keys, self.is_stopped)?;
        let mut left = self.options.max_bytes;
        for shard in 0..builder.shards() {
            for layer in 0.. {
                let key = builder.key(shard, layer);
                if layer > 0 {
                    self.watch.watch(vec![key.clone()], self.is_stopped)?;
                }
                // The size of a layer is known in advance, so the reader rejects a longer string.
                let bytes = builder.layer_bytes(layer);
                if bytes > left {
                    return Err(RedisSourceError::TooLarge { max_bytes: self.options.max_bytes });
                }
                left -= bytes;
                let string = self.value(&[b"GET", &key], bytes)?;
                if !builder.add(string)? {
                    break;
                }
            }
        }
        Ok(Base::foreign(Box::new(builder.finish()?)))
    }

    /// Reads a filter of Redisson: its settings and its bitmap, in one transaction.
    fn redisson(&mut self, config: &[u8]) -> Result<Base, RedisSourceError> {
        let (is_stopped, key) = (self.is_stopped, self.key);
        let reader = self.watch.reader();
        let mut get: Vec<&[u8]> = vec![b"HMGET", config];
        get.extend(SETTINGS.iter().map(|field| field.as_bytes()));
        reader.send(&[b"MULTI"])?;
        reader.send(&get)?;
        reader.send(&[b"GET", key])?;
        reader.send(&[b"EXEC"])?;
        for _ in 0..3 {
            reader.reply(is_stopped)?;
        }
        if reader.array(is_stopped)? != Some(2) {
            return Err(RedisSourceError::Unexpected("two replies to EXEC"));
        }
        let Reply::Array(values) = reader.reply(is_stopped)? else {
            return Err(RedisSourceError::Unexpected("the settings of the filter"));
        };
        let bits = reader.receive_value(self.options.max_bytes, is_stopped)?;
        let bits = bits.ok_or(RedisSourceError::NoKey)?;
        let text = |reply: Reply| match reply {
            Reply::Bulk(bytes) => String::from_utf8(bytes).ok(),
            _ => None,
        };
        let fields = SETTINGS.into_iter().zip(values);
        let fields = fields.filter_map(|(name, value)| Some((name, text(value)?))).collect();
        let values = vec![
            (config.to_vec(), SnapshotValue::Hash(fields)),
            (self.key.to_vec(), SnapshotValue::String(bits)),
        ];
        let mut snapshot = Vec::new();
        write_snapshot(values, &mut snapshot).expect("writing to memory never fails");
        let format = Format::named("redisson").expect("a row of the table");
        self.decode(format, &snapshot)
    }

    fn decode(&self, format: &Format, bytes: &[u8]) -> Result<Base, RedisSourceError> {
        let options = DecodeOptions {
            items: self.options.items_planned,
            rate: self.options.rate_planned,
            ..DecodeOptions::default()
        };
        let funnel = match (self.options.funnel, format.items) {
            (Some(funnel), _) | (None, Items::Default(funnel)) => funnel,
            (None, Items::Unspecified) => return Err(RedisSourceError::NoFunnel),
        };
        let contents = (format.decode)(bytes, &options)?;
        Ok(Base::foreign(Box::new(Copied::new(contents, funnel))))
    }
}

/// Converts a Tamis filter to a base, unless the filter forgets items.
fn tamis(filter: AnyFilter) -> Result<Base, RedisSourceError> {
    match filter {
        AnyFilter::Window(_) => Err(RedisSourceError::Window),
        filter => Ok(Base::tamis(filter)),
    }
}

/// Decodes the result of `DUMP` for a filter of Tamis.
fn of_image(image: &[u8], max_bytes: u64) -> Result<Base, RedisSourceError> {
    let value = Value::from_dump(image, max_bytes);
    let value = value.map_err(|_| RedisSourceError::Payload(PayloadError::Value))?;
    let value = if let Value::Empty(empty) = value { empty.build() } else { value };
    match value {
        Value::Filter(file) => tamis(file.filter),
        Value::Bloom(filter) => {
            let bytes = image.len() as u64;
            Ok(Base::foreign(Box::new(Grown { filter: *filter, bytes })))
        }
        _ => Err(RedisSourceError::Payload(PayloadError::OtherType)),
    }
}
