//! A set of ids: the ids of its sources, the allow list, the deny list, and the decision about each id.

mod change;
mod decide;
mod sources;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use parking_lot::Mutex;
use tamis::PlanError;

use crate::ids::batch::Batch;
use crate::ids::change_listener::ChangeListener;
use crate::ids::evidence::{Evidence, Finding};
use crate::ids::generation::Generation;
use crate::ids::generations::Generations;
use crate::ids::id_error::IdError;
use crate::ids::id_set_options::IdSetOptions;
use crate::ids::limiter::Limiter;
use crate::ids::negative_cache::NegativeCache;
use crate::ids::source_ids::SourceIds;
use crate::ids::state::{Policy, SyncState};
use crate::ids::to_id::ToId;

/// The maximum number of recent ids. The set removes the oldest recent id first.
const MAX_RECENT: u64 = 100_000;

/// The number of the first source. A program that fills a set without a source uses the ids of the first source.
const FIRST: usize = 0;

/// The ids that exist. All methods take `&self`, so threads can share the set in an [`Arc`].
///
/// [`from_ids`](Self::from_ids) creates a set of known ids. A [`Source`](crate::Source) fills an empty set and keeps
/// the set in sync. Several sources can fill one set, for example the tables of a sharded database: see
/// [`with_sources`](Self::with_sources) and [`Sources`](crate::Sources). The set stores the canonical text of each id:
/// after `insert("007")`, a set of integers contains the id 7.
///
/// # Examples
///
/// ```
/// use tamis_sources::{IdSet, IdType};
///
/// let products = IdSet::from_ids(IdType::integer(), 1..=1000)?;
/// assert!(products.decide(b"1000").passes() && !products.decide(b"1001").passes());
/// products.insert(1001)?;
/// assert!(products.decide(b"1001").passes());
/// assert!(products.insert("abc").is_err());
///
/// let users = IdSet::from_ids(IdType::text(), ["alice", "bob"])?;
/// assert!(users.decide(b"alice").passes() && !users.decide(b"nobody").passes());
/// # Ok::<(), tamis_sources::IdError>(())
/// ```
#[derive(Debug)]
pub struct IdSet {
    options: IdSetOptions,
    /// The ids of each source. The slice is never empty.
    sources: Box<[SourceIds]>,
    /// For each source, the time until which the ids of the source are complete.
    known_until: Mutex<Box<[Option<Instant>]>>,
    /// The number of running sources.
    running: AtomicUsize,
    /// True if the program has called `set_state` or `expect_pushes`.
    is_filled_by_program: AtomicBool,
    allowed: ArcSwap<HashSet<Box<[u8]>>>,
    denied: ArcSwap<HashSet<Box<[u8]>>>,
    negative: NegativeCache,
    recent: Cache<Box<[u8]>, ()>,
    /// True if `insert_recent` was ever called. Without the flag `has_recent`, the lookup in an empty cache would add a
    /// tenth to the cost of a decision.
    has_recent: AtomicBool,
    limiters: [Option<Limiter>; SyncState::ALL.len()],
    next: Limiter,
    listener: OnceLock<Arc<dyn ChangeListener>>,
    evidence: Evidence,
}

impl IdSet {
    /// Creates a set of `ids` in the state [`SyncState::Synced`]. The set refuses all other ids at once.
    ///
    /// `options` is an [`IdType`](crate::IdType), or [`IdSetOptions`] for other settings. The filter is created for the
    /// lower bound of the iterator's size hint, and grows if the iterator returns more ids. The filter hashes with a
    /// new secret key.
    ///
    /// # Errors
    ///
    /// [`IdError::NotAnId`] at the first value that is not an id of the type; [`IdError::Plan`] if the rate is not
    /// between 0 and 1, or if the system has no memory.
    ///
    /// # Panics
    ///
    /// Panics if the operating system returns no random bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_sources::{IdSet, IdSetOptions, IdType};
    ///
    /// let ids = IdSet::from_ids(IdType::integer(), ["0042000", "7"])?;
    /// assert!(ids.decide(b"42000").passes() && !ids.decide(b"8").passes());
    ///
    /// let options = IdSetOptions { rate: 1e-4, ..IdSetOptions::new(IdType::integer()) };
    /// let error = IdSet::from_ids(options, ["7", "abc"]).unwrap_err();
    /// let start = "\"abc\" is not written as an id of the set: the type of the set is integer";
    /// assert!(error.to_string().starts_with(start));
    /// # Ok::<(), tamis_sources::IdError>(())
    /// ```
    pub fn from_ids(
        options: impl Into<IdSetOptions>,
        ids: impl IntoIterator<Item: ToId>,
    ) -> Result<Self, IdError> {
        let (set, ids) = (Self::new(options)?, ids.into_iter());
        let generation = set.start_generation(ids.size_hint().0 as u64)?;
        let mut batch = Batch::new(&generation);
        for id in ids {
            let text = id.to_id();
            let (id, value) = set.canonical_and_value(&text)?;
            batch.load_key(&id, value)?;
        }
        batch.flush()?;
        set.publish_generation();
        set.set_synced_until(FIRST, None);
        Ok(set)
    }

    /// Creates an empty set with one source in the state [`SyncState::Warming`]. `options` is an
    /// [`IdType`](crate::IdType), or [`IdSetOptions`] for other settings.
    ///
    /// While the set is warming, **every unknown id passes**, by the default [policy](crate::Policies). A
    /// [`Source`](crate::Source) fills the set and changes the state. A program without a source creates the set with
    /// [`from_ids`](Self::from_ids), or inserts all ids and then calls [`set_state`](Self::set_state) with
    /// [`SyncState::Synced`].
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the rate is not between 0 and 1, or if the system has no memory.
    pub fn new(options: impl Into<IdSetOptions>) -> Result<Self, PlanError> {
        Self::with_sources(options, 1)
    }

    /// Creates an empty set as [`new`](Self::new) does, for several sources.
    ///
    /// An id exists if it exists in any source. The set is synced if all sources are synced. The set is warming while
    /// any source is warming, and otherwise stale while any source is stale.
    ///
    /// Each decision may test the filter of each source, so the false positive rates of the sources add up. Therefore
    /// the filter of each source has the rate [`IdSetOptions::rate`] divided by `sources`. At the rate 0.001, each id
    /// takes 17.8 bits with one source, and 28.8 bits with 16 sources.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// Panics if `sources` is 0.
    pub fn with_sources(
        options: impl Into<IdSetOptions>,
        sources: usize,
    ) -> Result<Self, PlanError> {
        assert!(sources > 0, "a set has at least one source");
        let options = options.into();
        let (rate, created) = (options.rate / sources as f64, Instant::now());
        let source_ids = (0..sources).map(|_| SourceIds::new(rate, created));
        let source_ids = source_ids.collect::<Result<_, _>>()?;
        // The LRU policy evicts the oldest entry first. The default policy of the cache would reject new entries.
        let recent = Cache::builder()
            .max_capacity(MAX_RECENT)
            .time_to_live(options.recent_for)
            .eviction_policy(EvictionPolicy::lru());
        let limiters = SyncState::ALL.map(|state| match options.policies.of(state) {
            Policy::Limit(per_second) => Some(Limiter::new(per_second)),
            Policy::Pass | Policy::Reject => None,
        });
        Ok(Self {
            sources: source_ids,
            known_until: Mutex::new(vec![None; sources].into()),
            running: AtomicUsize::new(0),
            is_filled_by_program: AtomicBool::new(false),
            allowed: ArcSwap::default(),
            denied: ArcSwap::default(),
            negative: NegativeCache::new(
                options.negative_requests,
                options.negative_for,
                options.recent_for,
            ),
            recent: recent.build(),
            has_recent: AtomicBool::new(false),
            limiters,
            next: Limiter::new(options.next_per_second),
            listener: OnceLock::new(),
            evidence: Evidence::new(options.is_trusted, options.recent_for),
            options,
        })
    }

    /// Returns the settings.
    #[must_use]
    pub fn options(&self) -> &IdSetOptions {
        &self.options
    }

    /// Returns the sync state of the set: the worst state of its sources.
    #[must_use]
    pub fn state(&self) -> SyncState {
        self.seen(self.worst_state())
    }

    /// Returns the worst state of the sources, without the evidence from the responses of the upstream service.
    fn worst_state(&self) -> SyncState {
        let states = self.sources.iter().map(|source| source.state.get());
        states.fold(SyncState::Synced, SyncState::worse)
    }

    /// Returns `state`, corrected by the evidence from the responses of the upstream service.
    fn seen(&self, state: SyncState) -> SyncState {
        match (state, self.evidence.finding()) {
            (SyncState::Synced, Finding::Unproven) => SyncState::Unproven,
            (SyncState::Synced, Finding::Refuted) => SyncState::Stale,
            (state, _) => state,
        }
    }

    /// Returns the evidence from the responses of the upstream service.
    pub(crate) fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Sets the state of a set that the program fills itself, without a [`Source`](crate::Source). The program calls
    /// this method with [`SyncState::Synced`] after the program has inserted all ids.
    pub fn set_state(&self, state: SyncState) {
        self.expect_pushes();
        self.sources.iter().for_each(|source| source.state.set(state));
    }

    /// Records that the program fills the set itself, for example with a [`PushSource`](crate::PushSource). After this
    /// call, [`lacks_source`](Self::lacks_source) returns false, also while no [`Source`](crate::Source) runs. The
    /// method does not change the state.
    pub fn expect_pushes(&self) {
        // Relaxed here and below: the flag and the number publish no other data.
        self.is_filled_by_program.store(true, Ordering::Relaxed);
    }

    /// Records that a source was started.
    pub(crate) fn add_source(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a source has stopped.
    pub(crate) fn remove_source(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns true if the set would stay [`Warming`](SyncState::Warming) or [`Stale`](SyncState::Stale): a
    /// [`Source`](crate::Source) of the set does not run, and the program has called neither
    /// [`set_state`](Self::set_state) nor [`expect_pushes`](Self::expect_pushes). The inserts of a program do not
    /// change the state.
    #[must_use]
    pub fn lacks_source(&self) -> bool {
        matches!(self.worst_state(), SyncState::Warming | SyncState::Stale)
            && self.running.load(Ordering::Relaxed) < self.sources.len()
            && !self.is_filled_by_program.load(Ordering::Relaxed)
    }

    /// Registers the listener that `create` returns, and returns this listener. The listener receives all changes after
    /// its registration. A set has at most one listener: if a listener is registered, the set returns this listener and
    /// does not call `create`.
    ///
    /// # Panics
    ///
    /// Panics if the set has several sources: a deletion in one source does not mean that the id is deleted.
    pub fn listen(
        &self,
        create: impl FnOnce() -> Arc<dyn ChangeListener>,
    ) -> Arc<dyn ChangeListener> {
        assert_eq!(self.sources.len(), 1, "only a set with one source has a listener");
        Arc::clone(self.listener.get_or_init(create))
    }

    fn canonical<'t>(&self, text: &'t [u8]) -> Result<Cow<'t, [u8]>, IdError> {
        self.canonical_and_value(text).map(|(canonical, _)| canonical)
    }

    fn canonical_and_value<'t>(
        &self,
        text: &'t [u8],
    ) -> Result<(Cow<'t, [u8]>, Option<i64>), IdError> {
        let id_type = &self.options.id;
        id_type.canonical_and_value(text).map_err(|why| IdError::not_an_id(text, id_type, why))
    }

    /// Returns the current generation of each source.
    #[must_use]
    pub fn generations(&self) -> Generations {
        self.sources.iter().map(SourceIds::generation).collect()
    }

    /// Starts a new generation for about `items` ids of the first source. The set also applies all changes after this
    /// call to the new generation. The source [loads](crate::Loader) all ids that existed when this call began, and
    /// then calls [`publish_generation`](Self::publish_generation).
    ///
    /// If an earlier generation was started but not published, the set drops the earlier generation.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the system has no memory.
    pub fn start_generation(&self, items: u64) -> Result<Arc<Generation>, PlanError> {
        Ok(self.start_generation_from(Generation::new(items, self.source_rate())?))
    }

    /// Starts a generation as [`start_generation`](Self::start_generation) does, but `generation` may already contain
    /// ids.
    pub fn start_generation_from(&self, generation: Generation) -> Arc<Generation> {
        self.sources[FIRST].start_generation(generation)
    }

    /// Replaces the current generation of the first source by the started generation. A concurrent decision uses one of
    /// the two generations. The call also clears the negative cache, because an id in the cache may have been created
    /// again.
    ///
    /// # Panics
    ///
    /// Panics if no generation was started.
    pub fn publish_generation(&self) {
        self.publish_generation_of(FIRST);
    }

    /// Drops the started generation of the first source without publishing it.
    pub fn abandon_generation(&self) {
        self.source_ids(FIRST).abandon_generation();
    }

    /// Replaces the list of ids that always pass. The set reads each id as [`insert`](Self::insert) does.
    ///
    /// # Errors
    ///
    /// [`IdError::NotAnId`] at the first value that is not an id of the type. After the error, the list is unchanged.
    pub fn set_allowed(&self, ids: impl IntoIterator<Item: ToId>) -> Result<(), IdError> {
        self.allowed.store(self.list(ids)?);
        Ok(())
    }

    /// Replaces the list of ids that never pass. An id that is in both lists passes. The set reads each id as
    /// [`insert`](Self::insert) does.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`set_allowed`](Self::set_allowed).
    pub fn set_denied(&self, ids: impl IntoIterator<Item: ToId>) -> Result<(), IdError> {
        self.denied.store(self.list(ids)?);
        Ok(())
    }

    fn list(&self, ids: impl IntoIterator<Item: ToId>) -> Result<Arc<HashSet<Box<[u8]>>>, IdError> {
        let ids = ids.into_iter().map(|id| Ok(self.canonical(&id.to_id())?.into()));
        ids.collect::<Result<_, _>>().map(Arc::new)
    }
}

#[cfg(test)]
mod tests;
