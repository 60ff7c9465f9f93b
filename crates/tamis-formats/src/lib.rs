//! Bytes to filters and back: one format a file.
//!
//! | format | page | type |
//! | --- | --- | --- |
//! | Tamis's own | `docs/formats/tamis.md` | [`TamisFile`] |
//! | what Redis' `DUMP` gives of RedisBloom's filters | `docs/formats/redis_payload.md` | [`RedisValue`] |
//!
//! Bytes may come from anyone: decoding never panics, and allocates nothing before the sizes they
//! state were checked against the bytes at hand or the caller's limit.
#![forbid(unsafe_code)]

mod error;
mod format;
mod head;
mod metadata;
mod reader;
mod redis_payload;
mod tamis_file;

pub use error::{DecodeError, DecodeErrorKind, ReadError};
pub use format::{FORMATS, Format};
pub use metadata::{Metadata, MetadataError};
pub use redis_payload::{PayloadError, RedisValue};
pub use tamis_file::TamisFile;
