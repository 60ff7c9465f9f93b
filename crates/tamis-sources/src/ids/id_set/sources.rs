//! The methods with which the sources of a set report their state and their generations. Each source has a number: the
//! index of the ids of the source in the set.

use std::sync::Arc;
use std::time::Instant;

use crate::ids::folds::Folds;
use crate::ids::id_set::IdSet;
use crate::ids::source_ids::SourceIds;
use crate::ids::state::SyncState;

impl IdSet {
    /// Returns the number of sources for which the set was created.
    #[must_use]
    pub fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Returns the ids of a source.
    pub(crate) fn source_ids(&self, source: usize) -> &SourceIds {
        &self.sources[source]
    }

    /// Returns the false positive rate of the filter of each source. The rates of all sources add up to the rate of the
    /// set, because a decision may test the filter of each source.
    pub(crate) fn source_rate(&self) -> f64 {
        self.options.rate / self.sources.len() as f64
    }

    /// Returns the planned number of ids of each source.
    pub(crate) fn source_items(&self) -> u64 {
        self.options.items.div_ceil(self.sources.len() as u64)
    }

    /// Returns the folds of the current generations.
    pub(crate) fn folds(&self) -> Folds {
        self.sources.iter().map(|source| source.current().fold()).collect()
    }

    /// Returns the state of a source. If the set has only this source, the state respects the evidence from the
    /// responses of the upstream service. The evidence does not show which of several sources lacks an id.
    pub(crate) fn state_of(&self, source: usize) -> SyncState {
        match self.sources.len() {
            1 => self.state(),
            _ => self.sources[source].state.get(),
        }
    }

    /// Sets the state of a source to synced until `end`. After `end`, the set decides about unknown ids as in the state
    /// stale. With `None`, the state synced has no deadline.
    pub(crate) fn set_synced_until(&self, source: usize, end: Option<Instant>) {
        let state = &self.sources[source].state;
        match end {
            Some(end) => state.set_synced_until(end),
            None => state.set(SyncState::Synced),
        }
    }

    /// Sets the synced state of a source to stale. All states except synced stay unchanged.
    pub(crate) fn end_sync(&self, source: usize) {
        let state = &self.sources[source].state;
        if state.get() == SyncState::Synced {
            state.set(SyncState::Stale);
        }
    }

    /// Records that the ids of a source contain all ids that were committed before `moment`. `None` means that changes
    /// were lost.
    pub(crate) fn set_known_until(&self, source: usize, moment: Option<Instant>) {
        // The lock also orders the calls below, so that no source overwrites the report of another source with an older
        // result.
        let mut known_until = self.known_until.lock();
        known_until[source] = moment;
        // The set is complete until the earliest time of a source. `None` is the minimum.
        let moment = known_until.iter().copied().min().flatten();
        if let Some(moment) = moment {
            let contains = |id: &[u8]| self.contains(id);
            self.evidence.settle(moment, &contains);
        }
        if let Some(listener) = self.listener.get() {
            listener.set_known_until(moment);
        }
    }

    /// Publishes the started generation of a source as [`publish_generation`](Self::publish_generation) does.
    ///
    /// # Panics
    ///
    /// Panics if no generation was started.
    pub(crate) fn publish_generation_of(&self, source: usize) {
        let source = &self.sources[source];
        let building = source.building().expect("a generation was started");
        building.end_full_read();
        // The evidence is updated before the swap, so that no decision treats an unproven generation as proven.
        let next = || {
            let others = self.sources.iter().filter(|other| !std::ptr::eq(*other, source));
            others.map(SourceIds::generation).chain([Arc::clone(&building)])
        };
        let needs_proof = next().any(|generation| generation.base().is_some());
        let items = next().map(|generation| generation.items()).fold(0, u64::saturating_add);
        self.evidence.start(needs_proof, items, &|id| next().any(|it| it.contains(id)));
        let mut old = None;
        let mut swap = || old = Some(source.publish(Arc::clone(&building)));
        match self.listener.get() {
            Some(listener) => listener.replace(&mut swap),
            None => swap(),
        }
        // The old generation is dropped outside of the listener, because freeing a large filter takes time, and other
        // changes would wait for the listener.
        drop(old);
        self.negative.clear();
    }
}
