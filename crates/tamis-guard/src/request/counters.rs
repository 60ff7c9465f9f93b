//! Counts the decisions of a route for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis_sources::{PassReason, RefuseReason, Verdict};

/// The counters of a route.
#[derive(Debug, Default)]
pub struct RouteCounters {
    passed: [AtomicU64; PassReason::ALL.len()],
    refused: [AtomicU64; RefuseReason::ALL.len()],
    /// The number of requests that a shadow route would have refused, but that got a status from 200 to 299.
    misjudged: AtomicU64,
    /// The number of requests whose id is in the filter, but that got a 404 response: false positives.
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

    /// Returns the number of requests that passed for a reason.
    #[must_use]
    pub fn passed(&self, reason: PassReason) -> u64 {
        self.passed[reason as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of requests that were refused for a reason. In shadow mode, the counter counts the requests
    /// that would have been refused.
    #[must_use]
    pub fn refused(&self, reason: RefuseReason) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of requests that a shadow route would have refused, although the response had a status from
    /// 200 to 299.
    #[must_use]
    pub fn misjudged(&self) -> u64 {
        self.misjudged.load(Ordering::Relaxed)
    }

    /// Returns the number of requests whose ids the route has checked. The number does not include requests without an
    /// id of the type of the set. The number also does not include requests whose unknown ids passed because the set
    /// was warming, stale or unproven ([`unsure`](Self::unsure)).
    #[must_use]
    pub fn checked(&self) -> u64 {
        let passed = PassReason::ALL.into_iter().filter(|&reason| match reason {
            PassReason::Known | PassReason::Allowed | PassReason::Recent | PassReason::Next => true,
            PassReason::Unsure | PassReason::Unproven | PassReason::NoId => false,
        });
        let refused = RefuseReason::ALL.into_iter().filter(|&reason| match reason {
            RefuseReason::Absent
            | RefuseReason::Denied
            | RefuseReason::Negative
            | RefuseReason::Unsure => true,
            // Any set refuses a text that is not an id, also a set that is never filled.
            RefuseReason::NotAnId => false,
        });
        let passed: u64 = passed.map(|reason| self.passed(reason)).sum();
        passed + refused.map(|reason| self.refused(reason)).sum::<u64>()
    }

    /// Returns the number of requests whose unknown ids passed because of the [policy](crate::Policies) of the set. By
    /// default, unknown ids pass while the set is warming, stale or unproven.
    #[must_use]
    pub fn unsure(&self) -> u64 {
        self.passed(PassReason::Unsure) + self.passed(PassReason::Unproven)
    }

    /// Returns the number of requests with an id in the filter that got a 404 response.
    #[must_use]
    pub fn not_found(&self) -> u64 {
        self.not_found.load(Ordering::Relaxed)
    }

    /// Returns the number of requests for absent ids that the guard has observed. The number does not include requests
    /// that the negative cache refused.
    #[must_use]
    pub fn absent(&self) -> u64 {
        self.not_found() + self.refused(RefuseReason::Absent)
    }

    /// Estimates the false positive rate: the share of [`not_found`](Self::not_found) in [`absent`](Self::absent).
    /// Returns `None` before the first request for an absent id.
    ///
    /// The estimate is unbiased for distinct absent ids, which are typical for an attack. If a client repeats an absent
    /// id, the estimate is too low, because the negative cache prevents the second count of a false positive. If the
    /// upstream service responds with 404 for ids that the source contains, the estimate is too high.
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
    fn a_request_is_checked_only_if_the_set_has_decided_about_its_id() {
        let counters = RouteCounters::default();
        for reason in [PassReason::NoId, PassReason::Unsure, PassReason::Unproven] {
            counters.count(Verdict::Pass(reason));
            assert_eq!(counters.checked(), 0, "{reason:?}");
        }
        counters.count(Verdict::Refuse(RefuseReason::NotAnId));
        assert_eq!((counters.checked(), counters.unsure()), (0, 2));
        counters.count(Verdict::Pass(PassReason::Known));
        counters.count(Verdict::Refuse(RefuseReason::Absent));
        assert_eq!(counters.checked(), 2);
    }

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
        // The counter `absent` ignores existing ids, and ids that the negative cache refuses.
        counters.count(Verdict::Pass(PassReason::Known));
        counters.count(Verdict::Refuse(RefuseReason::Negative));
        assert_eq!((counters.absent(), counters.observed_rate()), (1000, Some(0.001)));
    }
}
