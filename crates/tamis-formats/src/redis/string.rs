//! Reads and writes bits in a Redis string, in the order of `SETBIT`. The plan determines the number of bits; the
//! string does not.
//!
//! ```text
//! byte 0                  1
//!     | bits 0 1 … 6 7   | bits 8 9 … 14 15 | ...        bit 0 is 0x80 of its byte
//! ```
//!
//! The last byte of the string contains the highest bit that was ever written.

use std::borrow::Cow;

use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Parameter};
use crate::redis::payload::RedisValue;
use crate::redis::rdb::{Rdb, RdbEntry};
use crate::redis::rdb_encoding::MAX_EXPANSION;
use crate::rules::Rule;

/// A function that plans the rule of a filter of one system.
pub(crate) type PlanRule = fn(items: u64, rate: f64) -> Result<Rule, CreateError>;

/// Plans the rule for decoding a filter, from the items and the rate in the options.
pub(crate) fn rule_to_decode(options: &DecodeOptions, plan: PlanRule) -> Result<Rule, DecodeError> {
    let (items, rate) = options.plan_to_decode()?;
    plan(items, rate)
        .map_err(|error| DecodeError::refused(Parameter::Items.name(), 0, error.to_string()))
}

/// Creates an empty filter for the plan in the options.
pub(crate) fn create(options: &DecodeOptions, plan: PlanRule) -> Result<ForeignBloom, CreateError> {
    let (items, rate) = options.plan()?;
    Ok(ForeignBloom::new(plan(items, rate)?)?)
}

/// Returns the filter, if `system` plans the rule of the filter for the items and the rate in the options. The check of
/// the rule is necessary because a string does not store the rule. `system` computes the rule from the items and the
/// rate.
pub(crate) fn fitting<'a, R: 'static>(
    contents: &'a Contents,
    options: &DecodeOptions,
    system: &str,
    plan: PlanRule,
) -> Result<&'a ForeignBloom, EncodeError> {
    let (filter, _) = ForeignBloom::with_rule::<R>(contents, system)?;
    let (items, rate) = options.plan()?;
    let planned = plan(items, rate)?;
    if planned == *filter.rule() {
        return Ok(filter);
    }
    let sizes = |rule: &Rule| format!("{} bits and {} probes", rule.bits(), rule.probes());
    Err(EncodeError::needs_items(format!(
        "{system} plans {} for the given items and rate, and this filter has {} (give the values \
        that it was planned for, if they are others)",
        sizes(&planned),
        sizes(filter.rule())
    )))
}

/// Returns the string in a file: the result of `GET`, or the string in the payload of `DUMP`.
pub(crate) fn of_file(bytes: &[u8]) -> Cow<'_, [u8]> {
    RedisValue::string_of(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Returns the string in a file. The string is under a key of a snapshot, is in the payload of `DUMP`, or is the file
/// itself.
pub(crate) fn of_any_file<'a>(
    bytes: &'a [u8],
    options: &DecodeOptions,
) -> Result<Cow<'a, [u8]>, DecodeError> {
    if !Rdb::is_one(bytes) {
        return Ok(of_file(bytes));
    }
    let is_string = |entry: &RdbEntry<'_>| entry.type_name() == "string";
    let entry = Rdb::new(bytes)?.find_key(options, "a string", is_string, |key| key)?;
    entry.string(MAX_EXPANSION * bytes.len() as u64)
}

/// Decodes the bits of a string that starts at offset `at`. Missing bytes at the end are zero.
pub(crate) fn decode(rule: Rule, string: &[u8], at: u64) -> Result<ForeignBloom, DecodeError> {
    let (max_bytes, found) = (rule.bits().div_ceil(8), string.len() as u64);
    let error = |at, kind| DecodeError { field: "bits", at, kind };
    let refused = |at, why: String| Err(error(at, DecodeErrorKind::Refused { why: why.into() }));
    if found == max_bytes + 1 && string.last() == Some(&b'\n') {
        let why = "a line feed of `redis-cli` follows the bits: print without it, with `redis-cli \
            -D \"\" --raw GET key`";
        return refused(at + max_bytes, why.into());
    }
    let planned =
        |rule: &Rule| format!("the plan has {} bits, which take {max_bytes} bytes", rule.bits());
    if found > max_bytes {
        return refused(
            at + max_bytes,
            format!(
                "{}, and the string has {found}: give the items and the rate that it was planned \
                for",
                planned(&rule)
            ),
        );
    }
    let unused = 8 * max_bytes - rule.bits();
    if found == max_bytes
        && string.last().is_some_and(|last| u64::from(last.trailing_zeros()) < unused)
    {
        return refused(
            at + max_bytes - 1,
            format!(
                "{}, and bits behind them are set: give the items and the rate that it was planned \
                for",
                planned(&rule)
            ),
        );
    }
    let (words, rest) = string.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|&word| u64::from_be_bytes(word).reverse_bits());
    ForeignBloom::from_words(rule, words)
        .map_err(|memory| error(at, DecodeErrorKind::Memory(memory)))
}

/// Returns the string of all bits, including zero bytes at the end.
pub(crate) fn whole(filter: &ForeignBloom) -> Vec<u8> {
    let words: Vec<[u8; 8]> =
        filter.words().iter().map(|word| word.reverse_bits().to_be_bytes()).collect();
    let mut string = words.into_flattened();
    string.truncate(filter.rule().bits().div_ceil(8) as usize);
    string
}

/// Returns the string as Redis stores it: the string ends with the byte of the highest set bit.
pub(crate) fn grown(filter: &ForeignBloom) -> Vec<u8> {
    let mut string = whole(filter);
    string.truncate(string.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
    string
}
