//! What a rule has learnt, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many ids a rule has learnt, and why answers taught none.
#[derive(Debug, Default)]
pub struct LearnCounters {
    learnt: AtomicU64,
    not_learnt: [AtomicU64; NotLearnt::ALL.len()],
}

/// Why a rule has learnt no id from a successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotLearnt {
    /// No place has a value.
    NoId,
    /// The values are no ids of the set's type.
    NotAnId,
    /// The body of the answer is no JSON list or object.
    NotJson,
    /// The body of the answer ended before its JSON, or the client did not read so far.
    Incomplete,
    /// The JSON of the answer is larger than the limit of the rule.
    TooLarge,
    /// The body of the answer is compressed.
    Encoded,
}

impl NotLearnt {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::NoId, Self::NotAnId, Self::NotJson, Self::Incomplete, Self::TooLarge, Self::Encoded];

    /// Returns the name of the reason, as the metrics write it.
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

    /// Returns how many ids the rule has learnt. An id counts again each time it is learnt.
    #[must_use]
    pub fn learnt(&self) -> u64 {
        self.learnt.load(Ordering::Relaxed)
    }

    /// Returns how many successful answers taught no id for a reason.
    #[must_use]
    pub fn not_learnt(&self, reason: NotLearnt) -> u64 {
        self.not_learnt[reason as usize].load(Ordering::Relaxed)
    }
}
