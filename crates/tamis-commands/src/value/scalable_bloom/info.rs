//! Reports items, capacity, rate, fill and memory of a scalable filter.

use std::sync::atomic::Ordering;

use tamis::{Growing, Layout, Plan, allocation_bytes};
use tamis_formats::{FilterInfo, ItemCount, LayerInfo, TamisFile};

use crate::filter_info::expected_fill;
use crate::value::heap::file_heap_bytes;
use crate::value::scalable_bloom::{Reserved, ScalableBloom, grown};

/// The expected state of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedPart {
    pub info: LayerInfo,
    pub rate: f64,
    pub bytes: u64,
}

impl ScalableBloom {
    /// Counts the items that were new at the time of the insert.
    #[must_use]
    pub fn items(&self) -> u64 {
        let reserved = self.reserved.as_ref().map_or(0, |it| it.items.load(Ordering::Relaxed));
        let grown = self.overflow.as_deref().and_then(grown).map_or(0, Growing::len);
        // Use saturating addition, because an image may contain any count.
        reserved.saturating_add(grown)
    }

    /// Returns the current capacity in items. Until the filter is full, the result is the initial capacity. When the
    /// filter is full, the result is the sum of the capacities of all layers. Each layer has `expansion` times the
    /// capacity of the previous layer.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let Some(expansion) = self.expansion else { return self.capacity };
        // An image may contain a capacity of zero.
        let (items, first) = (self.items(), self.capacity.max(1));
        if expansion <= 1 {
            // Do not loop over equal layers, because the number of layers may equal the number of
            // items.
            return first.saturating_mul(items.div_ceil(first).max(1));
        }
        let (mut layer, mut sum) = (first, first);
        while sum < items {
            layer = layer.saturating_mul(u64::from(expansion));
            sum = sum.saturating_add(layer);
        }
        sum
    }

    /// Returns the number of filters that a lookup reads: one or two.
    #[must_use]
    pub fn parts(&self) -> u64 {
        u64::from(self.reserved.is_some()) + u64::from(self.overflow.is_some())
    }

    /// Returns the growth factor of the capacity from layer to layer; `None` if the filter does not
    /// grow.
    #[must_use]
    pub fn expansion(&self) -> Option<u32> {
        self.expansion
    }

    /// Returns the planned rate, a probability.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Estimates the current false positive rate, a probability. Reads all bits.
    #[must_use]
    pub fn estimate_rate(&self) -> f64 {
        let reserved = self.reserved.as_ref().map_or(0.0, Reserved::estimate_rate);
        let overflow = self.overflow.as_ref().map_or(0.0, |it| it.filter.estimate_rate());
        1.0 - (1.0 - reserved) * (1.0 - overflow)
    }

    /// Returns the share of set bits in the reserved part. For a filter without a reserved part,
    /// returns the fill of the overflow part. Reads all bits.
    #[must_use]
    pub fn fill(&self) -> f64 {
        match (&self.reserved, &self.overflow) {
            (Some(reserved), _) => reserved.fill(),
            (None, Some(overflow)) => overflow.filter.fill(),
            (None, None) => 0.0,
        }
    }

    /// Returns the expected state of the reserved part and of the overflow part, computed from the
    /// item counts. Reads no bits.
    pub(crate) fn expected(&self) -> (Option<ExpectedPart>, Option<ExpectedPart>) {
        let reserved = self.reserved.as_ref().map(|reserved| {
            let items = reserved.items.load(Ordering::Relaxed);
            let plan = reserved.plan();
            let fill = expected_fill(items, plan.probes(), plan.bits());
            let info = LayerInfo { items, capacity: Some(self.capacity), fill };
            ExpectedPart { info, rate: plan.rate_at(items), bytes: plan.bytes() }
        });
        let overflow = self.overflow.as_deref().and_then(grown).map(|overflow| ExpectedPart {
            info: LayerInfo { items: overflow.len(), capacity: None, fill: overflow.fill() },
            rate: overflow.estimate_rate(),
            bytes: overflow.memory_bytes(),
        });
        (reserved, overflow)
    }

    /// Returns the expected rate at the current number of items, a probability. Reads no bits.
    pub(crate) fn expected_rate(&self) -> f64 {
        let (reserved, overflow) = self.expected();
        let parts = [reserved, overflow].into_iter().flatten();
        1.0 - parts.map(|part| 1.0 - part.rate).product::<f64>()
    }

    /// Returns the info of the filter, except kind and memory. If `is_expected` is true, computes
    /// fill and rate from the item counts. If `is_expected` is false, reads all bits.
    pub(crate) fn info(&self, is_expected: bool) -> FilterInfo {
        let (items, capacity) = (self.items(), self.capacity());
        let layout = match self.layouts() {
            (Some(reserved), Some(overflow)) => format!("{reserved}; then {overflow}"),
            (one, other) => one.or(other).map_or_else(String::new, |layout| layout.to_string()),
        };
        let is_over_rate = self.is_over_rate();
        let (reserved, overflow) = self.expected();
        let (rate_now, fill) = if is_expected {
            (self.expected_rate(), reserved.or(overflow).map_or(0.0, |part| part.info.fill))
        } else {
            (self.estimate_rate(), self.fill())
        };
        FilterInfo {
            layout,
            items: items as f64,
            items_are: ItemCount::Inserted,
            capacity: Some(capacity),
            rate_planned: Some(self.rate),
            rate_now,
            fill,
            is_over_rate,
            headroom_items: match is_over_rate {
                true => Some(0),
                false => self.expansion.is_none().then(|| capacity.saturating_sub(items)),
            },
            refuses: self.expansion.is_none(),
            bytes_per_new_item: overflow
                .filter(|overflow| overflow.info.items > 0)
                .map(|overflow| overflow.bytes as f64 / overflow.info.items as f64),
            layers: [reserved, overflow].into_iter().flatten().map(|part| part.info).collect(),
            ..FilterInfo::default()
        }
    }

    /// Returns the name of the filter's kind for replies.
    pub(crate) fn kind_name(&self) -> &'static str {
        if self.expansion().is_some() { "bloom (growing)" } else { "bloom" }
    }

    /// Returns the layouts of the reserved part and of the overflow part.
    #[must_use]
    pub fn layouts(&self) -> (Option<Layout>, Option<Layout>) {
        let reserved = self.reserved.as_ref().map(Reserved::layout);
        (reserved, self.overflow.as_ref().map(|it| it.filter.layout()))
    }

    /// Returns the memory of both parts, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let reserved = self.reserved.as_ref().map_or(0, |it| it.plan().bytes());
        reserved + self.overflow.as_deref().and_then(grown).map_or(0, Growing::memory_bytes)
    }

    /// Returns the heap memory of both parts, in bytes, computed by
    /// [`allocation_bytes`](tamis::allocation_bytes).
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let reserved = self.reserved.as_ref().map_or(0, Reserved::heap_bytes);
        let overflow = self
            .overflow
            .as_deref()
            .map_or(0, |file| allocation_bytes(size_of::<TamisFile>()) + file_heap_bytes(file));
        reserved + overflow
    }

    /// Returns the plan of the reserved part; `None` if the filter has no reserved part.
    pub(crate) fn reserved_plan(&self) -> Option<Plan> {
        self.reserved.as_ref().map(Reserved::plan)
    }

    /// Returns the capacity of the reserved part, in items.
    pub(crate) fn reserved_items(&self) -> u64 {
        self.capacity
    }
}
