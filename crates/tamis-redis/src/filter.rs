//! The blocking client of a filter on plain Redis bitmaps.

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

/// The largest number of items in one round trip.
pub(crate) const MAX_BATCH: usize = 10_000;

/// A Bloom filter in plain Redis strings. Several programs and machines can use the filter at the
/// same time.
///
/// Threads share a filter by reference, for example in an `Arc`, or as clones. Clones share the
/// connections and the metadata that the client has read. All calls may run at the same time:
/// inserts, lookups, growth, and the start and the end of a rebuild. Two calls at the same time
/// behave as the calls of two clients. A call waits for the server, and for another call only while
/// that call adds a slice to a window.
///
/// A batch takes one round trip for each node. A program can repeat a failed insert safely, because
/// set bits stay set. A repeated insert may report that an item is not new.
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedisFilter, RedisPlan, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let plan = RedisPlan::new(1_000_000, 0.01)?;
/// let users = RedisFilter::open_or_create(node, "users", &plan)?;
/// for result in users.insert_each(&["alice", "bob"]) {
///     println!("new: {}", result?);
/// }
/// assert!(users.contains("alice")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RedisFilter<T> {
    pub(crate) transport: T,
    pub(crate) view: View,
}

/// Builds a new filter while clients use the present filter. Several threads can insert into the new
/// filter at the same time. If a program drops this `RedisRebuild`, the rebuild stays open until a
/// client calls [`abort_rebuild`](RedisFilter::abort_rebuild).
pub struct RedisRebuild<'f, T> {
    filter: &'f RedisFilter<T>,
    /// The view of the filter after the start of the rebuild.
    view: View,
    /// The identifier of the new generation.
    id: u32,
}

impl<T: Transport> RedisRebuild<'_, T> {
    /// Inserts a batch of items into the new filter only. Returns one result for each item, in the
    /// order of the items: true if the item is new.
    pub fn insert_each<I: Item>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.insert_hashes(&self.filter.hash_each(items))
    }

    /// Inserts a batch of items by their hashes into the new filter only, like
    /// [`RedisFilter::insert_hashes`].
    pub fn insert_hashes(&self, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.each_hash(self.view.clone(), Kind::Build(self.id), hashes)
    }

    /// Replaces the present filter by the new filter, and deletes the old keys. After `swap`, every
    /// operation of every client uses the new filter. During the replacement, lookups still find
    /// every item whose insert was acknowledged.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::NotRunning`] if another client ended the rebuild;
    /// [`RedisRebuildError::Redis`] if the server or the connection fails. After a failure, lookups
    /// still use the present filter. If only the deletion of the old keys failed, lookups use the
    /// new filter.
    pub fn swap(mut self) -> Result<(), RedisRebuildError> {
        complete(swap(&mut Blocking(&self.filter.transport), &mut self.view, self.id))
    }

    /// Deletes the new filter, unless another client ended the rebuild. The present filter stays.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails.
    pub fn abort(mut self) -> Result<(), RedisRebuildError> {
        complete(abort(&mut Blocking(&self.filter.transport), &mut self.view, Some(self.id)))
    }
}

impl<T: Transport> RedisFilter<T> {
    /// Creates a filter, and allocates its memory immediately. If several clients create the same
    /// filter, only the first client succeeds.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Exists`] if the key `name` exists; [`RedisCreateError::Name`] if the
    /// name is empty or has a brace outside a hash tag; [`RedisCreateError::Redis`] if the server
    /// or the connection fails.
    pub fn create(transport: T, name: &str, plan: &RedisPlan) -> Result<Self, RedisCreateError> {
        let view = complete(create(&mut Blocking(&transport), name.as_bytes(), plan))?;
        Ok(Self { transport, view })
    }

    /// Opens an existing filter.
    ///
    /// # Errors
    ///
    /// [`RedisOpenError::NotFound`] if no filter has this name; [`RedisOpenError::Metadata`] if the
    /// string at the key is not the metadata of a filter; [`RedisOpenError::Redis`] if the key
    /// holds another type of value, or if the server or the connection fails.
    pub fn open(transport: T, name: &str) -> Result<Self, RedisOpenError> {
        let view = complete(open(&mut Blocking(&transport), name.as_bytes()))?;
        Ok(Self { transport, view })
    }

    /// Opens a filter. If the filter does not exist, creates the filter.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open); [`RedisOpenError::Differs`] if the filter and
    /// the plan have different parameters.
    pub fn open_or_create(
        transport: T,
        name: &str,
        plan: &RedisPlan,
    ) -> Result<Self, RedisOpenError> {
        let view = complete(open_or_create(&mut Blocking(&transport), name.as_bytes(), plan))?;
        Ok(Self { transport, view })
    }

    /// Inserts an item. Returns true if the item is new.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the insert fails. The server may have inserted the item before the
    /// failure.
    pub fn insert<I: Item + ?Sized>(&self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.each_hash(self.view.latest(), Kind::Insert, &[hash]).remove(0)
    }

    /// Tests whether an item may be in the filter. If the result is false, the item is certainly
    /// not in the filter.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the lookup fails. If the server lost the shard of the item, the lookup
    /// fails and does not return false.
    pub fn contains<I: Item + ?Sized>(&self, item: &I) -> Result<bool, RedisItemError> {
        let hash = self.view.metadata.hasher.hash_item(item);
        self.each_hash(self.view.latest(), Kind::Lookup, &[hash]).remove(0)
    }

    /// Inserts a batch of items. Returns one result for each item, in the order of the items: true
    /// if the item is new. If an item occurs several times in the batch, at most one of its results
    /// is true.
    ///
    /// An insert takes one round trip for each 10,000 items. If shards have grown, an insert takes
    /// two round trips.
    pub fn insert_each<I: Item>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.insert_hashes(&self.hash_each(items))
    }

    /// Inserts a batch of items by their hashes. The caller computes the hashes with the hash
    /// function of the [plan](Self::plan). Returns the same results as
    /// [`insert_each`](Self::insert_each).
    pub fn insert_hashes(&self, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        self.each_hash(self.view.latest(), Kind::Insert, hashes)
    }

    /// Tests a batch of items. Returns one result for each item, in the order of the items: true if
    /// the item may be in the filter.
    ///
    /// Takes one round trip for each 10,000 items.
    pub fn contains_each<I: Item>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each_hash(self.view.latest(), Kind::Lookup, &self.hash_each(items))
    }

    /// Returns the number of items, the present false positive rate and the missing keys.
    ///
    /// This method takes one round trip for each 1024 shards, and one more round trip if shards
    /// have several layers.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails.
    pub fn info(&self) -> Result<RedisFilterInfo, RedisItemError> {
        complete(info(&mut Blocking(&self.transport), &mut self.view.latest()))
    }

    /// Corrects the counters of the shards. An insert first counts every item, even if the item is
    /// not new. `flush` subtracts the items that were not new. The next insert also subtracts the
    /// items that were not new, so a program needs `flush` only after the last insert. `flush`
    /// takes one round trip.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, the counters are
    /// too high.
    pub fn flush(&self) -> Result<(), RedisItemError> {
        complete(flush(&mut Blocking(&self.transport), &self.view.latest()))
    }

    /// Sets the expiry of all keys of the filter, in milliseconds since 1970. `None` removes the
    /// expiry. Layers that are added after this call get the same expiry. In a window, the keys of
    /// a slice expire with the slice, or at `millis` if `millis` is earlier than the end of the
    /// slice.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, some keys may
    /// already have the new expiry: repeat the call.
    pub fn expire_at(&self, millis: Option<u64>) -> Result<(), RedisItemError> {
        complete(expire_at(&mut Blocking(&self.transport), &mut self.view.latest(), millis))
    }

    /// Deletes the filter: first all layers of all shards, then the metadata.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, some keys may
    /// already be deleted: repeat the call.
    pub fn delete(&self) -> Result<(), RedisItemError> {
        complete(delete_filter(&mut Blocking(&self.transport), &mut self.view.latest()))
    }

    /// Starts a rebuild of the filter. The new filter may have another plan. The present filter
    /// stays in use during the rebuild.
    ///
    /// Until [`RedisRebuild::swap`], lookups of all clients use the present filter, and inserts of
    /// all clients go to both filters. After this call returns, read all items from the source, for
    /// example a database, and insert the items with [`RedisRebuild::insert_each`].
    ///
    /// An insert that began before `rebuild` returned may have changed only the present filter. The
    /// source must therefore contain the item of every insert that began before `rebuild` returned.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Running`] if another rebuild has not ended; [`RedisRebuildError::Plan`]
    /// if the plan has another hash function, or if the filter or the plan is a window;
    /// [`RedisRebuildError::Redis`] if the server or the connection fails. After a failure of the
    /// server or the connection, call [`abort_rebuild`](Self::abort_rebuild).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use tamis_redis::{Patience, RedisFilter, RedisPlan, SingleNode};
    /// # let node = SingleNode::new("redis://localhost", Patience::default())?;
    /// let users = RedisFilter::open(node, "users")?;
    /// let rebuild = users.rebuild(&RedisPlan::new(2_000_000, 0.01)?)?;
    /// for result in rebuild.insert_each(&["alice", "bob"]) {
    ///     result?;
    /// }
    /// rebuild.swap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild(&self, plan: &RedisPlan) -> Result<RedisRebuild<'_, T>, RedisRebuildError> {
        let generation = self.next_generation(plan)?;
        self.rebuild_as(&generation)
    }

    /// Returns a new generation for a rebuild. Sends no command. A program that may be interrupted
    /// keeps the generation, because after an interruption the program must
    /// [discard](RedisGeneration::discard) the keys of the rebuild.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Plan`] if the plan has another hash function, or if the filter or the
    /// plan is a window.
    pub fn next_generation(&self, plan: &RedisPlan) -> Result<RedisGeneration, RedisRebuildError> {
        let record = next_generation(&self.view.latest(), plan)?;
        Ok(RedisGeneration::new(self.view.name(), record))
    }

    /// Starts a rebuild with the keys of `generation`. See [`rebuild`](Self::rebuild).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`rebuild`](Self::rebuild).
    pub fn rebuild_as(
        &self,
        generation: &RedisGeneration,
    ) -> Result<RedisRebuild<'_, T>, RedisRebuildError> {
        let (mut exchange, mut view) = (Blocking(&self.transport), self.view.latest());
        complete(start_rebuild(&mut exchange, &mut view, &generation.record))?;
        Ok(RedisRebuild { filter: self, view, id: generation.record.id })
    }

    /// Adds all items of the filter `other`, which may be on another server. Both filters must have
    /// the same plan and the same hash function. The filter `other` does not change.
    ///
    /// Copies all bytes of the filter `other` through this client. After the merge, the item count
    /// includes an item of both filters twice. A merge of growing filters may exceed the planned
    /// rate, because the items of both filters go to the same layers.
    ///
    /// # Errors
    ///
    /// [`RedisMergeError`] if the merge fails. After a failure, some shards may already be merged,
    /// and a program can repeat the call safely.
    pub fn merge<U: Transport>(&self, other: &RedisFilter<U>) -> Result<(), RedisMergeError> {
        complete(merge(
            (&mut Blocking(&self.transport), &mut self.view.latest()),
            (&mut Blocking(&other.transport), &mut other.view.latest()),
        ))
    }

    /// Ends a rebuild that a client did not finish, and deletes the new filter of this rebuild. The
    /// present filter stays.
    ///
    /// # Errors
    ///
    /// [`RedisRebuildError::Redis`] if the server or the connection fails. After a failure, repeat
    /// the call to end the rebuild.
    pub fn abort_rebuild(&self) -> Result<(), RedisRebuildError> {
        complete(abort(&mut Blocking(&self.transport), &mut self.view.latest(), None))
    }

    /// Returns the plan of the filter. Two filters with the same plan can be merged, unless the
    /// plan is a window.
    #[must_use]
    pub fn plan(&self) -> RedisPlan {
        self.view.latest().metadata.plan()
    }

    /// Returns the parameters in which the filter differs from a plan. If the filter is no window
    /// and does not differ from the plan, the filter can be merged with a filter of this plan.
    #[must_use]
    pub fn differences(&self, plan: &RedisPlan) -> Vec<Difference> {
        differences(plan, &self.view.latest())
    }

    /// Returns the transport of the client, and drops the client.
    #[must_use]
    pub fn into_transport(self) -> T {
        self.transport
    }

    fn hash_each<I: Item>(&self, items: &[I]) -> Vec<u64> {
        let mut hashes = vec![0; items.len()];
        I::hash_each(items, &self.view.metadata.hasher, &mut hashes);
        hashes
    }

    fn each_hash(
        &self,
        mut view: View,
        kind: Kind,
        hashes: &[u64],
    ) -> Vec<Result<bool, RedisItemError>> {
        let mut exchange = Blocking(&self.transport);
        let chunks = hashes.chunks(MAX_BATCH);
        let run = |hashes| complete(batch(&mut exchange, &mut view, kind, hashes));
        chunks.flat_map(run).collect()
    }
}
