//! The ids of one source: which exist, which are allowed or denied, and what is decided about each.

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

/// The most ids that are recent at once. Older ones are forgotten first.
const MAX_RECENT: u64 = 100_000;

/// The ids of a source. All methods take `&self`; threads share it in an [`Arc`].
///
/// A source calls [`insert`](Self::insert) and [`delete`](Self::delete) for each change, and builds
/// generations with [`start_generation`](Self::start_generation).
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
    /// The generation whose full read runs. It gets all changes too.
    building: ArcSwapOption<Generation>,
    state: TimedState,
    allowed: ArcSwap<HashSet<Box<[u8]>>>,
    denied: ArcSwap<HashSet<Box<[u8]>>>,
    negative: NegativeCache,
    recent: Cache<Box<[u8]>, ()>,
    /// True if an id was ever recent. A lookup in an empty cache costs a tenth of a decision.
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
    /// [`PlanError`] for a rate that is not between 0 and 1, or if there is no memory.
    pub fn new(options: IdSetOptions) -> Result<Self, PlanError> {
        let first = Generation::new(0, options.rate)?;
        // The oldest entry goes first. The default policy of the cache drops new ones.
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

    /// Returns how well the guard knows the source.
    #[must_use]
    pub fn state(&self) -> SyncState {
        self.seen(self.state.get())
    }

    /// Returns the state as the answers of the service show it.
    fn seen(&self, state: SyncState) -> SyncState {
        match (state, self.evidence.finding()) {
            (SyncState::Synced, Finding::Unproven) => SyncState::Unproven,
            (SyncState::Synced, Finding::Refuted) => SyncState::Stale,
            (state, _) => state,
        }
    }

    /// Returns what the answers of the service show.
    pub(crate) fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Sets the state to stale, unless the set was never synced.
    pub(crate) fn end_sync(&self) {
        if self.state.get() == SyncState::Synced {
            self.state.set(SyncState::Stale);
        }
    }

    /// Sets the state. The source calls this. A program that fills the set itself calls it after it has
    /// loaded all ids.
    pub fn set_state(&self, state: SyncState) {
        self.state.set(state);
    }

    /// Sets the state to synced until `end`. After `end`, unknown ids are decided as in the state stale.
    pub(crate) fn set_synced_until(&self, end: Instant) {
        self.state.set_synced_until(end);
    }

    /// Records that the set has all ids that were committed before `moment`; `None` after changes were
    /// lost.
    pub(crate) fn set_known_until(&self, moment: Option<Instant>) {
        if let Some(moment) = moment {
            self.evidence.settle(moment, &self.current.load());
        }
        if let Some(listener) = self.listener.get() {
            listener.set_known_until(moment);
        }
    }

    /// Passes all changes from now on to the listener that `create` returns, and returns it. A set has one listener: if
    /// there is one, the set returns it and does not call `create`.
    pub fn listen(
        &self,
        create: impl FnOnce() -> Arc<dyn ChangeListener>,
    ) -> Arc<dyn ChangeListener> {
        Arc::clone(self.listener.get_or_init(create))
    }

    /// Applies a change, and passes it to the listener.
    fn change<R>(&self, kind: ChangeKind, id: &[u8], apply: impl Fn() -> R) -> R {
        let Some(listener) = self.listener.get() else { return apply() };
        let mut result = None;
        listener.record(kind, id, &mut || result = Some(apply()));
        result.expect("a listener applies the change")
    }

    /// Returns the generation in use.
    #[must_use]
    pub fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Returns the key of an id: several texts may be one id of the source.
    fn key<'i>(&self, id: &'i [u8]) -> Cow<'i, [u8]> {
        self.current.load().fold().key(id)
    }

    /// Starts a new generation for about `items` ids. From now on it gets all changes. The source
    /// [loads](Generation::load) all ids that existed when this call began, and then calls
    /// [`publish_generation`](Self::publish_generation).
    ///
    /// A generation that was started before and not published is dropped.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if there is no memory.
    pub fn start_generation(&self, items: u64) -> Result<Arc<Generation>, PlanError> {
        Ok(self.start_generation_from(Generation::new(items, self.options.rate)?))
    }

    /// As [`start_generation`](Self::start_generation), with a generation that has ids already.
    pub fn start_generation_from(&self, generation: Generation) -> Arc<Generation> {
        let generation = Arc::new(generation);
        self.building.store(Some(Arc::clone(&generation)));
        generation
    }

    /// Replaces the generation in use by the one that was started. Requests that are being decided
    /// use one or the other. Clears the negative cache, because an id in it may have been created
    /// again.
    ///
    /// # Panics
    ///
    /// If no generation was started.
    pub fn publish_generation(&self) {
        let building = self.building.load_full().expect("a generation was started");
        building.forget_absent_deletions();
        // Before the swap, so that no decision takes an unproven generation for a proven one.
        self.evidence.start(&building);
        let mut old = None;
        let mut swap = || {
            // In this order, a change reaches the new generation at every moment.
            old = Some(self.current.swap(Arc::clone(&building)));
            self.building.store(None);
        };
        match self.listener.get() {
            Some(listener) => listener.replace(&mut swap),
            None => swap(),
        }
        // Not above, where other changes wait: freeing a large filter takes a while.
        drop(old);
        self.negative.clear();
    }

    /// Drops the generation that was started.
    pub fn abandon_generation(&self) {
        self.building.store(None);
    }

    /// Records that an id exists now. `id` is in its canonical text.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a filter must grow and there is no memory. The id is known nevertheless.
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
        // A generation that was published between the two lines above has the id from neither.
        self.current.load().insert(id, value)?;
        self.negative.remove(&self.key(id));
        current.and(building)
    }

    /// Records that an id was created a moment ago, as an answer to a request or a message of the
    /// program shows. The id passes for [`IdSetOptions::recent_for`], even if the source still reports an
    /// older deletion.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_recent(&self, id: &[u8]) -> Result<(), PlanError> {
        self.recent.insert(self.key(id).into(), ());
        // Release: a reader that sees it also sees the entry.
        self.has_recent.store(true, Ordering::Release);
        self.change(ChangeKind::InsertRecent, id, || self.apply_insert(id))
    }

    /// Records that an id was deleted. `id` is in its canonical text.
    pub fn delete(&self, id: &[u8]) {
        self.change(ChangeKind::Delete, id, || {
            self.delete_current(id);
            if let Some(building) = &*self.building.load() {
                // Its full read may find the id later.
                building.delete(id);
            }
            self.delete_current(id);
        });
    }

    fn delete_current(&self, id: &[u8]) {
        let current = self.current.load();
        // A source may report all ids that were ever deleted. Those that the filter does not have
        // need no memory.
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

    /// Decides about an id as a request writes it.
    #[must_use]
    pub fn decide(&self, text: &[u8]) -> Verdict {
        match self.options.id.canonical(text) {
            Ok(id) => self.decide_id(&id),
            Err(_) => Verdict::Refuse(RefuseReason::NotAnId),
        }
    }

    /// Decides about an id in its canonical text. The negative cache does not count, because it is
    /// about requests.
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
        // Before the generation: a state that was set after a publication belongs to it.
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

    /// Records that the service answered a request for an id of the set with a status from 200 to 299. Such ids prove a set
    /// that is read from a filter.
    pub fn found(&self, id: &[u8]) {
        if self.evidence.is_open() {
            self.evidence.found(id, &self.generation());
        }
    }

    /// Records that the service answered a request for an unknown id with a status from 200 to 299. Many such ids show that
    /// the source is read wrongly.
    pub fn missed(&self, id: &[u8]) {
        self.evidence.missed(id);
    }

    /// Tests whether an id in its canonical text passes because it is known. The lists, the state
    /// and the policies do not count.
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

    /// Tests whether an id is just above the highest known one, and may pass.
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

    /// Returns a token for [`not_found`](Self::not_found). Call this before the request is forwarded: if
    /// the id is inserted meanwhile, `not_found` ignores the 404.
    #[must_use]
    pub fn passed(&self, id: &[u8]) -> Passed {
        self.negative.passed(&self.key(id))
    }

    /// Records that the service answered a request with 404, although its id passed. The same
    /// request is refused for a while, unless the id was created meanwhile, or less than
    /// [`IdSetOptions::recent_for`] ago: the service may read from a replica that lags.
    pub fn not_found(&self, id: &[u8], passed: Passed, request: RequestKey) {
        self.negative.insert(&self.key(id), passed, request);
    }

    /// Tests whether the service answered the same request with 404 a short time ago.
    #[must_use]
    pub fn is_not_found(&self, id: &[u8], request: RequestKey) -> bool {
        self.negative.contains(&self.key(id), request)
    }
}

#[cfg(test)]
mod tests;
