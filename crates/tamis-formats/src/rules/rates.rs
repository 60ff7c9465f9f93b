//! The false positive rates of the probe rules.
//!
//! The textbook rate is the share of set bits to the power of the number of probes. The textbook rate is correct only
//! if the probes of an item are independent. The rules of other systems compute all probes from one or two numbers:
//!
//! * Probes of an item can repeat, so an absent item tests fewer bits: [`progression`], [`alternating`] and
//!   [`enhanced`].
//! * Two items can share several probes: [`progression`], [`alternating`] and [`enhanced`].
//! * If the states of two items are equal modulo a power of two, all following states are equal modulo this power:
//!   [`multiplied`].
//! * The hash can have too few bits to reach every position evenly: [`drawn_fill`].
//!
//! The rates of small filters, and of rules with blocks, are [measured](measure) instead of computed.

pub(crate) mod alternating;
pub(crate) mod blocks;
pub(crate) mod drawn_fill;
pub(crate) mod enhanced;
pub(crate) mod measure;
pub(crate) mod multiplied;
pub(crate) mod progression;
mod residues;

/// An estimate of a false positive rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EstimatedRate {
    /// The probability that the filter reports an absent item as present.
    pub(crate) rate: f64,
    /// The standard deviation of the rate, divided by the rate. Chance decides which bits the items set and which
    /// hashes are measured.
    pub(crate) std_error: f64,
}

impl EstimatedRate {
    /// Computes the rate of `probes` independent probes in `bits` bits.
    pub(crate) fn independent(fill: f64, bits: u64, probes: u32) -> Self {
        Self { rate: fill.powf(probes.into()), std_error: chance(fill, bits, probes) }
    }

    /// Returns the rate of several filters that are tested together. An item is reported as present if any filter
    /// contains the item.
    pub(crate) fn of_any(rates: &[Self]) -> Self {
        let rate = 1.0 - rates.iter().map(|it| 1.0 - it.rate).product::<f64>();
        let variance: f64 = rates.iter().map(|it| (it.rate * it.std_error).powi(2)).sum();
        Self { rate, std_error: if rate > 0.0 { variance.sqrt() / rate } else { 0.0 } }
    }
}

/// Returns the standard deviation of a rate that is estimated from the bits, divided by the rate.
pub(crate) fn chance(fill: f64, bits: u64, probes: u32) -> f64 {
    let left = 1.0 - fill;
    if !(fill > 0.0 && left > 0.0) {
        return 0.0;
    }
    // Linear counting (Whang et al. 1990, §4): t is the number of draws per bit, and m is the
    // number of bits. The share of clear bits has the mean e⁻ᵗ and the variance e⁻ᵗ(1 − (1 +
    // t)e⁻ᵗ)/m.
    let t = -left.ln();
    let variance = left * (1.0 - (1.0 + t) * left) / bits as f64;
    f64::from(probes) * variance.max(0.0).sqrt() / fill
}
