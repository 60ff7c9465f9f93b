//! Reads and writes filters in the file formats of many systems. Each format has its own module.
//!
//! ```
//! use tamis_formats::{Contents, DecodeOptions, Format, guava};
//! use tamis_formats::guava::{GuavaRelease, GuavaStrategy};
//!
//! // Creates the filter that Guava's `writeTo` would write.
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
//! | [`Contents`], [`StoredFilter`], [`FilterInfo`] | the filter in a file of any format; the report about a filter |
//! | [`Save`] | saves and loads a filter of the crate `tamis` in one call |
//! | [`TamisFile`], [`Metadata`] | a file in Tamis' own format |
//! | [`ForeignBloom`], [`Rule`] | a Bloom filter of another system: its bits, and the rule from bytes to bit numbers |
//! | [`Layers`], [`GolombSet`], [`IntegerBitmap`] | filters that are not one array of bits |
//! | [`Funnel`], [`Charset`], [`JavaType`] | the conversion of a line of text to the bytes that a system hashes |
//! | [`DecodeOptions`], [`Parameter`] | parameters that a file does not store |
//! | [`DecodeError`], [`EncodeError`], [`CreateError`], [`ChangeError`], [`FileError`] | one error for each operation |
//!
//! The page of a format is `docs/formats/<name>.md`.
//!
//! A decoder treats all bytes as untrusted and never panics. A decoder checks a size against the input or the caller's
//! limit before allocating memory.
#![forbid(unsafe_code)]

mod encoding;
mod errors;
mod filters;
mod format;
mod format_table;
mod formats;
mod items;
mod redis;
mod replace_file;
mod rules;

pub use encoding::metadata::{Metadata, MetadataError};
pub use encoding::sorted_table::is_sorted_table;
pub use encoding::{ByteReader, bitcoin};
pub use errors::{
    ChangeError, CreateError, DecodeError, DecodeErrorKind, EncodeError, FileError, FileErrorKind,
    ReadError,
};
pub use filters::{
    Contents, FilterInfo, ForeignBloom, GolombError, GolombParams, GolombSet, Growth,
    IntegerBitmap, ItemCount, Layer, LayerInfo, Layers, StoredFilter, WindowInfo,
};
pub use format::{
    Create, DecodeOptions, Detection, Encode, Format, ItemDomain, Items, Parameter, Parameters,
    Sniff, Versions,
};
pub use format_table::{DetectError, FORMATS};
pub use formats::redis_bitmaps::RedisBitmaps;
pub use formats::redisbloom::{is_load_command, redisbloom_rate, redisbloom_rates, server_image};
pub use formats::tamis_file::TamisFile;
pub use formats::tamis_file::save::Save;
pub use formats::{
    abloom, bip37, bip158, bits_and_blooms, bloom_filters, byte_buffer, c_hashcode, cassandra,
    dcso, guava, hadoop, hive, java_bitmap, leveldb, module_value, my_bloom_filter, orc, parquet,
    pybloom_live, pybloomfiltermmap, rbloom, redis_bitmap, redis_bits, redisson, roaring, rocksdb,
    spark, stream_lib,
};
pub use items::funnel::{AbloomType, ItemError, OrcType};
pub use items::item_collector::ItemCollector;
pub use items::java_type::{JavaType, hash_code_of_units};
pub use items::{Charset, Funnel};
pub use redis::payload::{PayloadError, RedisValue};
pub use redis::rdb::{Rdb, RdbEntry, SnapshotValue, write_snapshot};
pub use replace_file::{Readers, replace_file};
pub use rules::Rule;
