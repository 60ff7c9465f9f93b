//! The output of `Debug` for filters: kind, size and state in one line, at a bounded cost.

use std::fmt;

use crate::filter::Filter;
use crate::hash::Hasher;
use crate::plan::Plan;

/// The maximum number of bytes of a filter that `Debug` reads.
pub(crate) const DEBUG_BYTES: u64 = 64 << 10;

/// The state of a filter, or of the part of a filter that `Debug` reads.
pub(crate) struct DebugState {
    /// The estimated number of distinct items.
    pub items: f64,
    /// The share of bits that are set.
    pub fill: f64,
    /// The current false positive rate.
    pub rate: f64,
}

impl DebugState {
    /// Returns the state of a filter.
    pub fn of(filter: &impl Filter) -> Self {
        let (items, fill, rate) = (filter.estimate_items(), filter.fill(), filter.estimate_rate());
        Self { items, fill, rate }
    }

    /// Scales the estimated number of items from a part of a filter to the whole filter.
    pub fn of_part(self, part: &Plan, plan: &Plan) -> Self {
        Self { items: self.items * plan.bits() as f64 / part.bits() as f64, ..self }
    }

    /// Writes the line of `Debug`, without a secret key.
    pub fn fmt(
        &self,
        name: &str,
        plan: &Plan,
        hasher: Hasher,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let Self { items, fill, rate } = self;
        let mut out = f.debug_struct(name);
        out.field("kind", &format_args!("{}", plan.kind()));
        // A growing filter holds any number of items.
        if !plan.kind().grows() {
            out.field("capacity", &plan.items());
        }
        out.field("planned_rate", &plan.rate())
            .field("estimated_items", &format_args!("{items:.0}"))
            .field("estimated_rate", &format_args!("{rate:.2e}"))
            .field("fill", &format_args!("{fill:.3}"))
            .field("hasher", &format_args!("{hasher}"))
            .finish()
    }
}
