//! The asynchronous client of a filter on plain Redis bitmaps.

use std::future::Future;

use tamis::Item;

use crate::error::{RedisCreateError, RedisItemError, RedisOpenError};
use crate::filter::MAX_BATCH;
use crate::info::{RedisFilterInfo, info};
use crate::layouts::view::{Kind, View};
use crate::operations::generations::{
    RedisRebuildError, abort, delete_filter, expire_at, next_generation, start_rebuild, swap,
};
use crate::operations::lifecycle::{create, open, open_or_create};
use crate::operations::merge::{RedisMergeError, merge};
use crate::operations::slices::batch;
use crate::operations::sweep::flush;
use crate::plan::RedisPlan;
use crate::transport::asynchronous::AsyncTransport;
use crate::transport::exchange::Exchange;
use crate::transport::request::{NodeReply, NodeRequest};

/// The asynchronous version of [`RedisFilter`](crate::RedisFilter), for tokio.
///
/// Tasks share a filter by reference, for example in an `Arc`, or as clones. Clones share the
/// connections and the metadata that the client has read. All calls may run at the same time:
/// inserts, lookups, growth, and the start and the end of a rebuild. Two calls at the same time
/// behave as the calls of two clients. With the transports of this crate, the calls of all tasks are
/// in flight on one connection to each node.
///
/// If a program drops a future, the server may have inserted some of the items. The filter and the
/// calls of other tasks stay usable. A program must poll a future to the end or drop the future:
/// another call may wait for a future that adds a slice to a window.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tamis_redis::{AsyncRedisFilter, AsyncSingleNode, Patience, RedisPlan};
///
/// let node = AsyncSingleNode::new("redis://localhost", Patience::default())?;
/// let plan = RedisPlan::new(1_000_000, 0.01)?;
/// let users = AsyncRedisFilter::open_or_create(node, "users", &plan).await?;
/// assert_eq!(users.insert("alice").await, Ok(true));
/// let (alice, bob) = tokio::join!(users.contains("alice"), users.contains("bob"));
/// assert!(alice? && !bob?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AsyncRedisFilter<T> {
    transport: T,
    view: View,
}

/// Implements [`Exchange`] for an asynchronous transport.
struct Waiting<'t, T>(&'t T);

impl<T: AsyncTransport> Exchange for Waiting<'_, T> {
    fn exchange(
        &mut self,
        requests: Vec<NodeRequest>,
    ) -> impl Future<Output = Vec<NodeReply>> + Send {
        self.0.send(requests)
    }
}

/// Builds a new filter while clients use the present filter, like
/// [`RedisRebuild`](crate::RedisRebuild).
pub struct AsyncRedisRebuild<'f, T> {
    filter: &'f AsyncRedisFilter<T>,
    /// The view of the filter after the start of the rebuild.
    view: View,
    /// The identifier of the new generation.
    id: u32,
}

impl<T: AsyncTransport> AsyncRedisRebuild<'_, T> {
    /// Inserts a batch of items into the new filter only, like
    /// [`RedisRebuild::insert_each`](crate::RedisRebuild::insert_each).
    pub async fn insert_each<I: Item>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.each(self.view.clone(), Kind::Build(self.id), items).await
    }

    /// Replaces the present filter by the new filter, like
    /// [`RedisRebuild::swap`](crate::RedisRebuild::swap).
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError`] if the swap fails.
    pub async fn swap(mut self) -> Result<(), RedisRebuildError> {
        swap(&mut Waiting(&self.filter.transport), &mut self.view, self.id).await
    }

    /// Deletes the new filter, unless another client ended the rebuild. The present filter stays.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails.
    pub async fn abort(mut self) -> Result<(), RedisRebuildError> {
        abort(&mut Waiting(&self.filter.transport), &mut self.view, Some(self.id)).await
    }
}

impl<T: AsyncTransport> AsyncRedisFilter<T> {
    /// Creates a filter, like [`RedisFilter::create`](crate::RedisFilter::create).
    ///
    /// # Errors
    ///
    /// [`RedisCreateError`] if the filter is not created.
    pub async fn create(
        transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisCreateError> {
        let view = create(&mut Waiting(&transport), name.as_bytes(), plan).await?;
        Ok(Self { transport, view })
    }

    /// Opens a filter, like [`RedisFilter::open`](crate::RedisFilter::open).
    ///
    /// # Errors
    ///
    /// [`RedisOpenError`] if the filter is not opened.
    pub async fn open(transport: T, name: &str) -> Result<Self, RedisOpenError> {
        let view = open(&mut Waiting(&transport), name.as_bytes()).await?;
        Ok(Self { transport, view })
    }

    /// Opens a filter. If the filter does not exist, creates the filter, like
    /// [`RedisFilter::open_or_create`](crate::RedisFilter::open_or_create).
    ///
    /// # Errors
    ///
    /// [`RedisOpenError`] if the filter is not opened.
    pub async fn open_or_create(
        transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisOpenError> {
        let view = open_or_create(&mut Waiting(&transport), name.as_bytes(), plan).await?;
        Ok(Self { transport, view })
    }

    /// Inserts an item. Returns true if the item is new.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the insert fails. The server may have inserted the item before the
    /// failure.
    pub async fn insert<I: Item + ?Sized>(&self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.one(Kind::Insert, hash).await
    }

    /// Tests whether an item may be in the filter. If the result is false, the item is certainly
    /// not in the filter.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the lookup fails. If the server lost the shard of the item, the lookup
    /// fails and does not return false.
    pub async fn contains<I: Item + ?Sized>(&self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.one(Kind::Lookup, hash).await
    }

    /// Inserts a batch of items, like
    /// [`RedisFilter::insert_each`](crate::RedisFilter::insert_each).
    pub async fn insert_each<I: Item>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(self.view.latest(), Kind::Insert, items).await
    }

    /// Tests a batch of items, like
    /// [`RedisFilter::contains_each`](crate::RedisFilter::contains_each).
    pub async fn contains_each<I: Item>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(self.view.latest(), Kind::Lookup, items).await
    }

    /// Returns the number of items, the present false positive rate and the missing keys.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub async fn info(&self) -> Result<RedisFilterInfo, RedisItemError> {
        info(&mut Waiting(&self.transport), &mut self.view.latest()).await
    }

    /// Corrects the counters of the shards, like [`RedisFilter::flush`](crate::RedisFilter::flush).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, the counters are
    /// too high.
    pub async fn flush(&self) -> Result<(), RedisItemError> {
        flush(&mut Waiting(&self.transport), &self.view.latest()).await
    }

    /// Sets the expiry of all keys, like [`RedisFilter::expire_at`](crate::RedisFilter::expire_at).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, repeat the call.
    pub async fn expire_at(&self, millis: Option<u64>) -> Result<(), RedisItemError> {
        expire_at(&mut Waiting(&self.transport), &mut self.view.latest(), millis).await
    }

    /// Deletes the filter, like [`RedisFilter::delete`](crate::RedisFilter::delete).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, repeat the call.
    pub async fn delete(&self) -> Result<(), RedisItemError> {
        delete_filter(&mut Waiting(&self.transport), &mut self.view.latest()).await
    }

    /// Starts a rebuild of the filter, like [`RedisFilter::rebuild`](crate::RedisFilter::rebuild).
    /// After the call returns, insert the items of the source with
    /// [`AsyncRedisRebuild::insert_each`], and then call [`AsyncRedisRebuild::swap`].
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError`] if the rebuild does not start.
    pub async fn rebuild(
        &self,
        plan: &RedisPlan,
    ) -> Result<AsyncRedisRebuild<'_, T>, RedisRebuildError> {
        let mut view = self.view.latest();
        let record = next_generation(&view, plan)?;
        start_rebuild(&mut Waiting(&self.transport), &mut view, &record).await?;
        Ok(AsyncRedisRebuild { filter: self, view, id: record.id })
    }

    /// Ends a rebuild that a client did not finish, and deletes the new filter of this rebuild.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails.
    pub async fn abort_rebuild(&self) -> Result<(), RedisRebuildError> {
        abort(&mut Waiting(&self.transport), &mut self.view.latest(), None).await
    }

    /// Adds all items of another filter, like [`RedisFilter::merge`](crate::RedisFilter::merge).
    ///
    /// # Errors
    ///
    /// [`RedisMergeError`] if the merge fails. A program can repeat the call safely.
    pub async fn merge<U: AsyncTransport>(
        &self,
        other: &AsyncRedisFilter<U>,
    ) -> Result<(), RedisMergeError> {
        merge(
            (&mut Waiting(&self.transport), &mut self.view.latest()),
            (&mut Waiting(&other.transport), &mut other.view.latest()),
        )
        .await
    }

    async fn each<I: Item>(
        &self,
        mut view: View,
        kind: Kind,
        items: &[I],
    ) -> Vec<Result<bool, RedisItemError>> {
        let mut results = Vec::with_capacity(items.len());
        for items in items.chunks(MAX_BATCH) {
            let mut hashes = vec![0; items.len()];
            I::hash_each(items, &self.view.metadata.hasher, &mut hashes);
            let mut exchange = Waiting(&self.transport);
            results.append(&mut batch(&mut exchange, &mut view, kind, &hashes).await);
        }
        results
    }

    async fn one(&self, kind: Kind, hash: u64) -> Result<bool, RedisItemError> {
        let (mut exchange, mut view) = (Waiting(&self.transport), self.view.latest());
        batch(&mut exchange, &mut view, kind, &[hash]).await.remove(0)
    }
}
