//! Plans the number of bits and of probes as Guava does. Several Java systems copied Guava's formulas.

use crate::errors::CreateError;
use crate::filters::foreign_bloom::ForeignBloom;
use crate::rules::any_rule::Rule;
use crate::rules::guava_rules::{Mitz32, Mitz64};

/// Guava's two probe rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GuavaStrategy {
    /// `MURMUR128_MITZ_32`, up to Guava 16.
    Mitz32 = 0,
    /// `MURMUR128_MITZ_64`, since Guava 17.
    #[default]
    Mitz64 = 1,
}

/// A range of Guava releases with the same formula for the number of probes. A Guava file stores the number of probes,
/// so only new filters depend on the release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GuavaRelease {
    /// Guava up to 14: the formula uses the bits per item, rounded down to a whole number.
    Until14,
    /// Guava after 14 and before 33.4, such as 31.1: the formula uses the exact bits per item.
    Until33,
    /// Guava 33.4.6 and later: the formula uses only the rate.
    #[default]
    Since33,
}

/// Returns the number of bits that Guava plans, as `(bits, words)`. `bits` is the result of Guava's formula. `words` is
/// the number of 64-bit words that contain `bits` bits.
///
/// Zero `items` are planned as one item.
#[must_use]
pub fn plan_bits(items: u64, rate: f64) -> (u64, u64) {
    let (n, p, ln_2) = (items.max(1) as f64, rate, std::f64::consts::LN_2);
    // The order of operations is the order of the Java code. The number of bits is clamped to the largest Java `long`.
    let bits = ((-n * p.ln() / (ln_2 * ln_2)) as i64).cast_unsigned();
    (bits, bits.div_ceil(64))
}

/// Returns the number of probes that a release of Guava chooses. `bits` is the number of bits that [`plan_bits`]
/// returns for `items` items.
#[must_use]
pub fn plan_probes(items: u64, bits: u64, rate: f64, release: GuavaRelease) -> u64 {
    let (n, ln_2) = (items.max(1), std::f64::consts::LN_2);
    let k = match release {
        GuavaRelease::Until14 => (bits / n) as f64 * ln_2,
        GuavaRelease::Until33 => bits as f64 / n as f64 * ln_2,
        GuavaRelease::Since33 => -rate.ln() / ln_2,
    };
    // Java rounds half up.
    ((k + 0.5).floor() as u64).max(1)
}

/// Creates an empty filter as `BloomFilter.create` does.
///
/// # Errors
///
/// [`CreateError`] if Guava refuses the plan.
///
/// # Examples
///
/// ```
/// use tamis_formats::guava::{GuavaRelease, GuavaStrategy, create};
///
/// let users = create(1_500, 0.01, GuavaStrategy::Mitz64, GuavaRelease::Since33)?;
/// assert_eq!((users.rule().bits(), users.rule().probes()), (14_400, 7));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(
    items: u64,
    rate: f64,
    strategy: GuavaStrategy,
    release: GuavaRelease,
) -> Result<ForeignBloom, CreateError> {
    ForeignBloom::new(plan(items, rate, strategy, release)?).map_err(CreateError::Memory)
}

/// Plans a filter without allocating memory.
pub(crate) fn plan(
    items: u64,
    rate: f64,
    strategy: GuavaStrategy,
    release: GuavaRelease,
) -> Result<Rule, CreateError> {
    CreateError::check_plan("Guava", items.max(1), rate)?;
    let (bits, words) = plan_bits(items, rate);
    let probes = plan_probes(items, bits, rate, release);
    if words > i32::MAX as u64 {
        return Err(CreateError::refused(format!(
            "Guava has at most 137,438,953,408 bits, not {bits}: plan fewer items or a higher rate"
        )));
    }
    let probes = u8::try_from(probes).map_err(|_| {
        CreateError::refused(format!(
            "Guava has at most 255 probes, not {probes}: plan a higher rate"
        ))
    })?;
    rule(strategy, words * 64, probes).ok_or_else(|| {
        CreateError::refused("Guava makes no filter of 0 bits: plan more items or a lower rate")
    })
}

/// Returns the rule of a filter, or `None` if `bits` is 0.
pub(crate) fn rule(strategy: GuavaStrategy, bits: u64, probes: u8) -> Option<Rule> {
    let probes = probes.into();
    Some(match strategy {
        GuavaStrategy::Mitz32 => Rule::new(Mitz32::new(bits, probes)?),
        GuavaStrategy::Mitz64 => Rule::new(Mitz64::new(bits, probes)?),
    })
}
