//! Tests whether a filter has passed its planned rate.

use tamis::{Bits, Filter as _};
use tamis_formats::TamisFile;

use crate::report::SAMPLE_BYTES;
use crate::state::State;

/// The present rate of a filter beside its plan.
pub struct Saturation {
    /// Whether the present rate exceeds the planned rate by more than chance explains.
    pub is_over_rate: bool,
    /// The planned number of items.
    pub capacity: u64,
    /// The planned rate.
    pub rate: f64,
}

impl Saturation {
    /// Estimates the present rate of a set. Returns `None` for a set without a rate.
    pub fn of(state: &State) -> Option<Self> {
        match state {
            State::Owned(file) => Some(Self::of_file(file)),
            State::Shared(filter) => Some(Self {
                is_over_rate: filter.is_over_rate(),
                capacity: filter.plan().items(),
                rate: filter.plan().rate(),
            }),
            _ => None,
        }
    }

    fn of_file<B: Bits<Word = u64>>(file: &TamisFile<B>) -> Self {
        let plan = file.filter.plan();
        let is_over_rate = match file.filter.sample(SAMPLE_BYTES) {
            Some(part) => part.is_over_rate(),
            None => file.is_over_rate(),
        };
        Self { is_over_rate, capacity: plan.items(), rate: plan.rate() }
    }
}

/// Returns the number of new items at which the rate is computed for the first time. A filter from
/// a file may hold items already, so its rate is computed early.
pub fn first_check(state: &State) -> u64 {
    match state {
        State::Owned(file) if file.added > 0 => {
            file.filter.plan().items().saturating_sub(file.added).max(1)
        }
        State::Owned(file) if file.filter.is_empty() => file.filter.plan().items().max(1),
        State::Owned(_) => 1,
        State::Shared(filter) if filter.is_empty() => filter.plan().items().max(1),
        State::Shared(_) => 1,
        _ => u64::MAX,
    }
}
