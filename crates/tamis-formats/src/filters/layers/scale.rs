//! Plans the layers of `pybloom_live`.

use crate::errors::{ChangeError, CreateError};
use crate::filters::foreign_bloom::ForeignBloom;
use crate::filters::layers::layer::Layer;
use crate::rules::Rule;
use crate::rules::probe_positions::ProbePositions;
use crate::rules::pybloom_rule::{ShortDigest, Slices};

/// The growth parameters of a `ScalableBloomFilter`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The capacity of a layer divided by the capacity of the previous layer.
    pub factor: i32,
    /// The rate of a layer divided by the rate of the previous layer.
    pub ratio: f64,
    /// The capacity of the first layer.
    pub capacity: u64,
    /// The requested rate. The rate of the first layer is the requested rate times `ratio`.
    pub rate: f64,
    /// The digest function of layers whose probes need at most 128 hash bits.
    pub short: ShortDigest,
}

/// The largest accepted growth factor. The original library uses the factors 2 and 4.
const MAX_FACTOR: u64 = 16;

impl Scale {
    pub(crate) fn next_layer(&self, last: Option<&Layer>) -> Result<Layer, ChangeError> {
        let (capacity, rate) = match last {
            None => (self.capacity, self.rate),
            Some(last) => {
                let factor = u64::try_from(self.factor).unwrap_or(0);
                if factor > MAX_FACTOR || last.capacity > last.filter.rule().bits() {
                    return Err(ChangeError::refused(
                        "its next layer would be far larger than the filter, more than any program \
                        plans: the scale or the capacity is damaged",
                    ));
                }
                (last.capacity.saturating_mul(factor), last.rate)
            }
        };
        new_layer(capacity, rate * self.ratio, self.short)
            .map_err(|error| ChangeError::refused(error.to_string()))
    }
}

/// Returns the plan of `pybloom_live`: the number of slices, and the number of bits of each slice.
///
/// # Examples
///
/// ```
/// assert_eq!(tamis_formats::pybloom_live::plan(10_000, 0.01), (7, 13_693));
/// ```
#[must_use]
pub fn plan(items: u64, rate: f64) -> (u64, u64) {
    let (n, p, ln_2) = (items as f64, rate, std::f64::consts::LN_2);
    let slices = ((1.0 / p).ln() / ln_2).ceil();
    // The order of operations is the same as in Python, so the results are rounded equally.
    let width = (n * p.ln().abs() / (slices * (ln_2 * ln_2))).ceil();
    (slices as u64, width as u64)
}

/// Creates an empty layer for `capacity` items at `rate`.
pub(crate) fn new_layer(
    capacity: u64,
    rate: f64,
    short: ShortDigest,
) -> Result<Layer, CreateError> {
    CreateError::check_plan("pybloom_live", capacity, rate)?;
    let (slices, width) = plan(capacity, rate);
    let rule = Slices::new(slices, width, short).ok_or_else(|| {
        CreateError::refused(format!(
            "{slices} slices of {width} bits for {capacity} items are too large: at most {} \
            slices, and as many bits as fit into memory",
            ProbePositions::MAX
        ))
    })?;
    let filter = ForeignBloom::new(Rule::new(rule))?;
    Ok(Layer { filter, capacity, rate, added: Some(0) })
}
