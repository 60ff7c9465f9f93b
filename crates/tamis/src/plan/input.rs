//! The input of a plan: two numbers from which the plan computes a third number.

use crate::plan::kind::Kind;
use crate::plan::{Plan, PlanError};

/// Two of the three values items, rate and memory. [`plan`](Self::plan) computes the third value.
///
/// # Examples
///
/// ```
/// use tamis::{Kind, PlanInput};
///
/// let input = PlanInput::MemoryAndRate { max_bytes: 1 << 20, rate: 0.01 };
/// assert_eq!(input.default_kind(), Kind::SplitBlock);
/// assert!(input.plan(Kind::Classic)?.items() > 870_000);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlanInput {
    /// Items and rate. The plan computes the memory.
    ItemsAndRate {
        /// The number of distinct items at capacity.
        items: u64,
        /// The false positive rate at capacity.
        rate: f64,
    },
    /// Memory and rate. The plan computes the items.
    MemoryAndRate {
        /// The maximum size of the filter, in bytes.
        max_bytes: u64,
        /// The false positive rate at capacity.
        rate: f64,
    },
    /// Items and memory. The plan computes the rate.
    ItemsAndMemory {
        /// The number of distinct items at capacity.
        items: u64,
        /// The maximum size of the filter, in bytes.
        max_bytes: u64,
    },
}

impl PlanInput {
    /// Plans a filter of this kind.
    ///
    /// # Errors
    ///
    /// The errors of [`Plan::for_kind`], [`Plan::for_memory`] and [`Plan::for_items_in`].
    pub fn plan(self, kind: Kind) -> Result<Plan, PlanError> {
        match self {
            PlanInput::ItemsAndRate { items, rate } => Plan::for_kind(kind, items, rate),
            PlanInput::MemoryAndRate { max_bytes, rate } => Plan::for_memory(kind, max_bytes, rate),
            PlanInput::ItemsAndMemory { items, max_bytes } => {
                Plan::for_items_in(kind, items, max_bytes)
            }
        }
    }

    /// Returns the kind that [`Plan::new`] chooses for the numbers of this input. Returns the
    /// classic kind if a split-block filter does not fit in the memory.
    #[must_use]
    pub fn default_kind(self) -> Kind {
        let blocked = self.plan(Kind::SplitBlock);
        let default = blocked.and_then(|plan| Plan::new(plan.items(), plan.rate()));
        default.map_or(Kind::Classic, |plan| plan.kind())
    }
}
