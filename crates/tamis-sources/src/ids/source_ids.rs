//! The ids that one source of a set fills, and how current these ids are.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use tamis::PlanError;

use crate::ids::generation::Generation;
use crate::ids::timed_state::TimedState;

/// The ids of one source. A set has one `SourceIds` for each of its sources.
///
/// A deletion that a source reports changes only the ids of this source. Another source of the set may still contain
/// the deleted id.
#[derive(Debug)]
pub(crate) struct SourceIds {
    current: ArcSwap<Generation>,
    /// The generation whose full read is running. Each change is applied to the current generation and to this
    /// generation.
    building: ArcSwapOption<Generation>,
    pub(crate) state: TimedState,
}

impl SourceIds {
    /// Creates the empty ids of a source in the state warming. All sources of a set have the same `created`, so that
    /// their deadlines can be compared.
    pub(crate) fn new(rate: f64, created: Instant) -> Result<Self, PlanError> {
        Ok(Self {
            current: ArcSwap::from_pointee(Generation::new(0, rate)?),
            building: ArcSwapOption::empty(),
            state: TimedState::new(created),
        })
    }

    /// Returns the current generation for a short use.
    pub(crate) fn current(&self) -> Guard<Arc<Generation>> {
        self.current.load()
    }

    /// Returns the current generation.
    pub(crate) fn generation(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Starts a generation. If an earlier generation was started but not published, the earlier generation is dropped.
    pub(crate) fn start_generation(&self, generation: Generation) -> Arc<Generation> {
        let generation = Arc::new(generation);
        self.building.store(Some(Arc::clone(&generation)));
        generation
    }

    /// Returns the generation that was started.
    pub(crate) fn building(&self) -> Option<Arc<Generation>> {
        self.building.load_full()
    }

    /// Replaces the current generation by `building`, which was started. Returns the replaced generation.
    pub(crate) fn publish(&self, building: Arc<Generation>) -> Arc<Generation> {
        // `current` is replaced before `building` is cleared, so that each change reaches the new generation through
        // one of the two fields.
        let old = self.current.swap(building);
        self.building.store(None);
        old
    }

    /// Drops the started generation without publishing it.
    pub(crate) fn abandon_generation(&self) {
        self.building.store(None);
    }

    /// Inserts the key of an id. `value` is the integer value of the id, if the id is an integer.
    pub(crate) fn insert(&self, key: &[u8], value: Option<i64>) -> Result<(), PlanError> {
        let current = self.current.load().insert_key(key, value);
        let building = match &*self.building.load() {
            Some(building) => building.insert_key(key, value),
            None => Ok(()),
        };
        // If a generation was published between the two inserts above, neither insert has changed the new generation.
        // Therefore a third insert adds the id to the new generation.
        let published = self.current.load().insert_key(key, value);
        current.and(building).and(published)
    }

    /// Deletes the key of an id.
    pub(crate) fn delete(&self, key: &[u8]) {
        self.delete_current(key);
        if let Some(building) = &*self.building.load() {
            // After this deletion, the full read of the building generation may find the id.
            building.delete_key(key);
        }
        self.delete_current(key);
    }

    fn delete_current(&self, key: &[u8]) {
        let current = self.current.load();
        // A source may report all ids that were ever deleted. If the filter does not contain an id, a tombstone would
        // waste memory.
        if current.contains(key) {
            current.delete_key(key);
        }
    }
}
