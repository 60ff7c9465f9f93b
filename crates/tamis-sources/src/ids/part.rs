//! A filter that is a part of a generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tamis::{
    AnyFilter, Bitmap, Bits as _, BitsMut as _, Hasher, Kind, Plan, PlanError, SharedBloom,
};

/// A filter that several threads fill concurrently, and the number of its ids.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) filter: SharedBloom,
    /// The number of inserted ids that changed at least one bit, and the ids of the full read that changed no bit.
    pub(crate) items: AtomicU64,
    /// The last estimate of the rate, with the number of ids at the time of the estimate.
    estimate: Mutex<Option<(u64, f64)>>,
}

impl Part {
    /// Creates an empty part with a capacity of `items` ids.
    pub(crate) fn new(items: u64, rate: f64, hasher: Hasher) -> Result<Arc<Self>, PlanError> {
        let plan = Plan::for_kind(Kind::SplitBlock, items, rate)?;
        Ok(Self::of(SharedBloom::from_plan(&plan, hasher)?, 0))
    }

    /// Creates a part from a filter that [`copy`](Self::copy) returned. Returns `None` if the kind of the filter or the
    /// number of ids is invalid for a part.
    pub(crate) fn restore(filter: AnyFilter, items: u64) -> Option<Arc<Self>> {
        let AnyFilter::SplitBlock(filter) = filter else { return None };
        // Each counted id changed a bit, so `items` is at most the number of bits. A plan has at least one bit for each
        // planned id.
        let plan = filter.plan();
        if items.max(plan.items()) > plan.bits() {
            return None;
        }
        Some(Self::of(filter.into_shared(), items))
    }

    fn of(filter: SharedBloom, items: u64) -> Arc<Self> {
        Arc::new(Self { filter, items: AtomicU64::new(items), estimate: Mutex::new(None) })
    }

    /// Returns a copy of the filter. The copy contains all ids that were inserted before the call. The copy may contain
    /// some ids that other threads insert during the call.
    pub(crate) fn copy(&self) -> Result<AnyFilter, PlanError> {
        let plan = self.filter.plan();
        let mut bits = Bitmap::zeroed(plan.bits())?;
        for (copy, word) in bits.words_mut().iter_mut().zip(self.filter.bits().words()) {
            // Relaxed: the caller has synchronized with the inserts that the copy must contain.
            *copy = word.load(Ordering::Relaxed);
        }
        AnyFilter::restore(plan, self.filter.hasher(), bits)
    }

    /// Estimates the false positive rate. The function reads the bits only if the number of ids has changed by more
    /// than 1 % since the last estimate.
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
        // Relaxed: the number only decides when the generation adds a part.
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
