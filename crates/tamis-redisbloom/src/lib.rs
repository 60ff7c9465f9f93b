//! Implements the filters of RedisBloom. The same commands produce the same bits, answers and dumps
//! as in RedisBloom. Use this crate for existing data and clients of Redis.
//!
//! ```
//! use tamis_redisbloom::{RedisBloom, RedisBloomOptions};
//!
//! // BF.RESERVE seen 0.01 1000
//! let options = RedisBloomOptions { capacity: 1000, rate: 0.01, ..Default::default() };
//! let mut seen = RedisBloom::new(&options)?;
//! assert!(seen.insert("user:1001")?, "BF.ADD replies 1");
//! assert!(seen.contains("user:1001"));
//!
//! // BF.SCANDUMP on one server, then BF.LOADCHUNK on another server.
//! let mut copy = RedisBloom::from_header(&seen.header())?;
//! let (position, bytes) = seen.chunk(1).expect("the filter has one chunk");
//! copy.load_chunk(position, &bytes)?;
//! assert!(copy.contains("user:1001"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type | meaning |
//! | --- | --- |
//! | [`RedisBloom`], [`RedisBloomOptions`] | the scaling Bloom filter of `BF.*` |
//! | [`RedisLayer`] | the parameters of one layer of a filter |
//! | [`RedisHash`] | the two hashes of an item |
//! | [`RedisCuckoo`], [`RedisCuckooOptions`] | the growing cuckoo filter of `CF.*` |
//! | [`RedisBloomError`], [`RedisCuckooError`] | why a filter cannot be created |
//! | [`RedisInsertError`] | why an item was refused |
//! | [`RedisHeaderError`], [`RedisChunkError`] | why a part of a dump cannot be loaded |
//!
//! The filters of the crate `tamis` are smaller and faster than the filters of RedisBloom. The
//! crate `tamis-formats` reads and writes the filters of RedisBloom as `DUMP` payloads, snapshots
//! and commands.
#![forbid(unsafe_code)]

mod bloom;
mod cuckoo;
mod double_hashing;
mod error;
mod memory_limit;
mod murmur2;
mod not_compared;
mod parts;

pub use bloom::{RedisBloom, RedisBloomOptions, RedisLayer};
pub use cuckoo::{RedisCuckoo, RedisCuckooError, RedisCuckooOptions};
pub use double_hashing::RedisHash;
pub use error::{
    RedisBloomError, RedisChunkError, RedisHeaderError, RedisHeaderErrorKind, RedisInsertError,
};
