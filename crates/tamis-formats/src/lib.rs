//! Bytes to filters and back: one format a file.
//!
//! | format | page | type |
//! | --- | --- | --- |
//! | Tamis's own | `docs/formats/tamis.md` | [`TamisFile`] |
//! | Guava's `BloomFilter` | `docs/formats/guava.md` | [`ForeignBloom`], [`guava`] |
//! | the Bloom filter of a Parquet column | `docs/formats/parquet.md` | [`tamis::Bloom`], [`parquet`] |
//! | Spark's `BloomFilter` | `docs/formats/spark.md` | [`ForeignBloom`], [`spark`] |
//! | Cassandra's `Filter.db` | `docs/formats/cassandra.md` | [`ForeignBloom`], [`cassandra`] |
//! | Hadoop's `BloomFilter` | `docs/formats/hadoop.md` | [`ForeignBloom`], [`hadoop`] |
//! | Hadoop's `CountingBloomFilter` | `docs/formats/hadoop-counting.md` | [`hadoop::CountingFilter`] |
//! | Hadoop's `DynamicBloomFilter` | `docs/formats/hadoop-dynamic.md` | [`hadoop::DynamicFilter`] |
//! | Hive's `BloomKFilter` | `docs/formats/hive.md` | [`ForeignBloom`], [`hive`] |
//! | the Bloom filters of an ORC column | `docs/formats/orc.md` | [`orc::RowGroups`] |
//! | RocksDB's full filter block | `docs/formats/rocksdb.md` | [`ForeignBloom`], [`rocksdb`] |
//! | LevelDB's filter block | `docs/formats/leveldb.md` | [`leveldb::FilterBlock`] |
//! | Bitcoin's `filterload` (BIP-37) | `docs/formats/bip37.md` | [`ForeignBloom`], [`bip37`] |
//! | Bitcoin's filters of blocks (BIP-158) | `docs/formats/bip158.md` | [`GolombSet`], [`bip158`] |
//! | RedisBloom's filters, from `DUMP`, snapshots and chunks | `docs/formats/redisbloom.md` | [`tamis::RedisBloom`], [`tamis::RedisCuckoo`] |
//! | `BloomFilterHelper` over a bitmap of Redis | `docs/formats/redis-bitmap.md` | [`ForeignBloom`], [`redis_bitmap`] |
//! | `RedisBitmaps`, bitmaps of Redis that grow in number | `docs/formats/redis-bitmaps.md` | [`RedisBitmaps`] |
//! | Redisson's `RBloomFilter` | `docs/formats/redisson.md` | [`ForeignBloom`], [`redisson`] |
//! | Redis' snapshots | `docs/formats/rdb.md` | [`Rdb`] |
//! | a `byte[]` of Java as a set of integers | `docs/formats/java-bitmap.md` | [`IntegerBitmap`], [`java_bitmap`] |
//! | a string of Redis as a set of integers | `docs/formats/redis-bits.md` | [`IntegerBitmap`], [`redis_bits`] |
//! | `MyBloomFilter` of Java articles | `docs/formats/my-bloom-filter.md` | [`my_bloom_filter`] |
//! | `ByteBufferBloomFilter` of a Java article | `docs/formats/byte-buffer.md` | [`ForeignBloom`], [`byte_buffer`] |
//! | `hashcode(cap, seed)` of an article, in C | `docs/formats/c-hashcode.md` | [`ForeignBloom`], [`c_hashcode`] |
//! | Python's `pybloom_live` | `docs/formats/pybloom-live.md` | [`Layers`], [`pybloom_live`] |
//! | Python's `pybloomfiltermmap` | `docs/formats/pybloomfiltermmap.md` | [`Layers`], [`pybloomfiltermmap`] |
//! | Python's `rbloom` | `docs/formats/rbloom.md` | [`ForeignBloom`], [`rbloom`] |
//! | Java's stream-lib | `docs/formats/stream-lib.md` | [`ForeignBloom`], [`stream_lib`] |
//! | Go's bits-and-blooms | `docs/formats/bits-and-blooms.md` | [`ForeignBloom`], [`bits_and_blooms`] |
//! | Roaring bitmaps, 32 and 64 bits | `docs/formats/roaring.md` | [`roaring`] |
//! | what Redis' `DUMP` gives of RedisBloom's filters | `docs/formats/redis_payload.md` | [`RedisValue`] |
//!
//! Bytes may come from anyone: decoding never panics, and allocates nothing before the sizes they
//! state were checked against the bytes at hand or the caller's limit.
#![forbid(unsafe_code)]

mod answer_each;
pub mod bip158;
pub mod bip37;
mod bit_words;
pub mod bitcoin;
mod bitmap_file;
pub mod bits_and_blooms;
pub mod byte_buffer;
pub mod c_hashcode;
pub mod cassandra;
mod change_error;
mod charset;
mod contents;
mod create_error;
mod decode_error;
mod decode_options;
mod encode_error;
mod filter_info;
mod foreign_bloom;
mod format;
mod format_table;
mod funnel;
mod golomb_set;
pub mod guava;
mod guava_rules;
mod guava_sizing;
pub mod hadoop;
mod hash;
mod header;
pub mod hive;
mod integer_bitmap;
mod integer_keys;
mod item_collector;
pub mod java_bitmap;
mod java_type;
mod layers;
pub mod leveldb;
mod metadata;
mod modulus;
pub mod my_bloom_filter;
pub mod orc;
mod parameter;
pub mod parquet;
mod probe_positions;
mod probe_rule;
mod probing;
pub mod pybloom_live;
mod pybloom_rule;
pub mod pybloomfiltermmap;
pub mod rbloom;
mod rdb;
mod rdb_encoding;
mod reader;
pub mod redis_bitmap;
mod redis_bitmaps;
pub mod redis_bits;
mod redis_payload;
mod redis_string;
mod redisbloom;
pub mod redisson;
pub mod roaring;
pub mod rocksdb;
mod rule;
pub mod spark;
mod stored_filter;
pub mod stream_lib;
mod tamis_file;

pub use change_error::ChangeError;
pub use charset::Charset;
pub use contents::Contents;
pub use create_error::CreateError;
pub use decode_error::{DecodeError, DecodeErrorKind, ReadError};
pub use decode_options::DecodeOptions;
pub use encode_error::EncodeError;
pub use filter_info::FilterInfo;
pub use foreign_bloom::ForeignBloom;
pub use format::{Create, Encode, Format, ItemDomain, Items, Sniff, Versions};
pub use format_table::FORMATS;
pub use funnel::{Funnel, ItemError, OrcType};
pub use golomb_set::{GolombError, GolombParams, GolombSet};
pub use integer_bitmap::IntegerBitmap;
pub use item_collector::ItemCollector;
pub use java_type::{JavaType, hash_code_of_units};
pub use layers::{Growth, Layer, Layers};
pub use metadata::{Metadata, MetadataError};
pub use parameter::Parameter;
pub use rdb::{Entry as RdbEntry, Rdb};
pub use redis_bitmaps::RedisBitmaps;
pub use redis_payload::{PayloadError, RedisValue};
pub use redisbloom::is_load_command;
pub use rule::Rule;
pub use stored_filter::StoredFilter;
pub use tamis_file::TamisFile;
