//! Counts the learned ids of a rule for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of learned ids of a rule, and the number of responses without a learned id by reason.
#[derive(Debug, Default)]
pub struct LearnCounters {
    learnt: AtomicU64,
    not_learnt: [AtomicU64; NotLearnt::ALL.len()],
}

/// The reason why a rule has learned no id from a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotLearnt {
    /// No place contains a value.
    NoId,
    /// The values are not ids of the set's type.
    NotAnId,
    /// The body of the response is not a JSON list or object.
    NotJson,
    /// The body of the response ended before the end of its JSON, or the client stopped reading.
    Incomplete,
    /// The JSON of the response exceeds the size limit of the rule.
    TooLarge,
    /// The body of the response is compressed.
    Encoded,
}

impl NotLearnt {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::NoId, Self::NotAnId, Self::NotJson, Self::Incomplete, Self::TooLarge, Self::Encoded];

    /// Returns the name of the reason in the metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoId => "no_id",
            Self::NotAnId => "not_an_id",
            Self::NotJson => "not_json",
            Self::Incomplete => "incomplete",
            Self::TooLarge => "too_large",
            Self::Encoded => "encoded",
        }
    }
}

impl LearnCounters {
    pub(super) fn count_learnt(&self) {
        // Relaxed: the numbers are only displayed.
        self.learnt.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_not_learnt(&self, reason: NotLearnt) {
        self.not_learnt[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of learned ids. If the rule learns the same id twice, the id counts twice.
    #[must_use]
    pub fn learnt(&self) -> u64 {
        self.learnt.load(Ordering::Relaxed)
    }

    /// Returns the number of successful responses from which the rule learned no id for a reason.
    #[must_use]
    pub fn not_learnt(&self, reason: NotLearnt) -> u64 {
        self.not_learnt[reason as usize].load(Ordering::Relaxed)
    }
}
