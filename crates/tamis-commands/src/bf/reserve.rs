//! Implements `BF.RESERVE`, and creates Bloom filters.

use tamis::PlanError;
use tamis_redisbloom::{RedisBloom, RedisBloomError, RedisBloomOptions};

use crate::command::argv::{Argv, parse_double, parse_integer, position};
use crate::command::run::{Env, Outcome, Written};
use crate::settings::{ArgumentLimits, BloomLayout, Settings};
use crate::text::{self, Text, bf};
use crate::value::Value;
use crate::value::scalable_bloom::ScalableBloom;

/// The parameters of a new Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BloomOptions {
    pub rate: f64,
    pub capacity: u64,
    /// The expansion factor; 0 for a filter that does not grow.
    pub expansion: u32,
    pub is_scaling: bool,
}

impl BloomOptions {
    /// Returns the default parameters of a filter.
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            rate: settings.rate(),
            capacity: settings.bf_capacity,
            expansion: settings.bf_expansion,
            is_scaling: settings.bf_expansion != 0,
        }
    }

    /// Creates an empty filter in the layout of the settings. `is_reserved` is true if the client
    /// gives the capacity. If `is_reserved` is false, a filter with the layout of Tamis allocates
    /// no memory in advance.
    pub fn build(self, settings: &Settings, is_reserved: bool) -> Result<Value, Text> {
        let Self { rate, capacity, expansion, is_scaling } = self;
        // Estimate the memory by the size of a classic filter. The size of any other filter differs from the size of a
        // classic filter by less than the memory that the server itself needs.
        let bytes = capacity as f64 * -rate.ln() / std::f64::consts::LN_2.powi(2) / 8.0;
        if bytes > settings.max_filter_bytes as f64 {
            return Err(text::NO_MEMORY_FOR_FILTER);
        }
        match settings.bf_layout {
            BloomLayout::Tamis => {
                let expansion = is_scaling.then_some(expansion);
                let made = match expansion {
                    Some(expansion) if !is_reserved => {
                        ScalableBloom::growing(capacity, rate, expansion, settings.hasher)
                    }
                    _ => ScalableBloom::reserve_by(capacity, rate, expansion, settings.hasher),
                };
                made.map(|filter| Value::Bloom(Box::new(filter))).map_err(|error| match error {
                    PlanError::Memory(_) | PlanError::TooLarge { .. } => text::NO_MEMORY_FOR_FILTER,
                    _ => bf::NO_FILTER,
                })
            }
            BloomLayout::RedisBloom => {
                let options = RedisBloomOptions { capacity, rate, expansion, is_scaling };
                let made = RedisBloom::new(&options);
                made.map(|filter| Value::RedisBloom(Box::new(filter))).map_err(
                    |error| match error {
                        RedisBloomError::Memory(_) => text::NO_MEMORY_FOR_FILTER,
                        _ => bf::NO_FILTER,
                    },
                )
            }
        }
    }
}

/// Creates the empty filter of a key that does not exist, with the default parameters.
pub(crate) fn create_default(settings: &Settings) -> Result<Value, Text> {
    BloomOptions::from_settings(settings).build(settings, false)
}

/// Parses a rate between 0 and 1, and limits the rate to the maximum. Returns `None` if the rate is
/// out of range, and an error if the word is not a number.
pub(super) fn parse_rate(word: &[u8], limits: ArgumentLimits) -> Result<Option<f64>, ()> {
    let rate = parse_double(word).ok_or(())?;
    Ok((rate > 0.0 && rate < 1.0).then(|| rate.min(limits.rate)))
}

/// Converts an expansion within the limits to 32 bits. RedisBloom 2 keeps the lower 32 bits. If the lower 32 bits are
/// zero, the filter cannot grow in RedisBloom. In Tamis, the filter can grow even if the lower 32 bits are zero, so
/// that no item is lost.
pub(super) fn stored_expansion(expansion: i64) -> u32 {
    (expansion as u32).max(u32::from(expansion != 0))
}

/// Runs `BF.RESERVE key error capacity [EXPANSION n] [NONSCALING]`.
pub(crate) fn reserve(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    if argv.len() > 7 {
        return Err(text::wrong_arity("bf.reserve").into());
    }
    let options = parse(argv, env.settings)?;
    match value {
        None => Ok(Outcome::create(value, options.build(env.settings, true)?)),
        Some(Value::Bloom(_) | Value::RedisBloom(_) | Value::Filter(_)) => {
            Err(text::ITEM_EXISTS.into())
        }
        Some(_) => Err(text::WRONG_TYPE.into()),
    }
}

/// Parses the arguments. As in RedisBloom, an option may be at any position, even in place of the
/// key. Unknown arguments are ignored.
fn parse(argv: Argv<'_>, settings: &Settings) -> Result<BloomOptions, Text> {
    let limits = settings.limits;
    let rate = parse_rate(argv[2], limits).map_err(|()| bf::BAD_RATE)?.ok_or(bf::RATE_RANGE)?;
    let capacity = parse_integer(argv[3]).ok_or(bf::BAD_CAPACITY)?;
    if !(1..=limits.capacity).contains(&capacity) {
        return Err(bf::CAPACITY_RANGE);
    }
    let mut expansion = i64::from(settings.bf_expansion);
    let mut is_scaling = expansion != 0;
    let expansion_at = position(argv, "EXPANSION");
    if let Some(at) = expansion_at {
        let word = argv.get(at + 1).ok_or(bf::NO_EXPANSION)?;
        expansion = parse_integer(word).ok_or(bf::BAD_EXPANSION)?;
        if !(0..=limits.expansion).contains(&expansion) {
            return Err(bf::EXPANSION_RANGE);
        }
        is_scaling = expansion != 0;
    }
    if position(argv, "NONSCALING").is_some() {
        if expansion_at.is_some() && expansion != 0 {
            return Err(bf::NONSCALING_EXPANDS);
        }
        is_scaling = false;
    }
    // An expansion of 0 always means that the filter does not grow.
    let expansion = stored_expansion(expansion);
    Ok(BloomOptions { rate, capacity: capacity as u64, expansion, is_scaling })
}
