//! The decisions of a set about the ids of requests, and the responses of the upstream service to these requests.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arc_swap::ArcSwap;

use crate::ids::folds::Folds;
use crate::ids::id_set::{FIRST, IdSet};
use crate::ids::negative_cache::{Passed, RequestKey};
use crate::ids::state::{Policy, SyncState};
use crate::ids::timed_state::ReadState;
use crate::ids::verdict::{PassReason, RefuseReason, Verdict};

impl IdSet {
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
        let (mut state, mut folds) = (ReadState::BEST, Folds::default());
        for source in &self.sources {
            // The state of a source is read before its generation. If a state was set after a publication, a decision
            // with this state also uses the published generation.
            state = state.worse(source.state.read());
            let generation = source.current();
            if generation.contains(id) {
                return Verdict::Pass(PassReason::Known);
            }
            folds.insert(generation.fold());
        }
        if self.has_recent.load(Ordering::Acquire) && self.is_recent(id, folds) {
            return Verdict::Pass(PassReason::Recent);
        }
        if self.is_next(id) {
            return Verdict::Pass(PassReason::Next);
        }
        self.decide_unknown(self.state_at_now(state))
    }

    /// Returns the state of the set for a decision now. `read` combines the states of all sources.
    fn state_at_now(&self, read: ReadState) -> SyncState {
        // All sources have the same clock.
        self.seen(self.sources[FIRST].state.at_now(read))
    }

    /// Tests whether an id was created recently. An insert stores the key of the id under each fold.
    fn is_recent(&self, id: &[u8], folds: Folds) -> bool {
        folds.iter().any(|fold| self.recent.contains_key(&*fold.key(id)))
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
    fn is_next(&self, id: &[u8]) -> bool {
        if self.options.next_ids == 0 {
            return false;
        }
        let value = self.options.id.value_of(id);
        let highest = self.sources.iter().filter_map(|source| source.current().highest()).max();
        let (Some(value), Some(highest)) = (value, highest) else { return false };
        let distance = i128::from(value) - i128::from(highest);
        (1..=i128::from(self.options.next_ids)).contains(&distance)
            && self.next.allows(Instant::now())
    }

    /// Tests whether the set contains an id in its canonical text. The function ignores the allow list, the deny list,
    /// the state and the policies.
    pub(crate) fn knows(&self, id: &[u8]) -> bool {
        if !self.contains(id) {
            return self.is_recent(id, self.folds());
        }
        !self.negative_key(id).is_some_and(|key| self.negative.contains_any(&key))
    }

    /// Tests whether the current generation of any source contains an id.
    pub(crate) fn contains(&self, id: &[u8]) -> bool {
        self.sources.iter().any(|source| source.current().contains(id))
    }

    /// Returns the key of an id in the negative cache. Returns `None` if the folds of the sources differ.
    ///
    /// A source reports an insert with the key of its own fold. This key does not show the keys of other folds, so the
    /// insert could not remove the id from the cache. Therefore a set whose folds differ does not use the cache. If the
    /// folds change, a generation is published, which clears the cache.
    fn negative_key<'i>(&self, id: &'i [u8]) -> Option<Cow<'i, [u8]>> {
        Some(self.folds().single()?.key(id))
    }

    /// Records that the upstream service responded with a status from 200 to 299 for an id of the set. If the set comes
    /// from a filter, ids with a successful response prove the set. The negative cache forgets an id with a successful
    /// response, because the id exists.
    pub fn found(&self, id: &[u8]) {
        if let Some(key) = self.negative_key(id) {
            self.negative.forget(&key);
        }
        if self.evidence.is_open() {
            // Only a set with one source comes from a filter.
            let key = self.sources[FIRST].current().fold().key(id);
            self.evidence.found(&key, &|id| self.contains(id));
        }
    }

    /// Records that the upstream service responded with a status from 200 to 299 for an unknown id. Many unknown ids
    /// with a successful response show that the guard decodes the source wrongly.
    pub fn missed(&self, id: &[u8]) {
        self.evidence.missed(id);
    }

    /// Returns a token for [`not_found`](Self::not_found). The caller must call this method before it forwards the
    /// request. If the id is inserted after this call, `not_found` ignores the 404.
    #[must_use]
    pub fn passed(&self, id: &[u8]) -> Passed {
        // Without a key, `not_found` has no effect. If the folds become equal meanwhile, a generation was published, so
        // `not_found` ignores the token.
        let key = self.negative_key(id).unwrap_or(Cow::Borrowed(id));
        self.negative.passed(&key)
    }

    /// Records that the upstream service responded with 404 for an id that passed. After this call, the guard refuses
    /// the same request for [`IdSetOptions::negative_for`](crate::IdSetOptions::negative_for), until the id changes or
    /// gets a successful response.
    ///
    /// The set ignores the 404 if the id was changed after [`passed`](Self::passed) was called, or within
    /// [`IdSetOptions::recent_for`](crate::IdSetOptions::recent_for) before the response. The upstream service may read
    /// an inserted id from a replica that lags. The set also ignores the 404 if the columns of its sources have
    /// different collations.
    pub fn not_found(&self, id: &[u8], passed: Passed, request: RequestKey) {
        if let Some(key) = self.negative_key(id) {
            self.negative.insert(&key, passed, request);
        }
    }

    /// Removes all responses from the negative cache, because the row of any id may have changed.
    #[cfg(feature = "databases")]
    pub(crate) fn forget_responses(&self) {
        self.negative.clear();
    }

    /// Tests whether the upstream service recently responded with 404 to the same request. Returns false unless the set
    /// is synced or unproven, because a stale set does not receive the changes that make an id visible.
    #[must_use]
    pub fn is_not_found(&self, id: &[u8], request: RequestKey) -> bool {
        // The states are read before the cache. If a source set its state after the source applied a change, a decision
        // with this state also uses the cache without the entries that the change removed.
        let reads = self.sources.iter().map(|source| source.state.read());
        let state = reads.fold(ReadState::BEST, ReadState::worse);
        self.negative_key(id).is_some_and(|key| self.negative.contains(&key, request))
            && self.state_at_now(state).is_complete()
    }
}
