//! Bytes to filters and back: one format a file.
//!
//! | format | page | type |
//! | --- | --- | --- |
//! | Tamis's own | `docs/formats/tamis.md` | [`TamisFile`] |
//! | Guava's `BloomFilter` | `docs/formats/guava.md` | [`FlatFilter`], [`guava`] |
//! | a `byte[]` of Java as a set of integers | `docs/formats/java-bitmap.md` | [`IntegerBitmap`], [`java_bitmap`] |
//! | a string of Redis as a set of integers | `docs/formats/redis-bits.md` | [`IntegerBitmap`], [`redis_bits`] |
//! | `MyBloomFilter` of Java articles | `docs/formats/my-bloom-filter.md` | [`my_bloom_filter`] |
//! | `ByteBufferBloomFilter` of a Java article | `docs/formats/byte-buffer.md` | [`FlatFilter`], [`byte_buffer`] |
//! | `hashcode(cap, seed)` of an article, in C | `docs/formats/c-hashcode.md` | [`FlatFilter`], [`c_hashcode`] |
//! | Python's `pybloom_live` | `docs/formats/pybloom-live.md` | [`Layers`], [`pybloom_live`] |
//! | Python's `pybloomfiltermmap` | `docs/formats/pybloomfiltermmap.md` | [`Layers`], [`pybloomfiltermmap`] |
//! | Python's `rbloom` | `docs/formats/rbloom.md` | [`FlatFilter`], [`rbloom`] |
//! | Roaring bitmaps, 32 and 64 bits | `docs/formats/roaring.md` | [`roaring`] |
//! | what Redis' `DUMP` gives of RedisBloom's filters | `docs/formats/redis_payload.md` | [`RedisValue`] |
//!
//! Bytes may come from anyone: decoding never panics, and allocates nothing before the sizes they
//! state were checked against the bytes at hand or the caller's limit.
#![forbid(unsafe_code)]

pub mod byte_buffer;
pub mod c_hashcode;
mod contents;
mod error;
mod flat;
mod format;
mod funnel;
pub mod guava;
mod hash;
mod head;
mod integers;
pub mod java_bitmap;
mod java_type;
mod layers;
mod metadata;
mod mitz;
mod modulus;
pub mod my_bloom_filter;
mod places;
pub mod pybloom_live;
pub mod pybloomfiltermmap;
pub mod rbloom;
mod reader;
pub mod redis_bits;
mod redis_payload;
pub mod roaring;
mod rule;
mod tamis_file;
mod told;

pub use contents::{ChangeError, Contents, Facts};
pub use error::{DecodeError, DecodeErrorKind, EncodeError, ReadError};
pub use flat::FlatFilter;
pub use format::{Encode, FORMATS, Format, Items, Sniff};
pub use funnel::{Charset, Funnel, ItemError};
pub use integers::IntegerBitmap;
pub use java_type::{JavaType, hash_code_of_units};
pub use layers::{Growth, Layer, Layers};
pub use metadata::{Metadata, MetadataError};
pub use redis_payload::{PayloadError, RedisValue};
pub use rule::Rule;
pub use tamis_file::TamisFile;
pub use told::{Fact, Told};
