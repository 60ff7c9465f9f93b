//! Bloom filters in plain Redis strings, for servers where no module may be loaded.
//!
//! The native layout ([`RedisFilter`]) spreads a filter over bounded shards. A batch of items takes
//! one round trip for each node. A shard that the server lost is an error, never a false answer.
//!
//! The core builds commands and evaluates replies without input and output. A [`Transport`] sends
//! the commands. `docs/redis-bitmaps.md` describes the layout.
#![forbid(unsafe_code)]

#[cfg(feature = "async")]
mod async_filter;
#[cfg(feature = "async")]
mod async_transport;
mod batch;
mod bitmaps_filter;
mod bits;
mod clock;
mod cluster;
mod create_shards;
mod draft;
mod error;
mod exchange;
mod filter;
mod generation;
mod generations;
mod geometry;
mod growth;
mod header;
mod helper_filter;
mod info;
mod key_url;
mod lifecycle;
mod local_copy;
mod merge;
mod metadata;
#[cfg(test)]
mod model;
mod nodes;
mod plan;
mod probe;
mod rates;
mod redisson_filter;
mod request;
mod routes;
mod sentinel;
mod shard_keys;
mod slices;
mod slot;
mod sweep;
mod transport;
mod view;

#[cfg(feature = "async")]
pub use async_filter::AsyncRedisFilter;
#[cfg(feature = "async")]
pub use async_transport::{AsyncClusterNodes, AsyncSentinelNode, AsyncSingleNode, AsyncTransport};
pub use bitmaps_filter::BitmapsFilter;
pub use cluster::ClusterNodes;
pub use draft::RedisDraft;
pub use error::{Difference, RedisCreateError, RedisItemError, RedisOpenError};
pub use filter::{RedisFilter, RedisRebuild};
pub use generation::RedisGeneration;
pub use generations::RedisRebuildError;
pub use geometry::RedisGrowth;
pub use helper_filter::HelperFilter;
pub use info::RedisFilterInfo;
pub use key_url::{KeyUrl, KeyUrlError, ServerAddress, without_password};
pub use local_copy::{RedisCopy, RedisCopyBuilder, RedisCopyError};
pub use merge::RedisMergeError;
pub use metadata::RedisMetadataError;
pub use nodes::RedisNodes;
pub use plan::{RedisPlan, RedisPlanError, RedisWindow};
pub use redisson_filter::RedissonFilter;
pub use request::{NodeReply, NodeRequest, SendError};
pub use sentinel::SentinelNode;
pub use shard_keys::NameError;
pub use slot::cluster_slot;
pub use transport::{Patience, SingleNode, Transport};
