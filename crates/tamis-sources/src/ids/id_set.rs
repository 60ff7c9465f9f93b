//! The ids of one source: the existing ids, the allow list, the deny list, and the decision about each id.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tamis::PlanError;

use crate::ids::change_kind::ChangeKind;
use crate::ids::change_listener::ChangeListener;
use crate::ids::evidence::{Evidence, Finding};
use crate::ids::generation::Generation;
use crate::ids::id_set_options::IdSetOptions;
use crate::ids::limiter::Limiter;
use crate::ids::negative_cache::{NegativeCache, Passed, RequestKey};
use crate::ids::state::{Policy, SyncState};
use crate::ids::timed_state::TimedState;
use crate::ids::verdict::{PassReason, RefuseReason, Verdict};

/// The maximum number of recent ids. The set removes the oldest recent id first.
const MAX_RECENT: u64 = 100_000;

/// The ids of a source. All methods take `&self`, so threads can share the set in an [`Arc`].
///
/// A source calls [`insert`](Self::insert) and [`delete`](Self::delete) for each change. A source builds generations
/// with [`start_generation`](Self::start_generation).
///
/// # Examples
///
/// ```
/// use tamis_sources::{IdSet, IdSetOptions, IdType, SyncState};
///
/// let ids = IdSet::new(IdSetOptions::new(IdType::Text { max_bytes: 100 }))?;
/// let generation = ids.start_generation(1000)?;
/// generation.load(b"alice", None)?;
/// ids.publish_generation();
/// ids.set_state(SyncState::Synced);
/// assert!(ids.decide(b"alice").passes() && !ids.decide(b"nobody").passes());
/// ids.insert(b"bob")?;
/// assert!(ids.decide(b"bob").passes());
/// # Ok::<(), tamis_sources::PlanError>(())
/// ```
#[derive(Debug)]
pub struct IdSet {
    options: IdSetOptions,
    current: ArcSwap<Generation>,
    /// The generation whose full read is running. The set applies each change to the current generation and to this
    /// generation.
    building: ArcSwapOption<Generation>,
    state: TimedState,
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
    /// Creates an empty set in the state [`SyncState::Warming`].
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the rate is not between 0 and 1, or if the system has no memory.
    pub fn new(options: IdSetOptions) -> Result<Self, PlanError> {
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

    /// Sets the state. A source calls this method for its set. A program without a source calls this method after the
    /// program has loaded all ids.
    pub fn set_state(&self, state: SyncState) {
        self.state.set(state);
    }

    /// Sets the state to synced until `end`. After `end`, the set decides about unknown ids as in the state stale.
    pub(crate) fn set_synced_until(&self, end: Instant) {
        self.state.set_synced_until(end);
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

    /// Applies a change, and sends the change to the listener.
    fn change<R>(&self, kind: ChangeKind, id: &[u8], apply: impl Fn() -> R) -> R {
        let Some(listener) = self.listener.get() else { return apply() };
        let mut result = None;
        listener.record(kind, id, &mut || result = Some(apply()));
        result.expect("a listener applies the change")
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
    /// generation. The source [loads](Generation::load) all ids that existed when this call began, and then calls
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

    /// Records that an id exists now. `id` is in its canonical text.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a filter must grow and the system has no memory. After the error, the set contains the id
    /// nevertheless.
    pub fn insert(&self, id: &[u8]) -> Result<(), PlanError> {
        self.change(ChangeKind::Insert, id, || self.apply_insert(id))
    }

    fn apply_insert(&self, id: &[u8]) -> Result<(), PlanError> {
        let value = self.options.id.value_of(id);
        let current = self.current.load().insert(id, value);
        let building = match &*self.building.load() {
            Some(building) => building.insert(id, value),
            None => Ok(()),
        };
        // If a generation was published between the two inserts above, neither insert has changed the new generation.
        // Therefore a third insert adds the id to the new generation.
        self.current.load().insert(id, value)?;
        self.negative.remove(&self.key(id));
        current.and(building)
    }

    /// Records that an id was created recently, for example because a response or a push message contains the id. The
    /// id passes for [`IdSetOptions::recent_for`], even if the source still reports an older deletion.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert`](Self::insert).
    pub fn insert_recent(&self, id: &[u8]) -> Result<(), PlanError> {
        self.recent.insert(self.key(id).into(), ());
        // Release: a reader that sees the flag also sees the entry.
        self.has_recent.store(true, Ordering::Release);
        self.change(ChangeKind::InsertRecent, id, || self.apply_insert(id))
    }

    /// Records that an id was deleted. `id` is in its canonical text.
    pub fn delete(&self, id: &[u8]) {
        self.change(ChangeKind::Delete, id, || {
            self.delete_current(id);
            if let Some(building) = &*self.building.load() {
                // After this deletion, the full read of the building generation may find the id.
                building.delete(id);
            }
            self.delete_current(id);
        });
    }

    fn delete_current(&self, id: &[u8]) {
        let current = self.current.load();
        // A source may report all ids that were ever deleted. If the filter does not contain an id, a tombstone would
        // waste memory.
        if current.contains(id) {
            current.delete(id);
        }
    }

    /// Replaces the list of ids that always pass.
    pub fn set_allowed(&self, ids: HashSet<Box<[u8]>>) {
        self.allowed.store(Arc::new(ids));
    }

    /// Replaces the list of ids that never pass. An id that is in both lists passes.
    pub fn set_denied(&self, ids: HashSet<Box<[u8]>>) {
        self.denied.store(Arc::new(ids));
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
