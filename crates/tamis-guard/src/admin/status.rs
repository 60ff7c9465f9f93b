//! The state of a guard as JSON.

use serde_json::{Map, Value, json};

use crate::guard_handle::GuardHandle;
use crate::guard_sets::GuardSet;
use crate::learn::NotLearnt;
use crate::route::Route;
use crate::single_flight::SingleFlight;
use crate::state::SyncState;
use crate::verdict::{PassReason, RefuseReason};

/// Tests whether all sets with a source are synced.
pub(super) fn is_ready(guard: &GuardHandle) -> bool {
    guard.sets().iter().all(|set| set.ids.state() == SyncState::Synced || set.status.is_none())
}

/// Returns the state of each set.
pub(super) fn states(guard: &GuardHandle) -> Value {
    let sets = guard.sets();
    sets.iter().map(|set| (set.name.clone(), Value::from(set.ids.state().name()))).collect()
}

/// Returns all that is known.
pub(super) fn status(guard: &GuardHandle) -> Value {
    let sets: Map<String, Value> =
        guard.sets().iter().map(|one| (one.name.clone(), set(one))).collect();
    let layer = guard.guard();
    let rules = layer.learn_rules().iter().map(|rule| {
        let not_learnt = NotLearnt::ALL
            .map(|reason| (reason.name().to_owned(), rule.counters.not_learnt(reason).into()));
        json!({
            "name": rule.name,
            "learnt": rule.counters.learnt(),
            "not_learnt": Map::from_iter(not_learnt),
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "ids": sets,
        "routes": layer.routes().iter().map(route).collect::<Vec<_>>(),
        "learn": rules.collect::<Vec<_>>(),
    })
}

fn set(set: &GuardSet) -> Value {
    let generation = set.ids.generation();
    let seconds = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64());
    let status = set.status.as_ref();
    json!({
        "state": set.ids.state().name(),
        "items": generation.items(),
        "deleted": generation.deleted(),
        "filter_bytes": generation.bytes(),
        "planned_rate": generation.rate(),
        "estimated_rate": generation.estimate_rate(),
        "lag_seconds": seconds(status.and_then(|status| status.lag)),
        "lag_bytes": status.and_then(|status| status.lag_bytes),
        "generation_age_seconds": seconds(status.and_then(|status| status.generation_age)),
        "generations": status.map(|status| status.generations),
        "items_read": status.map(|status| status.items_read),
        "invalid_rows": status.map(|status| status.invalid_rows),
        "failures": status.map(|status| status.failures),
        "snapshot_age_seconds": seconds(status.and_then(|status| status.snapshots.age)),
        "snapshot_failures": status.map(|status| status.snapshots.failures),
        "snapshot_error": status.and_then(|status| status.snapshots.last_error.as_ref()),
        "snapshot_unused": status.and_then(|status| status.snapshots.unused.as_ref()),
        "last_error": status.and_then(|status| status.last_error.as_ref()),
    })
}

fn route(route: &Route) -> Value {
    let counters = &route.counters;
    let passed = PassReason::ALL.map(|it| (it.name().to_owned(), counters.passed(it).into()));
    let refused = RefuseReason::ALL.map(|it| (it.name().to_owned(), counters.refused(it).into()));
    json!({
        "name": route.name,
        "is_shadow": route.is_shadow,
        "passed": Map::from_iter(passed),
        "refused": Map::from_iter(refused),
        "not_found": counters.not_found(),
        "misjudged": counters.misjudged(),
        "waited": route.single_flight.as_ref().map(SingleFlight::waited),
    })
}
