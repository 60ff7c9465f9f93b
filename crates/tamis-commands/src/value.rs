//! What a key holds.

use tamis::{AnyFilter, Filter as _, RedisBloom, RedisCuckoo};
use tamis_formats::TamisFile;

use crate::arriving::Arriving;
use crate::bitmap::SparseBytes;
use crate::expandable::Expandable;
use crate::text::{self, Text};

/// What a key holds.
#[derive(Debug)]
#[non_exhaustive]
pub enum Value {
    /// What `BF.RESERVE` builds.
    Bloom(Box<Expandable>),
    /// RedisBloom's scaling Bloom filter.
    RedisBloom(Box<RedisBloom>),
    /// RedisBloom's cuckoo filter.
    RedisCuckoo(Box<RedisCuckoo>),
    /// What `TM.RESERVE` makes and `TM.LOAD` brings: a filter of any kind, with all that its file says of it.
    Filter(Box<TamisFile>),
    /// A string: text, a number or a bitmap.
    Bytes(SparseBytes),
    /// What `BF.LOADCHUNK` has brought so far.
    Arriving(Box<Arriving>),
}

impl Value {
    /// Returns what `TYPE` answers.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            // As RedisBloom names its types: clients look for it.
            Value::Bloom(_) | Value::RedisBloom(_) | Value::Arriving(_) => "MBbloom--",
            Value::RedisCuckoo(_) => "MBbloomCF",
            Value::Filter(_) => "tamis-flt",
            Value::Bytes(_) => "string",
        }
    }

    /// Returns the kind of the filter, as `TM.INFO` and errors name it.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Value::Bloom(_) => "expandable",
            Value::RedisBloom(_) => "redisbloom",
            Value::RedisCuckoo(_) => "rediscuckoo",
            Value::Filter(file) => file.filter.plan().kind().name(),
            Value::Bytes(_) => "string",
            Value::Arriving(_) => "arriving",
        }
    }

    /// Returns what `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        "raw"
    }

    /// Returns the memory of the value, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Value::Bloom(filter) => filter.memory_bytes(),
            Value::RedisBloom(filter) => filter.size_bytes(),
            Value::RedisCuckoo(filter) => filter.size_bytes(),
            Value::Filter(file) => match &file.filter {
                AnyFilter::Growing(filter) => filter.memory_bytes(),
                filter => filter.len_words() * 8,
            },
            Value::Bytes(bytes) => bytes.memory_bytes(),
            Value::Arriving(part) => part.bytes().len() as u64,
        }
    }
}

/// Returns the string of a key, if it holds something.
pub(crate) fn bytes(value: Option<&Value>) -> Result<Option<&SparseBytes>, Text> {
    match value {
        None => Ok(None),
        Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
        Some(_) => Err(text::WRONG_TYPE),
    }
}

/// Returns the string of a key, an empty one if it held nothing.
pub(crate) fn bytes_or_new(value: &mut Option<Value>) -> Result<&mut SparseBytes, Text> {
    match value.get_or_insert_with(|| Value::Bytes(SparseBytes::default())) {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(text::WRONG_TYPE),
    }
}
