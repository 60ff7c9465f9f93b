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
/// If a program drops a future, the server may have inserted some of the items. The filter stays
/// usable after a dropped future.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tamis_redis::{AsyncRedisFilter, AsyncSingleNode, Patience, RedisPlan};
///
/// let node = AsyncSingleNode::new("redis://localhost", Patience::default())?;
/// let plan = RedisPlan::new(1_000_000, 0.01)?;
/// let mut users = AsyncRedisFilter::open_or_create(node, "users", &plan).await?;
/// assert_eq!(users.insert("alice").await, Ok(true));
/// # Ok(())
/// # }
/// ```
pub struct AsyncRedisFilter<T> {
    transport: T,
    view: View,
}

impl<T: Clone> Clone for AsyncRedisFilter<T> {
    /// Returns a client of the same filter with a clone of the transport. Only the original client
    /// subtracts the repeated items that the original client counted.
    fn clone(&self) -> Self {
        let mut view = self.view.clone();
        view.generations.iter_mut().for_each(|generation| generation.repeats.clear());
        Self { transport: self.transport.clone(), view }
    }
}

/// Implements [`Exchange`] for an asynchronous transport.
struct Waiting<'t, T>(&'t mut T);

impl<T: AsyncTransport> Exchange for Waiting<'_, T> {
    fn exchange(
        &mut self,
        requests: Vec<NodeRequest>,
    ) -> impl Future<Output = Vec<NodeReply>> + Send {
        self.0.send(requests)
    }
}

impl<T: AsyncTransport> AsyncRedisFilter<T> {
    /// Creates a filter, like [`RedisFilter::create`](crate::RedisFilter::create).
    ///
    /// # Errors
    ///
    /// [`RedisCreateError`] if the filter is not created.
    pub async fn create(
        mut transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisCreateError> {
        let view = create(&mut Waiting(&mut transport), name.as_bytes(), plan).await?;
        Ok(Self { transport, view })
    }

    /// Opens a filter, like [`RedisFilter::open`](crate::RedisFilter::open).
    ///
    /// # Errors
    ///
    /// [`RedisOpenError`] if the filter is not opened.
    pub async fn open(mut transport: T, name: &str) -> Result<Self, RedisOpenError> {
        let view = open(&mut Waiting(&mut transport), name.as_bytes()).await?;
        Ok(Self { transport, view })
    }

    /// Opens a filter. If the filter does not exist, creates the filter, like
    /// [`RedisFilter::open_or_create`](crate::RedisFilter::open_or_create).
    ///
    /// # Errors
    ///
    /// [`RedisOpenError`] if the filter is not opened.
    pub async fn open_or_create(
        mut transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisOpenError> {
        let view = open_or_create(&mut Waiting(&mut transport), name.as_bytes(), plan).await?;
        Ok(Self { transport, view })
    }

    /// Inserts an item. Returns true if the item is new.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the insert fails. The server may have inserted the item before the
    /// failure.
    pub async fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.batch(Kind::Insert, &[hash]).await.remove(0)
    }

    /// Tests whether an item may be in the filter. If the result is false, the item is certainly
    /// not in the filter.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the lookup fails. If the server lost the shard of the item, the lookup
    /// fails and does not return false.
    pub async fn contains<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.batch(Kind::Lookup, &[hash]).await.remove(0)
    }

    /// Inserts a batch of items, like
    /// [`RedisFilter::insert_each`](crate::RedisFilter::insert_each).
    pub async fn insert_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Insert, items).await
    }

    /// Tests a batch of items, like
    /// [`RedisFilter::contains_each`](crate::RedisFilter::contains_each).
    pub async fn contains_each<I: Item>(
        &mut self,
        items: &[I],
    ) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Lookup, items).await
    }

    /// Returns the number of items, the present false positive rate and the missing keys.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub async fn info(&mut self) -> Result<RedisFilterInfo, RedisItemError> {
        info(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Corrects the counters of the shards, like [`RedisFilter::flush`](crate::RedisFilter::flush).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, the counters are
    /// too high.
    pub async fn flush(&mut self) -> Result<(), RedisItemError> {
        flush(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Sets the expiry of all keys, like [`RedisFilter::expire_at`](crate::RedisFilter::expire_at).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, repeat the call.
    pub async fn expire_at(&mut self, millis: Option<u64>) -> Result<(), RedisItemError> {
        expire_at(&mut Waiting(&mut self.transport), &mut self.view, millis).await
    }

    /// Deletes the filter, like [`RedisFilter::delete`](crate::RedisFilter::delete).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, repeat the call.
    pub async fn delete(&mut self) -> Result<(), RedisItemError> {
        delete_filter(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Starts a rebuild of the filter, like [`RedisFilter::rebuild`](crate::RedisFilter::rebuild).
    /// After the call returns, insert the items of the source with
    /// [`build_each`](Self::build_each), and then call [`swap`](Self::swap).
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError`] if the rebuild fails.
    pub async fn rebuild(&mut self, plan: &RedisPlan) -> Result<(), RedisRebuildError> {
        let record = next_generation(&self.view, plan)?;
        start_rebuild(&mut Waiting(&mut self.transport), &mut self.view, &record).await
    }

    /// Inserts a batch of items only into the filter that this client rebuilds.
    pub async fn build_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Build, items).await
    }

    /// Ends a rebuild and replaces the present filter by the new filter, like
    /// [`RedisRebuild::swap`](crate::RedisRebuild::swap).
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError`] if the rebuild fails.
    pub async fn swap(&mut self) -> Result<(), RedisRebuildError> {
        swap(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Ends a rebuild and deletes the new filter of the rebuild.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails.
    pub async fn abort_rebuild(&mut self) -> Result<(), RedisRebuildError> {
        abort(&mut Waiting(&mut self.transport), &mut self.view, None).await
    }

    /// Adds all items of another filter, like [`RedisFilter::merge`](crate::RedisFilter::merge).
    ///
    /// # Errors
    ///
    /// [`RedisMergeError`] if the merge fails. A program can repeat the call safely.
    pub async fn merge<U: AsyncTransport>(
        &mut self,
        other: &mut AsyncRedisFilter<U>,
    ) -> Result<(), RedisMergeError> {
        merge(
            (&mut Waiting(&mut self.transport), &mut self.view),
            (&mut Waiting(&mut other.transport), &mut other.view),
        )
        .await
    }

    async fn each<I: Item>(
        &mut self,
        kind: Kind,
        items: &[I],
    ) -> Vec<Result<bool, RedisItemError>> {
        let mut results = Vec::with_capacity(items.len());
        for items in items.chunks(MAX_BATCH) {
            let mut hashes = vec![0; items.len()];
            I::hash_each(items, &self.view.metadata.hasher, &mut hashes);
            results.append(&mut self.batch(kind, &hashes).await);
        }
        results
    }

    async fn batch(&mut self, kind: Kind, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        batch(&mut Waiting(&mut self.transport), &mut self.view, kind, hashes).await
    }
}
