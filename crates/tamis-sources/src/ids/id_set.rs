//! The ids of one source: the existing ids, the allow list, the deny list, and the decision about each id.

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
use crate::ids::change_kind::ChangeKind;
use crate::ids::change_listener::ChangeListener;
use crate::ids::evidence::{Evidence, Finding};
use crate::ids::generation::Generation;
use crate::ids::id_error::IdError;
use crate::ids::id_set_options::IdSetOptions;
use crate::ids::limiter::Limiter;
use crate::ids::negative_cache::{NegativeCache, Passed, RequestKey};
use crate::ids::state::{Policy, SyncState};
use crate::ids::timed_state::TimedState;
use crate::ids::to_id::ToId;
use crate::ids::verdict::{PassReason, RefuseReason, Verdict};

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
                options.negative_ids,
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

    /// Applies a change to the id with a key, and sends the change to the listener. The key is the canonical text of
    /// the id, folded if the source folds texts. The set does not check the key: [`insert`](Self::insert),
    /// [`insert_recent`](Self::insert_recent) and [`delete`](Self::delete) check an id.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a filter must grow and the system has no memory. After the error, the set contains the id
    /// nevertheless.
    ///
    /// # Panics
    ///
    /// Panics if the [listener](Self::listen) of the set does not apply the change.
    pub fn apply_change(&self, kind: ChangeKind, key: &[u8]) -> Result<(), PlanError> {
        let Some(listener) = self.listener.get() else { return self.apply(kind, key) };
        let mut result = None;
        listener.record(kind, key, &mut || result = Some(self.apply(kind, key)));
        result.expect("a listener applies the change")
    }

    fn apply(&self, kind: ChangeKind, key: &[u8]) -> Result<(), PlanError> {
        match kind {
            ChangeKind::Insert => self.apply_insert(key),
            ChangeKind::InsertRecent => {
                self.recent.insert(self.key(key).into(), ());
                // Release: a reader that sees the flag also sees the entry.
                self.has_recent.store(true, Ordering::Release);
                self.apply_insert(key)
            }
            ChangeKind::Delete => {
                self.apply_delete(key);
                Ok(())
            }
        }
    }

    /// Inserts the id with a key, as [`apply_change`](Self::apply_change) does.
    #[cfg(feature = "databases")]
    pub(crate) fn insert_key(&self, key: &[u8]) -> Result<(), PlanError> {
        self.apply_change(ChangeKind::Insert, key)
    }

    /// Deletes the id with a key, as [`apply_change`](Self::apply_change) does.
    #[cfg(feature = "databases")]
    pub(crate) fn delete_key(&self, key: &[u8]) {
        self.apply_change(ChangeKind::Delete, key).expect("a deletion needs no new filter");
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
        building.forget_absent_deletions();
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

    /// Records that an id exists now. The set reads the id like a value of a request: a set of integers takes `42`,
    /// `"42"`, `b"42"` and `"0042"` as the id 42. An insert does not change the [state](Self::state) of the set.
    ///
    /// # Errors
    ///
    /// [`IdError::NotAnId`] if the value is not an id of the type; [`IdError::Plan`] if a filter must grow and the
    /// system has no memory. After `Plan`, the set contains the id nevertheless.
    pub fn insert(&self, id: impl ToId) -> Result<(), IdError> {
        Ok(self.apply_change(ChangeKind::Insert, &self.canonical(&id.to_id())?)?)
    }

    fn apply_insert(&self, id: &[u8]) -> Result<(), PlanError> {
        let value = self.options.id.value_of(id);
        let current = self.current.load().insert_key(id, value);
        let building = match &*self.building.load() {
            Some(building) => building.insert_key(id, value),
            None => Ok(()),
        };
        // If a generation was published between the two inserts above, neither insert has changed the new generation.
        // Therefore a third insert adds the id to the new generation.
        self.current.load().insert_key(id, value)?;
        self.negative.remove(&self.key(id));
        current.and(building)
    }

    /// Records that an id was created recently, for example because a response or a push message contains the id. The
    /// id passes for [`IdSetOptions::recent_for`], even if the source still reports an older deletion.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert`](Self::insert).
    pub fn insert_recent(&self, id: impl ToId) -> Result<(), IdError> {
        Ok(self.apply_change(ChangeKind::InsertRecent, &self.canonical(&id.to_id())?)?)
    }

    /// Records that an id was deleted. The set reads the id as [`insert`](Self::insert) does.
    ///
    /// # Errors
    ///
    /// [`IdError::NotAnId`] if the value is not an id of the type.
    pub fn delete(&self, id: impl ToId) -> Result<(), IdError> {
        Ok(self.apply_change(ChangeKind::Delete, &self.canonical(&id.to_id())?)?)
    }

    fn apply_delete(&self, id: &[u8]) {
        self.delete_current(id);
        if let Some(building) = &*self.building.load() {
            // After this deletion, the full read of the building generation may find the id.
            building.delete_key(id);
        }
        self.delete_current(id);
    }

    fn delete_current(&self, id: &[u8]) {
        let current = self.current.load();
        // A source may report all ids that were ever deleted. If the filter does not contain an id, a tombstone would
        // waste memory.
        if current.contains(id) {
            current.delete_key(id);
        }
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

    /// Decides about an id. `text` is the id as written in the request.
    #[must_use]
    pub fn decide(&self, text: &[u8]) -> Verdict {
        match self.options.id.canonical(text) {
            Ok(id) => self.decide_id(&id),
            Err(_) => Verdict::Refuse(RefuseReason::NotAnId),
        }
    }

    /// Decides about an id in its canonical text. The function ignores the negative cache, because the cache stores
    /// requests and not ids.
    #[must_use]
    pub fn decide_id(&self, id: &[u8]) -> Verdict {
        let has = |list: &ArcSwap<HashSet<Box<[u8]>>>| {
            let list = list.load();
            !list.is_empty() && list.contains(id)
        };
        if has(&self.allowed) {
            return Verdict::Pass(PassReason::Allowed);
        }
        if has(&self.denied) {
            return Verdict::Refuse(RefuseReason::Denied);
        }
        // The state is read before the generation. If a state was set after a publication, a decision with this state
        // also uses the published generation.
        let state = self.state.read();
        let generation = self.current.load();
        if generation.contains(id) {
            return Verdict::Pass(PassReason::Known);
        }
        if self.has_recent.load(Ordering::Acquire)
            && self.recent.contains_key(&*generation.fold().key(id))
        {
            return Verdict::Pass(PassReason::Recent);
        }
        if self.is_next(id, &generation) {
            return Verdict::Pass(PassReason::Next);
        }
        self.decide_unknown(self.seen(self.state.at_now(state)))
    }

    /// Records that the upstream service responded with a status from 200 to 299 for an id of the set. If the set comes
    /// from a filter, ids with a successful response prove the set.
    pub fn found(&self, id: &[u8]) {
        if self.evidence.is_open() {
            self.evidence.found(id, &self.generation());
        }
    }

    /// Records that the upstream service responded with a status from 200 to 299 for an unknown id. Many unknown ids
    /// with a successful response show that the guard decodes the source wrongly.
    pub fn missed(&self, id: &[u8]) {
        self.evidence.missed(id);
    }

    /// Tests whether the set contains an id in its canonical text. The function ignores the allow list, the deny list,
    /// the state and the policies.
    pub(crate) fn knows(&self, id: &[u8]) -> bool {
        let (generation, key) = (self.generation(), self.key(id));
        match generation.contains(id) {
            true => !self.negative.contains_any(&key),
            false => self.recent.contains_key(&*key),
        }
    }

    fn decide_unknown(&self, state: SyncState) -> Verdict {
        let (passed, refused) = match state {
            SyncState::Synced => (PassReason::Unsure, RefuseReason::Absent),
            SyncState::Unproven => (PassReason::Unproven, RefuseReason::Unsure),
            SyncState::Warming | SyncState::Stale => (PassReason::Unsure, RefuseReason::Unsure),
        };
        let passes = match self.options.policies.of(state) {
            Policy::Pass => true,
            Policy::Reject => false,
            Policy::Limit(_) => {
                let limiter = self.limiters[state as usize].as_ref();
                limiter.is_some_and(|limiter| limiter.allows(Instant::now()))
            }
        };
        if passes { Verdict::Pass(passed) } else { Verdict::Refuse(refused) }
    }

    /// Tests whether an id is slightly above the highest id in the set, and whether the rate limit lets the id pass.
    fn is_next(&self, id: &[u8], generation: &Generation) -> bool {
        if self.options.next_ids == 0 {
            return false;
        }
        let value = self.options.id.value_of(id);
        let (Some(value), Some(highest)) = (value, generation.highest()) else { return false };
        let distance = i128::from(value) - i128::from(highest);
        (1..=i128::from(self.options.next_ids)).contains(&distance)
            && self.next.allows(Instant::now())
    }

    /// Returns a token for [`not_found`](Self::not_found). The caller must call this method before it forwards the
    /// request. If the id is inserted after this call, `not_found` ignores the 404.
    #[must_use]
    pub fn passed(&self, id: &[u8]) -> Passed {
        self.negative.passed(&self.key(id))
    }

    /// Records that the upstream service responded with 404 for an id that passed. After this call, the guard refuses
    /// the same request for [`IdSetOptions::negative_for`].
    ///
    /// The set ignores the 404 if the id was created after [`passed`](Self::passed) was called, or within
    /// [`IdSetOptions::recent_for`] before the response. The upstream service may read an inserted id from a replica
    /// that lags.
    pub fn not_found(&self, id: &[u8], passed: Passed, request: RequestKey) {
        self.negative.insert(&self.key(id), passed, request);
    }

    /// Tests whether the upstream service recently responded with 404 to the same request.
    #[must_use]
    pub fn is_not_found(&self, id: &[u8], request: RequestKey) -> bool {
        self.negative.contains(&self.key(id), request)
    }
}

#[cfg(test)]
mod tests;
