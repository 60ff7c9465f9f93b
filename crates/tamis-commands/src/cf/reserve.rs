//! Implements `CF.RESERVE`, and creates cuckoo filters.

use tamis_redisbloom::{RedisCuckoo, RedisCuckooError, RedisCuckooOptions};

use crate::command::argv::{Argv, parse_integer, position};
use crate::command::run::{Env, Outcome, Written};
use crate::settings::{MAX_CUCKOO_EXPANSION, Settings};
use crate::text::{self, Text, cf};
use crate::value::Value;

/// Returns the default parameters of a filter.
pub(super) fn default_options(settings: &Settings) -> RedisCuckooOptions {
    RedisCuckooOptions {
        capacity: settings.cf_capacity,
        bucket_size: settings.cf_bucket_size,
        max_iterations: settings.cf_max_iterations,
        expansion: settings.cf_expansion,
    }
}

/// Creates an empty filter.
pub(super) fn build(options: RedisCuckooOptions, settings: &Settings) -> Result<Value, Text> {
    // A slot takes one byte. The number of buckets is rounded up to a power of two.
    let bucket = u64::from(options.bucket_size.max(1));
    let slots = (options.capacity / bucket).next_power_of_two().saturating_mul(bucket);
    if slots > settings.max_filter_bytes {
        return Err(text::NO_MEMORY_FOR_FILTER);
    }
    match RedisCuckoo::new(&options) {
        Ok(filter) => Ok(Value::RedisCuckoo(Box::new(filter))),
        Err(RedisCuckooError::Memory(_)) => Err(text::NO_MEMORY_FOR_FILTER),
        Err(_) => Err(cf::NO_FILTER),
    }
}

/// Runs `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`.
pub(crate) fn reserve(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    if argv.len().is_multiple_of(2) {
        return Err(text::wrong_arity("cf.reserve").into());
    }
    let options = parse(argv, env.settings)?;
    match value {
        None => Ok(Outcome::create(value, build(options, env.settings)?)),
        Some(Value::RedisCuckoo(_)) => Err(text::ITEM_EXISTS.into()),
        Some(_) => Err(text::WRONG_TYPE.into()),
    }
}

/// Parses the arguments. Ignores a pair of words if the first word is not an option.
fn parse(argv: Argv<'_>, settings: &Settings) -> Result<RedisCuckooOptions, Text> {
    let capacity = parse_integer(argv[2]).ok_or(cf::BAD_CAPACITY)?;
    let mut options = default_options(settings);
    let number = |name, bad: Text, range: std::ops::RangeInclusive<i64>, outside: Text| {
        // Search only the words after the capacity. In contrast, `BF.RESERVE` searches all arguments.
        let Some(at) = position(&argv[3..], name) else { return Ok(None) };
        let number = argv.get(3 + at + 1).and_then(|word| parse_integer(word)).ok_or(bad)?;
        if range.contains(&number) { Ok(Some(number)) } else { Err(outside) }
    };
    if let Some(n) = number("MAXITERATIONS", cf::BAD_ITERATIONS, 1..=65_535, cf::ITERATIONS_RANGE)?
    {
        options.max_iterations = n as u16;
    }
    if let Some(n) = number("BUCKETSIZE", cf::BAD_BUCKET_SIZE, 1..=255, cf::BUCKET_SIZE_RANGE)? {
        options.bucket_size = n as u16;
    }
    let expansions = 0..=MAX_CUCKOO_EXPANSION;
    if let Some(n) = number("EXPANSION", cf::BAD_EXPANSION, expansions, cf::EXPANSION_RANGE)? {
        options.expansion = n as u16;
    }
    if !(2 * i64::from(options.bucket_size)..=settings.limits.capacity).contains(&capacity) {
        return Err(cf::CAPACITY_RANGE);
    }
    Ok(RedisCuckooOptions { capacity: capacity as u64, ..options })
}
