//! A filter on plain Redis bitmaps: the client that does not block a thread.

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

/// [`RedisFilter`](crate::RedisFilter) for asynchronous programs, on tokio.
///
/// A dropped future may have inserted some of its items. The filter stays usable.
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
    /// Returns a filter with a clone of the transport. The counters that this filter has to correct
    /// stay its own.
    fn clone(&self) -> Self {
        let mut view = self.view.clone();
        view.generations.iter_mut().for_each(|generation| generation.repeats.clear());
        Self { transport: self.transport.clone(), view }
    }
}

/// A transport as an [`Exchange`].
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
    /// Creates a filter, as [`RedisFilter::create`](crate::RedisFilter::create).
    ///
    /// # Errors
    ///
    /// [`RedisCreateError`].
    pub async fn create(
        mut transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisCreateError> {
        let view = create(&mut Waiting(&mut transport), name.as_bytes(), plan).await?;
        Ok(Self { transport, view })
    }

    /// Opens a filter, as [`RedisFilter::open`](crate::RedisFilter::open).
    ///
    /// # Errors
    ///
    /// [`RedisOpenError`].
    pub async fn open(mut transport: T, name: &str) -> Result<Self, RedisOpenError> {
        let view = open(&mut Waiting(&mut transport), name.as_bytes()).await?;
        Ok(Self { transport, view })
    }

    /// Opens a filter, or creates it if it does not exist, as
    /// [`RedisFilter::open_or_create`](crate::RedisFilter::open_or_create).
    ///
    /// # Errors
    ///
    /// [`RedisOpenError`].
    pub async fn open_or_create(
        mut transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisOpenError> {
        let view = open_or_create(&mut Waiting(&mut transport), name.as_bytes(), plan).await?;
        Ok(Self { transport, view })
    }

    /// Inserts an item. Returns true if it is new.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`]. The item may have been inserted.
    pub async fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.batch(Kind::Insert, &[hash]).await.remove(0)
    }

    /// Tests whether an item may be in the filter. False is certain.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`]. A shard that the server lost is an error, never a false answer.
    pub async fn contains<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.batch(Kind::Lookup, &[hash]).await.remove(0)
    }

    /// Inserts a batch of items, as [`RedisFilter::insert_each`](crate::RedisFilter::insert_each).
    pub async fn insert_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Insert, items).await
    }

    /// Tests a batch of items, as [`RedisFilter::contains_each`](crate::RedisFilter::contains_each).
    pub async fn contains_each<I: Item>(
        &mut self,
        items: &[I],
    ) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Lookup, items).await
    }

    /// Reports the number of items, the present rate and the missing keys.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub async fn info(&mut self) -> Result<RedisFilterInfo, RedisItemError> {
        info(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Corrects the counters, as [`RedisFilter::flush`](crate::RedisFilter::flush).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. The counters are then too high.
    pub async fn flush(&mut self) -> Result<(), RedisItemError> {
        flush(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Lets all keys expire at a time, as [`RedisFilter::expire_at`](crate::RedisFilter::expire_at).
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. Repeat the call.
    pub async fn expire_at(&mut self, millis: Option<u64>) -> Result<(), RedisItemError> {
        expire_at(&mut Waiting(&mut self.transport), &mut self.view, millis).await
    }

    /// Deletes the filter.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. Repeat the call.
    pub async fn delete(&mut self) -> Result<(), RedisItemError> {
        delete_filter(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Starts to build the filter again, as [`RedisFilter::rebuild`](crate::RedisFilter::rebuild).
    /// Then insert the items of the source with [`build_each`](Self::build_each), and call
    /// [`swap`](Self::swap).
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError`].
    pub async fn rebuild(&mut self, plan: &RedisPlan) -> Result<(), RedisRebuildError> {
        let record = next_generation(&self.view, plan)?;
        start_rebuild(&mut Waiting(&mut self.transport), &mut self.view, &record).await
    }

    /// Inserts a batch of items only into the filter that this client is building.
    pub async fn build_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Build, items).await
    }

    /// Ends a rebuild: replaces the present filter, as
    /// [`RedisRebuild::swap`](crate::RedisRebuild::swap).
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError`].
    pub async fn swap(&mut self) -> Result<(), RedisRebuildError> {
        swap(&mut Waiting(&mut self.transport), &mut self.view).await
    }

    /// Ends a rebuild: deletes the new filter.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails.
    pub async fn abort_rebuild(&mut self) -> Result<(), RedisRebuildError> {
        abort(&mut Waiting(&mut self.transport), &mut self.view, None).await
    }

    /// Adds all items of another filter, as [`RedisFilter::merge`](crate::RedisFilter::merge).
    ///
    /// # Errors
    ///
    /// [`RedisMergeError`]. Repeating the call is safe.
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
