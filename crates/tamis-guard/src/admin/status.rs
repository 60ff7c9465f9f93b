//! Returns the status of a guard as JSON.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tamis_sources::{PassReason, RefuseReason};

use crate::guard_handle::GuardHandle;
use crate::guard_sets::{GuardSet, GuardSource};
use crate::request::counters::RouteCounters;
use crate::request::learn::NotLearnt;
use crate::request::route::Route;
use crate::request::single_flight::SingleFlight;

/// Tests whether each set with a source is synced or unproven. A set in the state unproven counts as ready: the guard
/// proves the set with requests, so a load balancer must not wait for the proof.
pub(super) fn is_ready(guard: &GuardHandle) -> bool {
    guard.sets().iter().all(|set| set.ids.state().is_complete() || set.status.is_none())
}

/// Returns the sync state of each set.
pub(super) fn states(guard: &GuardHandle) -> Value {
    let sets = guard.sets();
    sets.iter().map(|set| (set.name.clone(), Value::from(set.ids.state().name()))).collect()
}

/// Returns the complete status.
pub(super) fn status(guard: &GuardHandle) -> Value {
    let layer = guard.guard();
    let sets = guard.sets();
    let routes = layer.routes().iter().map(|one| route(one, &sets)).collect::<Vec<_>>();
    let sets: Map<String, Value> =
        sets.iter().map(|one| (one.name.clone(), set(one, layer.routes()))).collect();
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
        "uptime_seconds": guard.uptime().as_secs_f64(),
        "ids": sets,
        "routes": routes,
        "learn": rules.collect::<Vec<_>>(),
    })
}

fn set(set: &GuardSet, routes: &[Route]) -> Value {
    let generations = set.ids.generations();
    let status = set.status.as_ref();
    let mut value = json!({
        "state": set.ids.state().name(),
        "items": generations.items(),
        "deleted": generations.deleted(),
        "filter_bytes": generations.bytes(),
        "planned_rate": generations.rate(),
        "estimated_rate": generations.estimate_rate(),
        "observed_rate": observed_rate(set, routes),
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
    });
    if !set.sources.is_empty() {
        value["sources"] = set.sources.iter().map(source).collect();
    }
    value
}

/// Returns the status of one of several sources.
fn source(GuardSource { name, items, status }: &GuardSource) -> Value {
    json!({
        "name": name,
        "state": status.state.name(),
        "items": items,
        "lag_seconds": seconds(status.lag),
        "last_error": status.last_error,
    })
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

/// Returns the observed false positive rate of the routes whose ids all belong to this set.
fn observed_rate(set: &GuardSet, routes: &[Route]) -> Option<f64> {
    let is_of_set = |route: &&Route| route.ids().iter().all(|id| Arc::ptr_eq(&id.ids, &set.ids));
    let counters = || routes.iter().filter(is_of_set).map(|route| &route.counters);
    let absent: u64 = counters().map(RouteCounters::absent).sum();
    let passed: u64 = counters().map(RouteCounters::not_found).sum();
    (absent > 0).then(|| passed as f64 / absent as f64)
}

fn route(route: &Route, sets: &[GuardSet]) -> Value {
    let is_used = |set: &&GuardSet| route.ids().iter().any(|id| Arc::ptr_eq(&id.ids, &set.ids));
    let ids = sets.iter().filter(is_used).map(|set| &set.name).collect::<Vec<_>>();
    let counters = &route.counters;
    let passed = PassReason::ALL.map(|it| (it.name().to_owned(), counters.passed(it).into()));
    let refused = RefuseReason::ALL.map(|it| (it.name().to_owned(), counters.refused(it).into()));
    json!({
        "name": route.name,
        "path": route.path().to_string(),
        "ids": ids,
        "is_shadow": route.is_shadow,
        "passed": Map::from_iter(passed),
        "refused": Map::from_iter(refused),
        "not_found": counters.not_found(),
        "observed_rate": counters.observed_rate(),
        "misjudged": counters.misjudged(),
        "waited": route.single_flight.as_ref().map(SingleFlight::waited),
    })
}
