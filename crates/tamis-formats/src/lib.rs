//! Bytes to filters and back: one format a file.
//!
//! | format | page | type |
//! | --- | --- | --- |
//! | Tamis's own | `docs/formats/tamis.md` | [`TamisFile`] |
//! | Guava's `BloomFilter` | `docs/formats/guava.md` | [`FlatFilter`], [`guava`] |
//! | RedisBloom's filters, from `DUMP`, snapshots and chunks | `docs/formats/redisbloom.md` | [`tamis::RedisBloom`], [`tamis::RedisCuckoo`] |
//! | `BloomFilterHelper` over a bitmap of Redis | `docs/formats/redis-bitmap.md` | [`FlatFilter`], [`redis_bitmap`] |
//! | `RedisBitmaps`, bitmaps of Redis that grow in number | `docs/formats/redis-bitmaps.md` | [`RedisBitmaps`] |
//! | Redisson's `RBloomFilter` | `docs/formats/redisson.md` | [`FlatFilter`], [`redisson`] |
//! | Redis' snapshots | `docs/formats/rdb.md` | [`Rdb`] |
//! | what Redis' `DUMP` gives of RedisBloom's filters | `docs/formats/redis_payload.md` | [`RedisValue`] |
//!
//! Bytes may come from anyone: decoding never panics, and allocates nothing before the sizes they
//! state were checked against the bytes at hand or the caller's limit.
#![forbid(unsafe_code)]

mod contents;
mod error;
mod flat;
mod format;
mod funnel;
pub mod guava;
mod hash;
mod head;
mod metadata;
mod mitz;
mod modulus;
mod rdb;
mod reader;
pub mod redis_bitmap;
mod redis_bitmaps;
mod redis_payload;
mod redis_string;
mod redisbloom;
pub mod redisson;
mod rule;
mod tamis_file;
mod told;

pub use contents::{ChangeError, Contents, Facts};
pub use error::{DecodeError, DecodeErrorKind, EncodeError, ReadError};
pub use flat::FlatFilter;
pub use format::{Encode, FORMATS, Format, Items, Sniff};
pub use funnel::{Charset, Funnel, ItemError};
pub use metadata::{Metadata, MetadataError};
pub use rdb::{Entry as RdbEntry, Rdb};
pub use redis_bitmaps::RedisBitmaps;
pub use redis_payload::{PayloadError, RedisValue};
pub use rule::Rule;
pub use tamis_file::TamisFile;
pub use told::{Fact, Told};
