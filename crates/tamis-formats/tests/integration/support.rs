//! What the tests of several formats share.

use std::fmt::{Debug, Display};

use serde_json::Value as Json;
use tamis::Answers;
use tamis_formats::{
    ChangeError, Contents, DecodeError, DecodeOptions, EncodeError, Format, StoredFilter,
};

use crate::golden_data::{list, number, real};

/// Finds a format.
pub fn format(name: &str) -> &'static Format {
    Format::named(name).unwrap_or_else(|| panic!("no format {name}"))
}

/// Returns the options of a filter that is planned for `items` and `rate`.
pub fn planned(items: u64, rate: f64) -> DecodeOptions {
    DecodeOptions { items: Some(items), rate: Some(rate), ..DecodeOptions::default() }
}

/// Returns the options of a file of this version.
pub fn versioned(version: &str) -> DecodeOptions {
    DecodeOptions { version: Some(version.into()), ..DecodeOptions::default() }
}

/// Returns the options of the filter under this key.
pub fn keyed(key: &str) -> DecodeOptions {
    DecodeOptions { key: Some(key.into()), ..DecodeOptions::default() }
}

/// Encodes contents with options.
pub fn encode_with(
    format_name: &str,
    contents: &Contents,
    options: &DecodeOptions,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    (format(format_name).encode)(contents, options, &mut bytes)?;
    Ok(bytes)
}

/// Encodes contents without options.
pub fn encode(format: &str, contents: &Contents) -> Result<Vec<u8>, String> {
    encode_with(format, contents, &DecodeOptions::default()).map_err(|error| error.to_string())
}

/// Encodes a filter that the format can store.
pub fn encode_filter(format: &str, filter: &impl StoredFilter) -> Vec<u8> {
    encode(format, &Contents::new(filter.clone())).unwrap()
}

/// Decodes a file with options.
pub fn decode_with(
    format_name: &str,
    bytes: &[u8],
    options: &DecodeOptions,
) -> Result<Contents, DecodeError> {
    (format(format_name).decode)(bytes, options)
}

/// Decodes a file without options.
pub fn decode(format: &str, bytes: &[u8]) -> Result<Contents, DecodeError> {
    decode_with(format, bytes, &DecodeOptions::default())
}

/// Inserts a batch of items. Returns for each item whether it is new.
pub fn insert<K: AsRef<[u8]>>(
    contents: &mut Contents,
    keys: &[K],
) -> Result<Vec<bool>, ChangeError> {
    let mut answers = Answers::new();
    contents.insert_each(keys, &mut answers)?;
    Ok(answers.iter().collect())
}

/// Returns a digit for each answer: 1 for yes.
pub fn digits(answers: impl IntoIterator<Item = bool>) -> String {
    answers.into_iter().map(|is_yes| if is_yes { '1' } else { '0' }).collect()
}

/// Returns the answers to a batch of items.
pub fn answers<K: AsRef<[u8]>>(contents: &Contents, keys: &[K]) -> Vec<bool> {
    let mut answers = Answers::new();
    contents.contains_each(keys, &mut answers);
    assert_eq!(answers.len(), keys.len());
    answers.iter().collect()
}

/// Asserts that `plan` computes the recorded bits and probes from the recorded items and rates.
pub fn assert_plans(cases: &Json, plan: impl Fn(u64, f64) -> (u64, u64)) {
    for case in list(cases) {
        let (bits, probes) = plan(number(&case["items"]) as u64, real(&case["rate"]));
        let expected = (number(&case["bits"]), number(&case["probes"]));
        assert_eq!((i128::from(bits), i128::from(probes)), expected, "{case}");
    }
}

/// Asserts that a call fails with an error that contains the text.
#[track_caller]
pub fn assert_fails<T: Debug, E: Display + Debug>(result: Result<T, E>, expected: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(expected), "no {expected:?} in {error}");
}

/// Asserts for each change of a byte of a good file, the offset and the new value, that `decode`
/// then fails with an error that contains the text.
pub fn assert_refused<T: Debug, E: Display + Debug>(
    good: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, E>,
    changes: &[(usize, u8, &str)],
) {
    for &(at, byte, expected) in changes {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        let error = decode(&bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{at} {byte}: {error}");
    }
}

/// Asserts for a list of recorded answers that `answer` gives the same for each index.
pub fn assert_answers(expected: &Json, answer: impl Fn(i64) -> i128) {
    let answers: Vec<i128> = (0..list(expected).len() as i64).map(answer).collect();
    assert_eq!(answers, list(expected).iter().map(number).collect::<Vec<_>>());
}
