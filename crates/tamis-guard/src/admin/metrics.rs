//! The metrics of a guard.

use std::time::Duration;

use tamis_sources::{PassReason, RefuseReason, SourceStatus, SyncState};

use crate::admin::exposition::Exposition;
use crate::guard_handle::GuardHandle;
use crate::guard_sets::GuardSet;
use crate::request::learn::NotLearnt;
use crate::request::route::Route;

/// Returns all metrics as text.
pub(super) fn text(guard: &GuardHandle) -> String {
    let mut out = Exposition::default();
    of_sets(&mut out, &guard.sets());
    let layer = guard.guard();
    of_routes(&mut out, layer.routes());
    let name = "tamis_guard_learnt_ids_total";
    out.family("counter", name, "Ids that answers of the upstream have taught");
    for rule in layer.learn_rules() {
        out.sample(name, &[("rule", &rule.name)], rule.counters.learnt());
    }
    let name = "tamis_guard_not_learnt_total";
    out.family("counter", name, "Answers that taught no id, although a rule is for them");
    for rule in layer.learn_rules() {
        for reason in NotLearnt::ALL {
            let labels = [("rule", &*rule.name), ("reason", reason.name())];
            out.sample(name, &labels, rule.counters.not_learnt(reason));
        }
    }
    out.into_text()
}

/// A gauge of a set of ids: its name, help text and value. A gauge without a value is omitted.
type Gauge = (&'static str, &'static str, fn(&GuardSet) -> Option<f64>);

const GAUGES: [Gauge; 10] = [
    ("tamis_guard_items", "Ids that exist", |set| Some(set.ids.generations().items() as f64)),
    ("tamis_guard_deleted_items", "Deleted ids that the filter still has", |set| {
        Some(set.ids.generations().deleted() as f64)
    }),
    ("tamis_guard_filter_bytes", "Memory of the filter in bytes", |set| {
        Some(set.ids.generations().bytes() as f64)
    }),
    ("tamis_guard_planned_rate", "Planned false positive rate", |set| {
        Some(set.ids.generations().rate())
    }),
    ("tamis_guard_estimated_rate", "False positive rate that follows from the bits set", |set| {
        Some(set.ids.generations().estimate_rate())
    }),
    (
        "tamis_guard_lag_seconds",
        "All ids that were committed before this many seconds are known",
        |set| seconds(set.status.as_ref()?.lag),
    ),
    ("tamis_guard_lag_bytes", "Bytes of the log of changes that are not yet applied", |set| {
        Some(set.status.as_ref()?.lag_bytes? as f64)
    }),
    ("tamis_guard_generation_age_seconds", "Age of the generation in use in seconds", |set| {
        seconds(set.status.as_ref()?.generation_age)
    }),
    ("tamis_guard_snapshot_age_seconds", "Age of the last snapshot in seconds", |set| {
        seconds(set.status.as_ref()?.snapshots.age)
    }),
    ("tamis_guard_is_synced", "1 if the guard has all ids, otherwise 0", |set| {
        Some(f64::from(u8::from(set.ids.state() == SyncState::Synced)))
    }),
];

/// A counter of a source: its name, help text and value.
type Counter = (&'static str, &'static str, fn(&SourceStatus) -> u64);

const COUNTERS: [Counter; 5] = [
    ("tamis_guard_generations_total", "Generations that were built", |it| it.generations),
    ("tamis_guard_source_failures_total", "Failed reads of a source", |it| it.failures),
    ("tamis_guard_items_read_total", "Ids that were read, in all reads", |it| it.items_read),
    ("tamis_guard_invalid_rows_total", "Rows that are no ids", |it| it.invalid_rows),
    ("tamis_guard_snapshot_failures_total", "Snapshots that were not written", |it| {
        it.snapshots.failures
    }),
];

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

fn of_sets(out: &mut Exposition, sets: &[GuardSet]) {
    for (name, help, value) in GAUGES {
        out.family("gauge", name, help);
        for set in sets {
            if let Some(value) = value(set) {
                out.sample(name, &[("ids", &set.name)], value);
            }
        }
    }
    let name = "tamis_guard_state";
    out.family("gauge", name, "1 for the present state of a set of ids");
    for set in sets {
        for state in SyncState::ALL {
            let labels = [("ids", &*set.name), ("state", state.name())];
            out.sample(name, &labels, u8::from(set.ids.state() == state));
        }
    }
    for (name, help, value) in COUNTERS {
        out.family("counter", name, help);
        for set in sets {
            if let Some(status) = &set.status {
                out.sample(name, &[("ids", &set.name)], value(status));
            }
        }
    }
}

fn of_routes(out: &mut Exposition, routes: &[Route]) {
    let name = "tamis_guard_requests_total";
    out.family("counter", name, "Requests by what was decided about them, and why");
    for route in routes {
        for reason in PassReason::ALL {
            let labels = [("route", &*route.name), ("verdict", "pass"), ("reason", reason.name())];
            out.sample(name, &labels, route.counters.passed(reason));
        }
        for reason in RefuseReason::ALL {
            let labels =
                [("route", &*route.name), ("verdict", "refuse"), ("reason", reason.name())];
            out.sample(name, &labels, route.counters.refused(reason));
        }
    }
    let name = "tamis_guard_false_positives_total";
    out.family("counter", name, "Requests for known ids that the upstream answered with 404");
    for route in routes {
        out.sample(name, &[("route", &route.name)], route.counters.not_found());
    }
    let name = "tamis_guard_observed_rate";
    let help = "Share of the absent ids that passed, since the routes were loaded";
    out.family("gauge", name, help);
    for route in routes {
        if let Some(rate) = route.counters.observed_rate() {
            out.sample(name, &[("route", &route.name)], rate);
        }
    }
    let name = "tamis_guard_shadow_misjudged_total";
    let help = "Requests that a shadow route would have refused and the upstream answered with 2xx";
    out.family("counter", name, help);
    for route in routes {
        out.sample(name, &[("route", &route.name)], route.counters.misjudged());
    }
    let name = "tamis_guard_waited_total";
    out.family("counter", name, "Requests that waited for another one for the same id");
    for route in routes {
        if let Some(flight) = &route.single_flight {
            out.sample(name, &[("route", &route.name)], flight.waited());
        }
    }
}
