//! Bytes to filters and back: one format a file.
//!
//! | format | page | type |
//! | --- | --- | --- |
//! | Tamis's own | `docs/formats/tamis.md` | [`TamisFile`] |
//! | Guava's `BloomFilter` | `docs/formats/guava.md` | [`FlatFilter`], [`guava`] |
//! | Bitcoin's `filterload` (BIP-37) | `docs/formats/bip37.md` | [`FlatFilter`], [`bip37`] |
//! | Bitcoin's filters of blocks (BIP-158) | `docs/formats/bip158.md` | [`GolombSet`], [`bip158`] |
//! | what Redis' `DUMP` gives of RedisBloom's filters | `docs/formats/redis_payload.md` | [`RedisValue`] |
//!
//! Bytes may come from anyone: decoding never panics, and allocates nothing before the sizes they
//! state were checked against the bytes at hand or the caller's limit.
#![forbid(unsafe_code)]

pub mod bip158;
pub mod bip37;
pub mod bitcoin;
mod contents;
mod error;
mod flat;
mod format;
mod funnel;
mod golomb_set;
pub mod guava;
mod hash;
mod head;
mod metadata;
mod mitz;
mod modulus;
mod reader;
mod redis_payload;
mod rule;
mod tamis_file;
mod told;

pub use contents::{ChangeError, Contents, Facts};
pub use error::{DecodeError, DecodeErrorKind, EncodeError, ReadError};
pub use flat::FlatFilter;
pub use format::{Encode, FORMATS, Format, Items, Sniff};
pub use funnel::{Charset, Funnel, ItemError};
pub use golomb_set::{GolombError, GolombParams, GolombSet};
pub use metadata::{Metadata, MetadataError};
pub use redis_payload::{PayloadError, RedisValue};
pub use rule::Rule;
pub use tamis_file::TamisFile;
pub use told::{Fact, Told};
