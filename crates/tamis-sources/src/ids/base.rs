//! The immutable filter below a generation: the filter of a file, or a copy of a filter from a server.

use std::sync::OnceLock;

use tamis::AnyFilter;

/// A filter whose ids are part of a generation from the start.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) filter: BaseFilter,
    /// The estimated number of ids.
    pub(crate) items: u64,
    /// The estimated false positive rate. The cell is empty until the first call of `estimate_rate`.
    rate_now: OnceLock<f64>,
}

#[derive(Debug)]
pub(crate) enum BaseFilter {
    Tamis(Box<AnyFilter>),
    #[cfg(feature = "databases")]
    Foreign(Box<dyn ForeignFilter>),
}

/// A filter with the layout of another system.
#[cfg(feature = "databases")]
pub(crate) trait ForeignFilter: std::fmt::Debug + Send + Sync {
    /// Tests whether an id may be in the filter.
    fn contains(&self, id: &[u8]) -> bool;

    /// Returns the number of ids, which may be an estimate.
    fn items(&self) -> u64;

    /// Returns the memory usage in bytes.
    fn bytes(&self) -> u64;

    /// Returns the planned false positive rate. Returns the present rate if the plan is unknown.
    fn rate(&self) -> f64;

    /// Estimates the present false positive rate.
    fn estimate_rate(&self) -> f64;
}

impl Base {
    /// Creates a base from a Tamis filter. The function reads all bits of the filter.
    pub(crate) fn tamis(filter: AnyFilter) -> Self {
        Self {
            items: filter.estimate_items().round() as u64,
            filter: BaseFilter::Tamis(Box::new(filter)),
            rate_now: OnceLock::new(),
        }
    }

    #[cfg(feature = "databases")]
    pub(crate) fn foreign(filter: Box<dyn ForeignFilter>) -> Self {
        Self {
            items: filter.items(),
            filter: BaseFilter::Foreign(filter),
            rate_now: OnceLock::new(),
        }
    }

    pub(crate) fn contains(&self, id: &[u8]) -> bool {
        match &self.filter {
            BaseFilter::Tamis(filter) => filter.contains(id),
            #[cfg(feature = "databases")]
            BaseFilter::Foreign(filter) => filter.contains(id),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match &self.filter {
            BaseFilter::Tamis(filter) => filter.plan().bytes(),
            #[cfg(feature = "databases")]
            BaseFilter::Foreign(filter) => filter.bytes(),
        }
    }

    pub(crate) fn rate(&self) -> f64 {
        match &self.filter {
            BaseFilter::Tamis(filter) => filter.plan().rate(),
            #[cfg(feature = "databases")]
            BaseFilter::Foreign(filter) => filter.rate(),
        }
    }

    /// Estimates the false positive rate. The first call may read all bits.
    pub(crate) fn estimate_rate(&self) -> f64 {
        *self.rate_now.get_or_init(|| match &self.filter {
            BaseFilter::Tamis(filter) => filter.estimate_rate(),
            #[cfg(feature = "databases")]
            BaseFilter::Foreign(filter) => filter.estimate_rate(),
        })
    }
}
