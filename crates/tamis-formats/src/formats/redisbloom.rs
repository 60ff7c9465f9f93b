//! Filters of RedisBloom: in the result of `DUMP`, in snapshots, and as commands that load chunks. Layout:
//! `docs/formats/redisbloom.md`.

use std::io;

use tamis_redisbloom::{RedisBloom, RedisBloomOptions, RedisCuckoo};

use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::Contents;
use crate::format::{DecodeOptions, Detection, Format, Items, Parameter, Parameters, Sniff};
use crate::formats::redisbloom::payload::{decode_payload, of_value};
use crate::items::Funnel;
use crate::redis::payload::RedisValue;
use crate::redis::rdb::{Rdb, RdbEntry};

mod bloom;
mod commands;
mod cuckoo;
mod insert;
mod payload;

pub use bloom::{redisbloom_rate, redisbloom_rates};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "redisbloom",
    extensions: &["dump", "rdb", "resp"],
    summary: "RedisBloom's Bloom and cuckoo filters: DUMP, snapshots, and chunks as commands",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Bytes),
    parameters: Parameters {
        reading: &[Parameter::Key],
        writing: &[Parameter::Key],
        ..Parameters::NONE
    },
    decode,
    encode,
    create,
    ..Format::BASE
};

fn sniff(bytes: &[u8]) -> Sniff {
    if Rdb::has_magic(bytes) {
        return Rdb::sniff(bytes, is_filter);
    }
    let is_payload =
        bytes.split_first().is_some_and(|(&kind, value)| RedisValue::is_filter(kind, value));
    Sniff::yes(is_payload || commands::is_one(bytes))
}

fn is_filter(entry: &RdbEntry<'_>) -> bool {
    entry.is_filter()
}

fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Contents, DecodeError> {
    if Rdb::has_magic(bytes) {
        let rdb = Rdb::new(bytes)?;
        let entry = rdb.find_key(options, "a filter of RedisBloom", is_filter, |key| key)?;
        return of_value(entry.value()?, |why| entry.refused(format!("is {why}")));
    }
    if bytes.first() == Some(&b'*') {
        return commands::decode(bytes, options);
    }
    decode_payload(bytes)
}

/// Writes the payload of `RESTORE`. If the options have a key, writes the commands that load the filter in chunks.
fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let value = if let Some(filter) = contents.downcast_ref::<RedisBloom>() {
        if let Some(key) = &options.key {
            return commands::write_bloom(filter, key, out);
        }
        RedisValue::Bloom(filter.clone())
    } else if let Some(filter) = contents.downcast_ref::<RedisCuckoo>() {
        if let Some(key) = &options.key {
            return commands::write_cuckoo(filter, key, out);
        }
        RedisValue::Cuckoo(filter.clone())
    } else if let Some(image) = contents.server_image() {
        if options.key.is_some() {
            return Err(EncodeError::refused(
                "a filter of a Tamis server is written as the result of DUMP: leave the key out",
            ));
        }
        RedisValue::Tamis(image)
    } else {
        return Err(EncodeError::needs_items("RedisBloom cannot store this kind of filter"));
    };
    Ok(out.write_all(&value.to_payload())?)
}

/// Creates an empty filter as `BF.RESERVE key rate items` does.
fn create(options: &DecodeOptions) -> Result<Contents, CreateError> {
    let (capacity, rate) = options.plan()?;
    let options = RedisBloomOptions { capacity, rate, ..RedisBloomOptions::default() };
    let filter =
        RedisBloom::new(&options).map_err(|error| CreateError::refused(error.to_string()))?;
    Ok(Contents::new(filter))
}

/// Returns the image of a filter that only a Tamis server supports. The image is in the result of `DUMP`, or in a
/// snapshot under the key in the options. Returns `None` if the bytes contain no image of a Tamis server.
///
/// The crate `tamis-commands` decodes the image.
#[must_use]
pub fn server_image(bytes: &[u8], options: &DecodeOptions) -> Option<Vec<u8>> {
    let value = if Rdb::has_magic(bytes) {
        let rdb = Rdb::new(bytes).ok()?;
        let entry = rdb.find_key(options, "a filter of RedisBloom", is_filter, |key| key).ok()?;
        entry.is_of_tamis().then(|| entry.value().ok())?
    } else {
        payload::is_of_tamis(bytes).then(|| payload::value(bytes).ok())?
    };
    if let Some(RedisValue::Tamis(image)) = value { Some(image) } else { None }
}

/// Tests whether bytes start with a command that loads a filter under a key: `BF.LOADCHUNK`, `CF.LOADCHUNK` or
/// `RESTORE`.
#[must_use]
pub fn is_load_command(bytes: &[u8]) -> bool {
    commands::is_one(bytes)
}
