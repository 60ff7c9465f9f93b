//! A filter on plain Redis bitmaps: the blocking client.

use tamis::Item;

use crate::error::{Difference, RedisCreateError, RedisItemError, RedisOpenError};
use crate::info::{RedisFilterInfo, info};
use crate::layouts::generation::RedisGeneration;
use crate::layouts::view::{Kind, View};
use crate::operations::generations::{
    RedisRebuildError, abort, delete_filter, expire_at, next_generation, start_rebuild, swap,
};
use crate::operations::lifecycle::{create, differences, open, open_or_create};
use crate::operations::merge::{RedisMergeError, merge};
use crate::operations::slices::batch;
use crate::operations::sweep::flush;
use crate::plan::RedisPlan;
use crate::transport::blocking::Transport;
use crate::transport::exchange::{Blocking, complete};

/// The largest number of items that one round trip handles.
pub(crate) const MAX_BATCH: usize = 10_000;

/// A Bloom filter in plain Redis strings. Other programs and machines can use it at the same time.
///
/// A batch takes one round trip for each node. Repeating an insert is safe: the bits stay set, and
/// the repeated insert may answer that an item is not new.
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedisFilter, RedisPlan, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let plan = RedisPlan::new(1_000_000, 0.01)?;
/// let mut users = RedisFilter::open_or_create(node, "users", &plan)?;
/// for result in users.insert_each(&["alice", "bob"]) {
///     println!("new: {}", result?);
/// }
/// assert!(users.contains("alice")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RedisFilter<T> {
    pub(crate) transport: T,
    pub(crate) view: View,
}

/// A filter that is being built beside the present one. If it is dropped, the rebuild goes on until
/// a client [aborts](RedisFilter::abort_rebuild) it.
pub struct RedisRebuild<'f, T> {
    filter: &'f mut RedisFilter<T>,
}

impl<T: Transport> RedisRebuild<'_, T> {
    /// Inserts a batch of items into the new filter only. The results are in the order of the items:
    /// true if the item is new.
    pub fn insert_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.each(Kind::Build, items)
    }

    /// Inserts a batch of items by their hashes into the new filter only, as
    /// [`RedisFilter::insert_hashes`] does.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.each_hash(Kind::Build, hashes)
    }

    /// Replaces the present filter by the new one, and deletes the old one. All clients follow with
    /// their next operation. No lookup misses an acknowledged insert.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::NotRunning`] if another client ended the rebuild; [`RedisRebuildError::Redis`] if
    /// the server or the connection fails. Lookups then still use the present filter, or the new one
    /// if only the deletion failed.
    pub fn swap(self) -> Result<(), RedisRebuildError> {
        complete(swap(&mut Blocking(&mut self.filter.transport), &mut self.filter.view))
    }

    /// Deletes the new filter, unless another client ended the rebuild. The present one stays.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails.
    pub fn abort(self) -> Result<(), RedisRebuildError> {
        let RedisFilter { transport, view } = self.filter;
        let own = view.rebuild;
        complete(abort(&mut Blocking(transport), view, own))
    }
}

impl<T: Transport> RedisFilter<T> {
    /// Creates a filter. Its memory is allocated at once. The first client wins.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Exists`] if the key `name` exists; [`RedisCreateError::Name`] for a name with a
    /// brace; [`RedisCreateError::Redis`] if the server or the connection fails.
    pub fn create(
        mut transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisCreateError> {
        let view = complete(create(&mut Blocking(&mut transport), name.as_bytes(), plan))?;
        Ok(Self { transport, view })
    }

    /// Opens a filter.
    ///
    /// # Errors
    ///
    /// [`RedisOpenError::NotFound`] without a filter of this name; [`RedisOpenError::Metadata`] if the key
    /// holds something else; [`RedisOpenError::Redis`] if the server or the connection fails.
    pub fn open(mut transport: T, name: &str) -> Result<Self, RedisOpenError> {
        let view = complete(open(&mut Blocking(&mut transport), name.as_bytes()))?;
        Ok(Self { transport, view })
    }

    /// Opens a filter, or creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); [`RedisOpenError::Differs`] if the filter has other parameters than the
    /// plan.
    pub fn open_or_create(
        mut transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisOpenError> {
        let view = complete(open_or_create(&mut Blocking(&mut transport), name.as_bytes(), plan))?;
        Ok(Self { transport, view })
    }

    /// Inserts an item. Returns true if it is new.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`]. The item may have been inserted.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.batch(Kind::Insert, &[hash]).remove(0)
    }

    /// Tests whether an item may be in the filter. False is certain.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`]. A shard that the server lost is an error, never a false answer.
    pub fn contains<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.batch(Kind::Lookup, &[hash]).remove(0)
    }

    /// Inserts a batch of items. The results are in the order of the items: true if the item is
    /// new. An item that is twice in the batch is new once.
    ///
    /// Takes one round trip for 10,000 items, and two for shards that have grown.
    pub fn insert_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Insert, items)
    }

    /// Inserts a batch of items by their hashes with the [plan's](Self::plan) hash function. The
    /// results are those of [`insert_each`](Self::insert_each).
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        self.each_hash(Kind::Insert, hashes)
    }

    /// Tests a batch of items. The results are in the order of the items.
    ///
    /// Takes one round trip for 10,000 items.
    pub fn contains_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(Kind::Lookup, items)
    }

    /// Reports the number of items, the present rate and the missing keys.
    ///
    /// Takes one round trip for 1024 shards, and another one for further layers.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub fn info(&mut self) -> Result<RedisFilterInfo, RedisItemError> {
        complete(info(&mut Blocking(&mut self.transport), &mut self.view))
    }

    /// Subtracts from the counters the items that this client counted although they were not new.
    /// Inserts do so too; a program calls this after its last insert. One round trip.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. The counters are then too high.
    pub fn flush(&mut self) -> Result<(), RedisItemError> {
        complete(flush(&mut Blocking(&mut self.transport), &mut self.view))
    }

    /// Lets all keys of the filter expire at the same time, in milliseconds since 1970. `None` makes
    /// them permanent. Later layers expire with the others. The slices of a window still expire when
    /// they are over.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. Some keys may have the new expiry;
    /// repeat the call.
    pub fn expire_at(&mut self, millis: Option<u64>) -> Result<(), RedisItemError> {
        complete(expire_at(&mut Blocking(&mut self.transport), &mut self.view, millis))
    }

    /// Deletes the filter: each shard with all its layers, and then the metadata.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. Some keys may be deleted; repeat the
    /// call.
    pub fn delete(&mut self) -> Result<(), RedisItemError> {
        complete(delete_filter(&mut Blocking(&mut self.transport), &mut self.view))
    }

    /// Starts to build the filter again, beside the present one, with another plan if needed.
    ///
    /// Lookups of all clients use the present filter until [`RedisRebuild::swap`]. Inserts of all
    /// clients go to both. After this call returns, read the source of all items, and insert them
    /// with [`RedisRebuild::insert_each`]. The source must have every item whose insert began before
    /// this call returned: that insert may have gone to the present filter only.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Running`] if a rebuild has not ended; [`RedisRebuildError::Plan`] if the hash
    /// function differs or the filter is a window; [`RedisRebuildError::Redis`] if the server or the
    /// connection fails. Then call [`abort_rebuild`](Self::abort_rebuild).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use tamis_redis::{Patience, RedisFilter, RedisPlan, SingleNode};
    /// # let node = SingleNode::new("redis://localhost", Patience::default())?;
    /// let mut users = RedisFilter::open(node, "users")?;
    /// let mut rebuild = users.rebuild(&RedisPlan::new(2_000_000, 0.01)?)?;
    /// for result in rebuild.insert_each(&["alice", "bob"]) {
    ///     result?;
    /// }
    /// rebuild.swap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild(&mut self, plan: &RedisPlan) -> Result<RedisRebuild<'_, T>, RedisRebuildError> {
        let generation = self.next_generation(plan)?;
        self.rebuild_as(&generation)
    }

    /// Returns a new generation for a rebuild. Sends nothing. A program that may be interrupted
    /// keeps it, to [discard](RedisGeneration::discard) what an interrupted rebuild has begun.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Plan`] as for [`rebuild`](Self::rebuild).
    pub fn next_generation(&self, plan: &RedisPlan) -> Result<RedisGeneration, RedisRebuildError> {
        let record = next_generation(&self.view, plan)?;
        Ok(RedisGeneration::new(self.view.name(), record))
    }

    /// Starts to build the filter again as a generation. See [`rebuild`](Self::rebuild).
    ///
    /// # Errors
    ///
    /// As for [`rebuild`](Self::rebuild).
    pub fn rebuild_as(
        &mut self,
        generation: &RedisGeneration,
    ) -> Result<RedisRebuild<'_, T>, RedisRebuildError> {
        let mut exchange = Blocking(&mut self.transport);
        complete(start_rebuild(&mut exchange, &mut self.view, &generation.record))?;
        Ok(RedisRebuild { filter: self })
    }

    /// Adds all items of another filter, which may be on another server. Both must have the same plan
    /// and hash function. The other filter does not change.
    ///
    /// Copies all bytes of the other filter through this client. Items that both have count twice.
    /// Growing filters may exceed their planned rate: the items of both go to the same layers.
    ///
    /// # Errors
    ///
    /// [`RedisMergeError`]. Some shards may have been merged; repeating the call is safe.
    pub fn merge<U: Transport>(
        &mut self,
        other: &mut RedisFilter<U>,
    ) -> Result<(), RedisMergeError> {
        complete(merge(
            (&mut Blocking(&mut self.transport), &mut self.view),
            (&mut Blocking(&mut other.transport), &mut other.view),
        ))
    }

    /// Ends a rebuild that a client left behind. The present filter stays.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails. Repeat the call.
    pub fn abort_rebuild(&mut self) -> Result<(), RedisRebuildError> {
        complete(abort(&mut Blocking(&mut self.transport), &mut self.view, None))
    }

    /// Returns the plan of the filter. A filter that is created with it can be merged with this one.
    #[must_use]
    pub fn plan(&self) -> RedisPlan {
        self.view.metadata.plan()
    }

    /// Returns the parameters of the filter that differ from a plan. A filter without differences from
    /// the plan of another one can be merged with it.
    #[must_use]
    pub fn differences(&self, plan: &RedisPlan) -> Vec<Difference> {
        differences(plan, &self.view)
    }

    /// Returns the transport.
    #[must_use]
    pub fn into_transport(self) -> T {
        self.transport
    }

    fn each<I: Item>(&mut self, kind: Kind, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        let mut hashes = vec![0; items.len()];
        I::hash_each(items, &self.view.metadata.hasher, &mut hashes);
        self.each_hash(kind, &hashes)
    }

    fn each_hash(&mut self, kind: Kind, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        let chunks = hashes.chunks(MAX_BATCH);
        chunks.flat_map(|hashes| self.batch(kind, hashes)).collect()
    }

    pub(crate) fn batch(
        &mut self,
        kind: Kind,
        hashes: &[u64],
    ) -> Vec<Result<bool, RedisItemError>> {
        complete(batch(&mut Blocking(&mut self.transport), &mut self.view, kind, hashes))
    }
}
