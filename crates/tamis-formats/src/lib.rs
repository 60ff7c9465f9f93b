//! Reads and writes filters in the file formats of many systems, one format per file.
//!
//! ```
//! use tamis_formats::{Contents, DecodeOptions, Format, guava};
//! use tamis_formats::guava::{GuavaRelease, GuavaStrategy};
//!
//! // What Guava's `writeTo` would write.
//! let mut users = guava::create(1_000, 0.01, GuavaStrategy::Mitz64, GuavaRelease::Since33)?;
//! users.insert(b"alice");
//! let (format, options) = (Format::named("guava").expect("a format"), DecodeOptions::default());
//! let mut file = Vec::new();
//! (format.encode)(&Contents::new(users), &options, &mut file)?;
//!
//! let read = (format.decode)(&file, &options)?;
//! let mut answers = tamis::Answers::new();
//! read.contains_each(&["alice", "bob"], &mut answers);
//! assert_eq!(answers.iter().collect::<Vec<_>>(), [true, false]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type | meaning |
//! | --- | --- |
//! | [`FORMATS`], [`Format`] | all formats: name, detection, decoder, encoder |
//! | [`Contents`], [`StoredFilter`], [`FilterInfo`] | the filter in a file of any format; what is reported about it |
//! | [`TamisFile`], [`Metadata`] | a file in Tamis' own format |
//! | [`ForeignBloom`], [`Rule`] | a Bloom filter of another system: its bits, and the rule from bytes to bit numbers |
//! | [`Layers`], [`GolombSet`], [`IntegerBitmap`] | contents that are not one run of bits |
//! | [`Funnel`], [`Charset`], [`JavaType`] | from a line of text to the bytes that a system hashes |
//! | [`DecodeOptions`], [`Parameter`] | parameters that a file does not store |
//! | [`DecodeError`], [`EncodeError`], [`CreateError`], [`ChangeError`] | one error for each operation |
//!
//! The page of a format is `docs/formats/<name>.md`.
//!
//! Bytes are untrusted: decoding never panics, and it checks a size against the input or the
//! caller's limit before it allocates.
#![forbid(unsafe_code)]

pub mod abloom;
mod answer_each;
mod bare_bits;
pub mod bip158;
pub mod bip37;
mod bit_words;
pub mod bitcoin;
mod bitmap_file;
pub mod bits_and_blooms;
pub mod bloom_filters;
pub mod byte_buffer;
pub mod c_hashcode;
pub mod cassandra;
mod change_error;
mod charset;
mod contents;
mod create_error;
pub mod dcso;
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
pub mod module_value;
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
mod rates;
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
mod sorted_table;
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
pub use filter_info::{FilterInfo, ItemCount, LayerInfo, WindowInfo};
pub use foreign_bloom::ForeignBloom;
pub use format::{
    Create, Detection, Encode, Format, ItemDomain, Items, Parameters, Sniff, Versions,
};
pub use format_table::FORMATS;
pub use funnel::{AbloomType, Funnel, ItemError, OrcType};
pub use golomb_set::{GolombError, GolombParams, GolombSet};
pub use integer_bitmap::IntegerBitmap;
pub use item_collector::ItemCollector;
pub use java_type::{JavaType, hash_code_of_units};
pub use layers::{Growth, Layer, Layers};
pub use metadata::{Metadata, MetadataError};
pub use parameter::Parameter;
pub use rdb::{Rdb, RdbEntry, SnapshotValue, write_snapshot};
pub use reader::ByteReader;
pub use redis_bitmaps::RedisBitmaps;
pub use redis_payload::{PayloadError, RedisValue};
pub use redisbloom::{is_load_command, redisbloom_rate, redisbloom_rates, server_image};
pub use rule::Rule;
pub use sorted_table::is_sorted_table;
pub use stored_filter::StoredFilter;
pub use tamis_file::TamisFile;
