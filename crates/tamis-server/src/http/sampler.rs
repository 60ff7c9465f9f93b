//! The sampler: measures all filters repeatedly, in small steps.
//!
//! A round visits all keys, shard by shard, and measures the filters one by one after the visit.
//! After each step, the sampler pauses for twenty times the duration of the step. With these
//! pauses, the sampler takes at most a twentieth of one core for any number of filters. While the
//! sampler measures a filter, the sampler holds the lock of this filter only.
//!
//! The result of a round over all filters is one row for each filter, and samples of the worst
//! filters over time. The page sorts the filters by the rows of the last round.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tamis_commands::{RatePoint, Value};

use crate::http::order::{FilterRow, MAX_ROWS, PageRequest};
use crate::shared_state::SharedState;
use crate::stats::report::{FilterReport, Worst};
use crate::system::clock::now_millis;

/// The state of a filter at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterSample {
    pub millis: u64,
    pub items: f64,
    pub rate: f64,
}

/// The results of the sampler.
#[derive(Default)]
pub(super) struct Sampler {
    /// The rows of at most [`MAX_ROWS`] filters, unsorted, and the totals of the same round.
    last_round: Mutex<(Arc<Vec<FilterRow>>, Totals)>,
    samples: Mutex<HashMap<Box<[u8]>, Samples>>,
    /// The time of the last request from the page.
    last_request: Mutex<Option<Instant>>,
}

/// Numbers about all filters together.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub keys: u64,
    pub filters: u64,
    pub over_rate: u64,
    /// The number of filters that have a row and reject inserts.
    pub full: u64,
    /// The number of filters that have a row in the result of the round.
    pub sortable: u64,
    /// The times at which the sampler's round began and ended, in milliseconds since 1970. Both
    /// times are 0 before the first round of the sampler.
    pub began_millis: u64,
    pub millis: u64,
}

/// The number of worst filters whose samples are kept.
const MAX_SAMPLED: usize = 1000;

/// The maximum number of filters whose samples are kept only because the pages of these filters are
/// open.
const MAX_WATCHED: usize = 1000;

/// The time for which the samples of a filter are kept after a request for the filter's page.
const WATCHED_MILLIS: u64 = 60_000;

/// The maximum number of samples per filter.
const MAX_SAMPLES: usize = 240;

/// The time between the starts of two rounds of the sampler: the first value with an open console,
/// the second value without an open console.
const PERIODS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(30)];

/// The time for which the console counts as open after a request.
const OPEN_TIME: Duration = Duration::from_secs(15);

/// The time between two pauses of the sampler.
const STEP: Duration = Duration::from_millis(2);

/// The duration of a pause, as a multiple of the duration of the step before the pause.
const PAUSE: u32 = 20;

/// The period over which the current insertion rate is measured, in milliseconds.
const RECENT_MILLIS: u64 = 600_000;

impl Sampler {
    /// Runs rounds over all filters repeatedly.
    pub async fn keep(&self, shared: &SharedState) {
        loop {
            let began = Instant::now();
            self.run_round(shared).await;
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                let is_open =
                    self.last_request.lock().is_some_and(|last| last.elapsed() < OPEN_TIME);
                if began.elapsed() >= PERIODS[usize::from(!is_open)] {
                    break;
                }
            }
        }
    }

    async fn run_round(&self, shared: &SharedState) {
        let (keyspace, began_millis) = (&shared.keyspace, now_millis());
        let mut pace = RoundPacing(Instant::now());
        let mut worst = Worst::new(MAX_ROWS);
        for part in 0..keyspace.shard_count() {
            worst.look_at(keyspace, part, now_millis());
            pace.keep().await;
        }
        let (filters, others_over) = (worst.filters, worst.others_over);
        let totals = |over, full| Totals {
            keys: keyspace.shared().len() as u64,
            filters,
            over_rate: others_over + over,
            full,
            began_millis,
            ..Totals::default()
        };
        let (mut rows, mut sampled) = (Vec::new(), HashSet::new());
        let (mut over, mut full) = (0, 0);
        for key in worst.into_keys() {
            let settings = &shared.config().filters;
            let report = FilterReport::of_key(keyspace, &key, settings, now_millis());
            if let Some(mut report) = report {
                if sampled.len() < MAX_SAMPLED {
                    self.samples.lock().entry(key.clone()).or_default().take(&mut report);
                    sampled.insert(key.clone());
                }
                over += u64::from(report.info.is_over_rate);
                full += u64::from(report.info.is_full());
                rows.push(FilterRow::of(&report));
            }
            // A round of the sampler over very many filters takes long. If the page has shown fewer
            // than `MAX_SAMPLED` filters until now, publish the worst filters early.
            if rows.len() == MAX_SAMPLED && self.last_round.lock().0.len() < MAX_SAMPLED {
                self.publish(rows.clone(), totals(over, full));
            }
            pace.keep().await;
        }
        let oldest = now_millis().saturating_sub(WATCHED_MILLIS);
        self.samples.lock().retain(|key, samples| {
            sampled.contains(key) || samples.0.last().is_some_and(|last| last.millis >= oldest)
        });
        self.publish(rows, totals(over, full));
    }

    /// Publishes the current results of the sampler's round to the page.
    fn publish(&self, rows: Vec<FilterRow>, totals: Totals) {
        let totals = Totals { sortable: rows.len() as u64, millis: now_millis(), ..totals };
        *self.last_round.lock() = (Arc::new(rows), totals);
    }

    /// Takes a sample of a filter whose page is open. Does nothing if the number of sampled filters
    /// has reached its maximum.
    fn sample_watched(&self, report: &mut FilterReport) {
        let mut samples = self.samples.lock();
        if samples.contains_key(&report.key) || samples.len() < MAX_SAMPLED + MAX_WATCHED {
            samples.entry(report.key.clone()).or_default().take(report);
        }
    }

    pub fn totals(&self) -> Totals {
        *self.last_request.lock() = Some(Instant::now());
        self.last_round.lock().1
    }

    /// Returns three results: the filters of a page, the number of filters whose keys `is_match`
    /// accepts, and the totals. The call measures the filters of the page. The order of the
    /// filters, the number of matching keys and the totals come from the last round.
    pub fn page(
        &self,
        shared: &SharedState,
        page: PageRequest,
        is_match: impl Fn(&[u8]) -> bool,
    ) -> (Vec<FilterReport>, usize, Totals) {
        *self.last_request.lock() = Some(Instant::now());
        let (rows, totals) = self.last_round.lock().clone();
        let (keys, matching) = page.of(&rows, is_match);
        let settings = &shared.config().filters;
        let report = |key| FilterReport::of_key(&shared.keyspace, key, settings, now_millis());
        let mut reports: Vec<FilterReport> = keys.into_iter().filter_map(report).collect();
        // The thread must not hold a lock of the keyspace together with the lock of `samples`.
        let samples = self.samples.lock();
        for report in &mut reports {
            report.or_at(samples.get(&report.key).and_then(Samples::adds_per_second));
        }
        (reports, matching, totals)
    }

    /// Measures one filter at the time of the call. Returns the report and the rate curve of the
    /// filter.
    pub fn of_key(
        &self,
        shared: &SharedState,
        key: &[u8],
    ) -> Option<(FilterReport, Vec<RatePoint>)> {
        *self.last_request.lock() = Some(Instant::now());
        let (now, settings) = (now_millis(), &shared.config().filters);
        let measure = |value: Option<&Value>, items_per_second| {
            let report = FilterReport::of(key, value?, settings, items_per_second, now)?;
            let curve = value?.rate_curve(CURVE_POINTS, report.info.items);
            Some((report, curve))
        };
        let (mut report, curve) = shared.keyspace.shared().read_measured(key, now, measure)?;
        self.sample_watched(&mut report);
        Some((report, curve))
    }

    /// Returns the samples of a filter, oldest first.
    pub fn samples(&self, key: &[u8]) -> Vec<FilterSample> {
        self.samples.lock().get(key).map(|samples| samples.0.clone()).unwrap_or_default()
    }
}

/// Measures the duration of the current step of the sampler.
struct RoundPacing(Instant);

impl RoundPacing {
    /// Pauses if the current step took longer than `STEP`.
    async fn keep(&mut self) {
        let worked = self.0.elapsed();
        if worked > STEP {
            tokio::time::sleep(worked * PAUSE).await;
            self.0 = Instant::now();
        }
    }
}

/// The number of points of the rate curve of a filter.
pub(super) const CURVE_POINTS: u64 = 61;

/// The samples of a filter, oldest first. The samples cover the whole time since the first sample.
/// Older samples are further apart than newer samples.
#[derive(Default)]
struct Samples(Vec<FilterSample>);

impl Samples {
    /// Takes a sample from a report. Sets the current insertion rate of the report.
    fn take(&mut self, report: &mut FilterReport) {
        let (millis, info) = (report.measured_millis, &report.info);
        self.push(FilterSample { millis, items: info.items, rate: info.rate_now });
        report.or_at(self.adds_per_second());
    }

    fn push(&mut self, sample: FilterSample) {
        if self.0.last().is_some_and(|last| last.millis >= sample.millis) {
            return;
        }
        // Replace the newest sample until its distance to the previous sample is large enough.
        if let [.., before, last] = self.0.as_slice() {
            let least = (sample.millis - self.0[0].millis) / MAX_SAMPLES as u64;
            if last.millis.saturating_sub(before.millis) < least {
                self.0.pop();
            }
        }
        self.0.push(sample);
        if self.0.len() > MAX_SAMPLES {
            // Remove every second sample in the older half of the samples.
            let mut at = 0;
            self.0.retain(|_| {
                at += 1;
                at > MAX_SAMPLES / 2 || at % 2 == 1
            });
        }
    }

    fn adds_per_second(&self) -> Option<f64> {
        let last = self.0.last()?;
        let since = last.millis.saturating_sub(RECENT_MILLIS);
        let first = self.0.iter().find(|sample| sample.millis >= since)?;
        let millis = last.millis.saturating_sub(first.millis);
        (millis >= 1500).then(|| (last.items - first.items).max(0.0) * 1000.0 / millis as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_bounded_and_span_all_time() {
        let mut samples = Samples::default();
        for second in 0..100_000_u64 {
            let sample =
                FilterSample { millis: second * 2000, items: second as f64 * 10.0, rate: 0.0 };
            samples.push(sample);
            assert!(samples.0.len() <= MAX_SAMPLES);
        }
        let (first, last) = (samples.0[0], samples.0[samples.0.len() - 1]);
        assert_eq!((first.millis, last.millis), (0, 199_998_000));
        assert!(samples.0.is_sorted_by(|a, b| a.millis < b.millis) && samples.0.len() > 60);
        let adds = samples.adds_per_second().unwrap();
        assert!((adds - 5.0).abs() < 1e-9, "{adds}");
    }

    #[test]
    fn a_single_sample_gives_no_rate() {
        let mut samples = Samples::default();
        assert_eq!(samples.adds_per_second(), None);
        samples.push(FilterSample { millis: 1, items: 5.0, rate: 0.0 });
        assert_eq!(samples.adds_per_second(), None);
        samples.push(FilterSample { millis: 5001, items: 1.0, rate: 0.0 });
        assert_eq!(samples.adds_per_second(), Some(0.0));
    }
}
