//! Bloom filters in plain Redis strings, for Redis servers that cannot load modules.
//!
//! The native layout ([`RedisFilter`]) spreads a filter over shards of bounded size. A batch of
//! items takes one round trip for each node. If the server lost a shard, an operation on this shard
//! returns an error, never a false result.
//!
//! The core of this crate builds commands and evaluates replies, without any input or output. A
//! [`Transport`] sends the commands to the servers. `docs/redis-bitmaps.md` describes the layout of
//! a filter.
#![forbid(unsafe_code)]

#[cfg(feature = "async")]
mod async_filter;
mod clock;
mod error;
mod filter;
mod info;
mod layouts;
mod local_copy;
mod lock;
#[cfg(test)]
mod model;
mod operations;
mod plan;
mod rates;
mod single_flight;
mod transport;

#[cfg(feature = "async")]
pub use async_filter::{AsyncRedisFilter, AsyncRedisRebuild};
pub use error::{Difference, RedisCreateError, RedisItemError, RedisOpenError};
pub use filter::{RedisFilter, RedisRebuild};
pub use info::RedisFilterInfo;
pub use layouts::bitmaps_filter::BitmapsFilter;
pub use layouts::draft::RedisDraft;
pub use layouts::generation::RedisGeneration;
pub use layouts::geometry::RedisGrowth;
pub use layouts::helper_filter::HelperFilter;
pub use layouts::metadata::RedisMetadataError;
pub use layouts::redisson_filter::RedissonFilter;
pub use layouts::shard_keys::NameError;
pub use local_copy::{RedisCopy, RedisCopyBuilder, RedisCopyError};
pub use operations::generations::RedisRebuildError;
pub use operations::merge::RedisMergeError;
pub use plan::{RedisPlan, RedisPlanError, RedisWindow};
#[cfg(feature = "async")]
pub use transport::async_cluster::AsyncClusterNodes;
#[cfg(feature = "async")]
pub use transport::asynchronous::{
    AsyncSentinelNode, AsyncSingleNode, AsyncTransport, SharedConnection,
};
pub use transport::blocking::{ConnectionPool, Patience, SingleNode, Transport};
pub use transport::cluster::ClusterNodes;
pub use transport::key_url::{KeyUrl, KeyUrlError, ServerAddress};
pub use transport::nodes::RedisNodes;
pub use transport::request::{NodeReply, NodeRequest, SendError};
pub use transport::sentinel::SentinelNode;
pub use transport::server_url::{ServerUrlError, without_password};
pub use transport::slot::cluster_slot;
