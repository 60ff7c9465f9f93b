//! What a route has decided, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis_sources::{PassReason, RefuseReason, Verdict};

/// How often a route has decided what.
#[derive(Debug, Default)]
pub struct RouteCounters {
    passed: [AtomicU64; PassReason::ALL.len()],
    refused: [AtomicU64; RefuseReason::ALL.len()],
    /// Requests that a shadow route would have refused, and that got a status from 200 to 299.
    misjudged: AtomicU64,
    /// Requests for ids that the filter has, and that got the answer 404: false positives.
    not_found: AtomicU64,
}

impl RouteCounters {
    pub(crate) fn count(&self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Pass(reason) => &self.passed[reason as usize],
            Verdict::Refuse(reason) => &self.refused[reason as usize],
        };
        // Relaxed: the numbers are only displayed.
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_misjudged(&self) {
        self.misjudged.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_not_found(&self) {
        self.not_found.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests passed for a reason.
    #[must_use]
    pub fn passed(&self, reason: PassReason) -> u64 {
        self.passed[reason as usize].load(Ordering::Relaxed)
    }

    /// Returns how many requests were refused for a reason, or would have been in shadow mode.
    #[must_use]
    pub fn refused(&self, reason: RefuseReason) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }

    /// Returns how many requests a shadow route would have refused although the program behind the
    /// guard answered them with a status from 200 to 299.
    #[must_use]
    pub fn misjudged(&self) -> u64 {
        self.misjudged.load(Ordering::Relaxed)
    }

    /// Returns how many requests for known ids got the answer 404.
    #[must_use]
    pub fn not_found(&self) -> u64 {
        self.not_found.load(Ordering::Relaxed)
    }

    /// Returns how many requests were for ids that do not exist, as far as the guard has learnt it.
    /// Requests that the negative cache answered do not count.
    #[must_use]
    pub fn absent(&self) -> u64 {
        self.not_found() + self.refused(RefuseReason::Absent)
    }

    /// Estimates the false positive rate: the share of [`not_found`](Self::not_found) in
    /// [`absent`](Self::absent). `None` before the first such request.
    ///
    /// It is unbiased for distinct absent ids, as an attacker sends them. A client that repeats an
    /// absent id lowers it, because the negative cache keeps a false positive from being counted
    /// again. A program that answers 404 for ids that the source has raises it.
    #[must_use]
    pub fn observed_rate(&self) -> Option<f64> {
        let absent = self.absent();
        (absent > 0).then(|| self.not_found() as f64 / absent as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_observed_rate_is_the_share_of_absent_ids_that_passed() {
        let counters = RouteCounters::default();
        assert_eq!(counters.observed_rate(), None);
        for _ in 0..999 {
            counters.count(Verdict::Refuse(RefuseReason::Absent));
        }
        assert_eq!(counters.observed_rate(), Some(0.0));
        counters.count(Verdict::Pass(PassReason::Known));
        counters.count_not_found();
        // Ids that exist, and ids that the negative cache answers.
        counters.count(Verdict::Pass(PassReason::Known));
        counters.count(Verdict::Refuse(RefuseReason::Negative));
        assert_eq!((counters.absent(), counters.observed_rate()), (1000, Some(0.001)));
    }
}
