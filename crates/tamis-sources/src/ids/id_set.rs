//! The ids of one source: the existing ids, the allow list, the deny list, and the decision about each id.

mod change;
mod decide;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tamis::PlanError;

use crate::ids::batch::Batch;
use crate::ids::change_listener::ChangeListener;
use crate::ids::evidence::{Evidence, Finding};
use crate::ids::generation::Generation;
use crate::ids::id_error::IdError;
use crate::ids::id_set_options::IdSetOptions;
use crate::ids::limiter::Limiter;
use crate::ids::negative_cache::NegativeCache;
use crate::ids::state::{Policy, SyncState};
use crate::ids::timed_state::TimedState;
use crate::ids::to_id::ToId;

/// The maximum number of recent ids. The set removes the oldest recent id first.
const MAX_RECENT: u64 = 100_000;

/// The ids that exist. All methods take `&self`, so threads can share the set in an [`Arc`].
///
/// [`from_ids`](Self::from_ids) creates a set of known ids. A [`Source`](crate::Source) fills an empty set and keeps
/// the set in sync. The set stores the canonical text of each id: after `insert("007")`, a set of integers contains the
/// id 7.
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
    current: ArcSwap<Generation>,
    /// The generation whose full read is running. The set applies each change to the current generation and to this
    /// generation.
    building: ArcSwapOption<Generation>,
    state: TimedState,
    /// The number of running sources.
    sources: AtomicUsize,
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
        set.set_synced_until(None);
        Ok(set)
    }

    /// Creates an empty set in the state [`SyncState::Warming`]. `options` is an [`IdType`](crate::IdType), or
    /// [`IdSetOptions`] for other settings.
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
        let options = options.into();
        let first = Generation::new(0, options.rate)?;
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
            current: ArcSwap::from_pointee(first),
            building: ArcSwapOption::empty(),
            state: TimedState::new(),
            sources: AtomicUsize::new(0),
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

    /// Returns the sync state of the set.
    #[must_use]
    pub fn state(&self) -> SyncState {
        self.seen(self.state.get())
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

    /// Sets a synced state to stale. All states except synced stay unchanged.
    pub(crate) fn end_sync(&self) {
        if self.state.get() == SyncState::Synced {
            self.state.set(SyncState::Stale);
        }
    }

    /// Sets the state of a set that the program fills itself, without a [`Source`](crate::Source). The program calls
    /// this method with [`SyncState::Synced`] after the program has inserted all ids.
    pub fn set_state(&self, state: SyncState) {
        self.expect_pushes();
        self.state.set(state);
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
        self.sources.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a source has stopped.
    pub(crate) fn remove_source(&self) {
        self.sources.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns true if the set would stay [`Warming`](SyncState::Warming) or [`Stale`](SyncState::Stale): no
    /// [`Source`](crate::Source) of the set runs, and the program has called neither [`set_state`](Self::set_state) nor
    /// [`expect_pushes`](Self::expect_pushes). The inserts of a program do not change the state.
    #[must_use]
    pub fn lacks_source(&self) -> bool {
        matches!(self.state.get(), SyncState::Warming | SyncState::Stale)
            && self.sources.load(Ordering::Relaxed) == 0
            && !self.is_filled_by_program.load(Ordering::Relaxed)
    }

    /// Sets the state to synced until `end`. After `end`, the set decides about unknown ids as in the state stale. With
    /// `None`, the state synced has no deadline.
    pub(crate) fn set_synced_until(&self, end: Option<Instant>) {
        match end {
            Some(end) => self.state.set_synced_until(end),
            None => self.state.set(SyncState::Synced),
        }
    }

    /// Records that the set contains all ids that were committed before `moment`. `None` means that changes were lost.
    pub(crate) fn set_known_until(&self, moment: Option<Instant>) {
        if let Some(moment) = moment {
            self.evidence.settle(moment, &self.current.load());
        }
        if let Some(listener) = self.listener.get() {
            listener.set_known_until(moment);
        }
    }

    /// Registers the listener that `create` returns, and returns this listener. The listener receives all changes after
    /// its registration. A set has at most one listener: if a listener is registered, the set returns this listener and
    /// does not call `create`.
    pub fn listen(
        &self,
        create: impl FnOnce() -> Arc<dyn ChangeListener>,
    ) -> Arc<dyn ChangeListener> {
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

    /// Returns the current generation.
    #[must_use]
    pub fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Returns the key of an id. Several texts may have the same key in the source.
    fn key<'i>(&self, id: &'i [u8]) -> Cow<'i, [u8]> {
        self.current.load().fold().key(id)
    }

    /// Starts a new generation for about `items` ids. The set also applies all changes after this call to the new
    /// generation. The source [loads](crate::Loader) all ids that existed when this call began, and then calls
    /// [`publish_generation`](Self::publish_generation).
    ///
    /// If an earlier generation was started but not published, the set drops the earlier generation.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the system has no memory.
    pub fn start_generation(&self, items: u64) -> Result<Arc<Generation>, PlanError> {
        Ok(self.start_generation_from(Generation::new(items, self.options.rate)?))
    }

    /// Starts a generation as [`start_generation`](Self::start_generation) does, but `generation` may already contain
    /// ids.
    pub fn start_generation_from(&self, generation: Generation) -> Arc<Generation> {
        let generation = Arc::new(generation);
        self.building.store(Some(Arc::clone(&generation)));
        generation
    }

    /// Replaces the current generation by the started generation. A concurrent decision uses one of the two
    /// generations. The call also clears the negative cache, because an id in the cache may have been created again.
    ///
    /// # Panics
    ///
    /// Panics if no generation was started.
    pub fn publish_generation(&self) {
        let building = self.building.load_full().expect("a generation was started");
        building.end_full_read();
        // The evidence is updated before the swap, so that no decision treats an unproven generation as proven.
        self.evidence.start(&building);
        let mut old = None;
        let mut swap = || {
            // `current` is replaced before `building` is cleared, so that each change reaches the new generation
            // through one of the two fields.
            old = Some(self.current.swap(Arc::clone(&building)));
            self.building.store(None);
        };
        match self.listener.get() {
            Some(listener) => listener.replace(&mut swap),
            None => swap(),
        }
        // The old generation is dropped outside of the listener, because freeing a large filter takes time, and other
        // changes would wait for the listener.
        drop(old);
        self.negative.clear();
    }

    /// Drops the started generation without publishing it.
    pub fn abandon_generation(&self) {
        self.building.store(None);
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
