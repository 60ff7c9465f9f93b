//! The measurements of the demo for each second, for the console page, the terminal and the
//! summary.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::commands::guard::demo::database::{CONNECTIONS, QUERY_TIME};
use crate::commands::guard::demo::latencies::Latencies;
use crate::commands::guard::demo::shop::PRODUCTS;
use crate::commands::guard::demo::side::{Side, Totals};
use crate::commands::guard::demo::traffic::{ATTACK, CUSTOMERS};

/// The number of seconds that the charts show.
const MOST_SAMPLES: usize = 120;

/// The number of created products that the console page shows.
const MOST_CREATED: usize = 3;

/// Records the measurements of the two copies of the shop: with and without the guard.
#[derive(Debug)]
pub struct Recorder {
    pub without: SideRecord,
    pub with: SideRecord,
    start: Instant,
    last: Instant,
    created: VecDeque<Created>,
    created_total: u64,
    created_passed: u64,
}

/// A product that was created during the demo. The demo requested the product at once after the
/// response to its creation.
#[derive(Clone, Copy, Debug)]
pub struct Created {
    pub id: u64,
    /// True if the guard let the first request for the product pass.
    pub has_passed: bool,
    /// The time from the response to the POST request until the response to the GET request.
    pub time: Duration,
}

/// The measurements of one copy of the shop.
#[derive(Debug)]
pub struct SideRecord {
    side: Arc<Side>,
    samples: VecDeque<Sample>,
    totals: Totals,
    latencies: Latencies,
}

/// The measurements of one copy of the shop in one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub queries: f64,
    pub absent_queries: f64,
    pub attack: f64,
    pub p99_micros: Option<f64>,
}

impl Recorder {
    pub fn new(without: Arc<Side>, with: Arc<Side>) -> Self {
        let now = Instant::now();
        Self {
            without: SideRecord::new(without),
            with: SideRecord::new(with),
            start: now,
            last: now,
            created: VecDeque::new(),
            created_total: 0,
            created_passed: 0,
        }
    }

    /// Records the measurements since the last call of this method.
    pub fn sample(&mut self) {
        let now = Instant::now();
        let seconds = (now - self.last).as_secs_f64().max(1e-3);
        self.last = now;
        self.without.sample(seconds);
        self.with.sample(seconds);
    }

    pub fn record_created(&mut self, created: Created) {
        self.created_total += 1;
        self.created_passed += u64::from(created.has_passed);
        self.created.push_front(created);
        self.created.truncate(MOST_CREATED);
    }

    /// Returns the product that was created last.
    pub fn last_created(&self) -> Option<Created> {
        self.created.front().copied()
    }

    /// Returns how many products were created, and how many of these products passed the guard at
    /// once.
    pub fn created(&self) -> (u64, u64) {
        (self.created_total, self.created_passed)
    }

    /// Returns the time of the demo up to the last sample.
    pub fn elapsed(&self) -> Duration {
        self.last - self.start
    }

    /// Returns the measurements for the console page.
    pub fn status(&self) -> Value {
        let mut status = settings();
        status["seconds"] = json!(self.elapsed().as_secs_f64().round());
        status["without"] = self.without.status();
        status["with"] = self.with.status();
        let created = self.created.iter().map(|created| {
            let micros = created.time.as_secs_f64() * 1e6;
            json!({ "id": created.id, "passed": created.has_passed, "micros": micros })
        });
        status["created"] = created.collect();
        status
    }

    /// Returns the measurements of the whole demo. `planned_rate` is the planned rate of the guard.
    pub fn summary(&self, planned_rate: f64) -> Value {
        let seconds = self.elapsed().as_secs_f64();
        let mut summary = settings();
        summary["seconds"] = json!(seconds);
        summary["planned_rate"] = json!(planned_rate);
        summary["created"] = json!(self.created_total);
        summary["created_passed"] = json!(self.created_passed);
        for (name, side) in [("without", &self.without), ("with", &self.with)] {
            summary[name] = side.total(seconds);
        }
        summary
    }
}

/// Returns the settings of the shop and of its traffic.
fn settings() -> Value {
    json!({
        "products": PRODUCTS,
        "attack_per_second": ATTACK,
        "customers_per_second": CUSTOMERS,
        "connections": CONNECTIONS,
        "query_millis": QUERY_TIME.as_millis() as u64,
    })
}

impl SideRecord {
    fn new(side: Arc<Side>) -> Self {
        let (totals, latencies) = (side.totals(), Latencies::default());
        Self { side, samples: VecDeque::new(), totals, latencies }
    }

    fn sample(&mut self, seconds: f64) {
        let (totals, recent) = (self.side.totals(), self.side.take_latencies());
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds;
        self.samples.push_back(Sample {
            queries: rate(totals.queries, self.totals.queries),
            absent_queries: rate(totals.absent_queries, self.totals.absent_queries),
            attack: rate(totals.attack, self.totals.attack),
            p99_micros: recent.quantile_micros(0.99),
        });
        if self.samples.len() > MOST_SAMPLES {
            self.samples.pop_front();
        }
        self.totals = totals;
        self.latencies.merge(&recent);
    }

    /// Returns the measurements of the last second.
    pub fn last(&self) -> Sample {
        self.samples.back().copied().unwrap_or_default()
    }

    /// Returns the measurements since the start.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the 99th percentile of the latencies of all customers, in microseconds.
    pub fn p99_micros(&self) -> Option<f64> {
        self.latencies.quantile_micros(0.99)
    }

    fn status(&self) -> Value {
        let series =
            |value: fn(&Sample) -> Option<f64>| self.samples.iter().map(value).collect::<Vec<_>>();
        json!({
            "queries": series(|sample| Some(sample.queries)),
            "absent_queries": series(|sample| Some(sample.absent_queries)),
            "attack": series(|sample| Some(sample.attack)),
            "p99_micros": series(|sample| sample.p99_micros),
            "total": self.total(0.0),
        })
    }

    fn total(&self, seconds: f64) -> Value {
        let Totals { queries, absent_queries, attack, customers, wrong_404, failed } = self.totals;
        let mut total = json!({
            "queries": queries,
            "absent_queries": absent_queries,
            "attack": attack,
            "customers": customers,
            "wrong_404": wrong_404,
            "failed": failed,
            "p99_micros": self.p99_micros(),
        });
        if seconds > 0.0 {
            total["queries_per_second"] = json!(queries as f64 / seconds);
        }
        total
    }
}
