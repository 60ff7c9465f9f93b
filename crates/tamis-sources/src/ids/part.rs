//! One filter of a generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tamis::{
    AnyFilter, Bitmap, Bits as _, BitsMut as _, Hasher, Kind, Plan, PlanError, SharedBloom,
};

/// A filter that threads fill at once, and the number of its ids.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) filter: SharedBloom,
    /// The number of ids that changed a bit.
    pub(crate) items: AtomicU64,
    /// The last estimate of the rate, and the number of ids at that time.
    estimate: Mutex<Option<(u64, f64)>>,
}

impl Part {
    /// Creates an empty part for `items` ids.
    pub(crate) fn new(items: u64, rate: f64, hasher: Hasher) -> Result<Arc<Self>, PlanError> {
        let plan = Plan::for_kind(Kind::SplitBlock, items, rate)?;
        Ok(Self::of(SharedBloom::shared(&plan, hasher)?, 0))
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
        Some(Self::of(filter.into_shared(), items))
    }

    fn of(filter: SharedBloom, items: u64) -> Arc<Self> {
        Arc::new(Self { filter, items: AtomicU64::new(items), estimate: Mutex::new(None) })
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

    /// Estimates the false positive rate. Reads the bits, but only if the number of ids has changed by
    /// more than a hundredth since the last call did.
    pub(crate) fn estimate_rate(&self) -> f64 {
        let items = self.items.load(Ordering::Relaxed);
        let mut estimate = self.estimate.lock();
        match *estimate {
            Some((then, rate)) if items.abs_diff(then) <= then / 100 => rate,
            _ => {
                let rate = self.filter.estimate_rate();
                *estimate = Some((items, rate));
                rate
            }
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        // Relaxed: the number decides only when a part is added.
        self.items.load(Ordering::Relaxed) >= self.filter.plan().items()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_estimated_again_only_after_more_ids() {
        let part = Part::new(10_000, 0.01, Hasher::default()).unwrap();
        let insert = |ids: std::ops::Range<u64>| {
            for id in ids {
                let is_new = part.filter.insert(&id);
                part.items.fetch_add(u64::from(is_new), Ordering::Relaxed);
            }
            part.estimate_rate()
        };
        assert_eq!(part.estimate_rate(), 0.0);
        let half = insert(0..5000);
        assert_eq!(half, part.filter.estimate_rate());
        assert_eq!(insert(5000..5010), half, "the earlier estimate");
        let more = insert(5010..5200);
        assert!(more > half);
        assert_eq!(more, part.filter.estimate_rate());
    }
}
