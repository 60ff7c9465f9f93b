//! One filter of a generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tamis::{
    AnyFilter, Bitmap, Bits as _, BitsMut as _, Hasher, Kind, Plan, PlanError, SharedBloom,
};

/// A filter that threads fill at once, and the number of its ids.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) filter: SharedBloom,
    /// The number of ids that changed a bit.
    pub(crate) items: AtomicU64,
}

impl Part {
    /// Creates an empty part for `items` ids.
    pub(crate) fn new(items: u64, rate: f64, hasher: Hasher) -> Result<Arc<Self>, PlanError> {
        let plan = Plan::for_kind(Kind::SplitBlock, items, rate)?;
        Ok(Arc::new(Self { filter: SharedBloom::shared(&plan, hasher)?, items: AtomicU64::new(0) }))
    }

    /// Creates a part from the filter of [`copy`](Self::copy). Returns `None` if a part cannot have
    /// this filter or this number of ids.
    pub(crate) fn restore(filter: AnyFilter, items: u64) -> Option<Arc<Self>> {
        let AnyFilter::SplitBlock(filter) = filter else { return None };
        // Each id of the number changed a bit, and a plan has at least a bit for each id.
        let plan = filter.plan();
        if items.max(plan.items()) > plan.bits() {
            return None;
        }
        Some(Arc::new(Self { filter: filter.into_shared(), items: AtomicU64::new(items) }))
    }

    /// Returns a copy of the filter. It has all ids that were inserted before the call, and any of
    /// those that other threads insert meanwhile.
    pub(crate) fn copy(&self) -> Result<AnyFilter, PlanError> {
        let plan = self.filter.plan();
        let mut bits = Bitmap::zeroed(plan.bits())?;
        for (copy, word) in bits.words_mut().iter_mut().zip(self.filter.bits().words()) {
            // Relaxed: the caller has synchronized with the inserts that the copy must have.
            *copy = word.load(Ordering::Relaxed);
        }
        AnyFilter::restore(plan, self.filter.hasher(), bits)
    }

    pub(crate) fn is_full(&self) -> bool {
        // Relaxed: the number decides only when a part is added.
        self.items.load(Ordering::Relaxed) >= self.filter.plan().items()
    }
}
