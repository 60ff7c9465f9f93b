//! Plans the size of a filter of BIP-37.

use crate::errors::CreateError;

/// The maximum size of a filter that nodes accept, in bytes.
pub const MAX_BYTES: usize = 36_000;

/// The largest number of probes ("hash functions") that nodes accept.
pub const MAX_PROBES: u32 = 50;

/// The formula for the number of probes. A message stores the number of probes, so only new filters depend on the
/// formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bip37Sizing {
    /// The formula of Bitcoin Core, which rounds the bits per item down to a whole number.
    #[default]
    Core,
    /// The formula of BIP-37 and of most programs except Bitcoin Core. The formula of BIP-37 uses the exact bits per
    /// item.
    Real,
}

/// Returns the number of bytes and the number of probes of a plan.
///
/// The number of bytes and the number of probes are clamped to the limits of nodes. A clamped filter has a higher rate
/// than `rate`. The bytes are 0 if the rate is near 1. The probes are 0 if there are more items than bits. A filter
/// with 0 bytes or 0 probes matches every item.
///
/// # Errors
///
/// [`CreateError`] if `items` is 0, or if the rate is not above 0 and at most 1.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip37::{Bip37Sizing, plan};
///
/// assert_eq!(plan(3, 0.01, Bip37Sizing::Core)?, (3, 5));
/// assert_eq!(plan(1_000_000, 0.01, Bip37Sizing::Core)?, (36_000, 0));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn plan(items: u32, rate: f64, sizing: Bip37Sizing) -> Result<(usize, u32), CreateError> {
    // The constant of Bitcoin Core: the square of ln 2, rounded once.
    const LN_2_SQUARED: f64 = 0.480_453_013_918_201_4;
    if items == 0 {
        return Err(CreateError::refused("BIP-37 has no filter of 0 items: plan 1 or more"));
    }
    if !(rate > 0.0 && rate <= 1.0) {
        let why = format!("BIP-37 takes rates above 0 and up to 1, not {rate}");
        return Err(CreateError::refused(why));
    }
    let n = f64::from(items);
    let bits = (-1.0 / LN_2_SQUARED * n * rate.ln()) as u64;
    let bytes = (bits / 8).min(MAX_BYTES as u64);
    let bits_an_item = match sizing {
        Bip37Sizing::Core => (bytes * 8 / u64::from(items)) as f64,
        Bip37Sizing::Real => (bytes * 8) as f64 / n,
    };
    let probes = (bits_an_item * std::f64::consts::LN_2) as u32;
    Ok((bytes as usize, probes.min(MAX_PROBES)))
}
