//! What a route has decided, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::verdict::{PassReason, RefuseReason, Verdict};

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
}
