//! Bytes to filters and back: one format a file.
//!
//! | format | page | type |
//! | --- | --- | --- |
//! | Tamis's own | `docs/formats/tamis.md` | [`TamisFile`] |
//! | Guava's `BloomFilter` | `docs/formats/guava.md` | [`FlatFilter`], [`guava`] |
//! | the Bloom filter of a Parquet column | `docs/formats/parquet.md` | [`tamis::Bloom`], [`parquet`] |
//! | Spark's `BloomFilter` | `docs/formats/spark.md` | [`FlatFilter`], [`spark`] |
//! | Cassandra's `Filter.db` | `docs/formats/cassandra.md` | [`FlatFilter`], [`cassandra`] |
//! | Hadoop's `BloomFilter` | `docs/formats/hadoop.md` | [`FlatFilter`], [`hadoop`] |
//! | Hadoop's `CountingBloomFilter` | `docs/formats/hadoop-counting.md` | [`hadoop::CountingFilter`] |
//! | RocksDB's full filter block | `docs/formats/rocksdb.md` | [`FlatFilter`], [`rocksdb`] |
//! | LevelDB's filter block | `docs/formats/leveldb.md` | [`leveldb::FilterBlock`] |
//! | what Redis' `DUMP` gives of RedisBloom's filters | `docs/formats/redis_payload.md` | [`RedisValue`] |
//!
//! Bytes may come from anyone: decoding never panics, and allocates nothing before the sizes they
//! state were checked against the bytes at hand or the caller's limit.
#![forbid(unsafe_code)]

pub mod cassandra;
mod contents;
mod error;
mod flat;
mod format;
mod funnel;
pub mod guava;
pub mod hadoop;
mod hash;
mod head;
pub mod leveldb;
mod metadata;
mod mitz;
mod modulus;
pub mod parquet;
mod reader;
mod redis_payload;
pub mod rocksdb;
mod rule;
pub mod spark;
mod tamis_file;
mod told;

pub use contents::{ChangeError, Contents, Facts};
pub use error::{DecodeError, DecodeErrorKind, EncodeError, ReadError};
pub use flat::FlatFilter;
pub use format::{Encode, FORMATS, Format, Items, Sniff};
pub use funnel::{Charset, Funnel, ItemError};
pub use metadata::{Metadata, MetadataError};
pub use redis_payload::{PayloadError, RedisValue};
pub use rule::Rule;
pub use tamis_file::TamisFile;
pub use told::{Fact, Told};
