//! Extracts ids from a JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A valid JSON text. The code parses only the values on the path to an id.
#[derive(Debug)]
pub(crate) struct Json {
    text: Box<RawValue>,
}

impl Json {
    /// Validates a text. Returns `None` if the text is not valid JSON.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        Some(Self { text: serde_json::from_slice(text).ok()? })
    }

    /// Returns the text of each string and number at a path. `*` stands for all elements of a list. A list at the end
    /// of the path stands for its elements.
    ///
    /// Programs differ in which of two equal field names they use, and in whether they treat `ID` as `id`. To cover all
    /// programs, the method ignores the case of ASCII letters, and returns the values of all fields with an equal name.
    pub(crate) fn values_at(&self, path: &[String]) -> Vec<Vec<u8>> {
        let mut found = vec![&*self.text];
        for part in path {
            found = found.into_iter().flat_map(|value| children(value, part)).collect();
        }
        let ids = found.into_iter().flat_map(|value| match value.get().starts_with('[') {
            true => children(value, "*"),
            false => vec![value],
        });
        ids.filter_map(text_of).collect()
    }
}

fn children<'v>(value: &'v RawValue, part: &str) -> Vec<&'v RawValue> {
    match value.get().as_bytes().first() {
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
            match part.parse::<usize>() {
                _ if part == "*" => values,
                Ok(index) => values.get(index).copied().into_iter().collect(),
                Err(_) => Vec::new(),
            }
        }
        Some(b'{') => {
            let fields =
                serde_json::Deserializer::from_str(value.get()).deserialize_map(Named(part));
            fields.unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Collects the values of all fields with this name in an object.
struct Named<'n>(&'n str);

impl<'v> Visitor<'v> for Named<'_> {
    type Value = Vec<&'v RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'v>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some((name, value)) = map.next_entry::<Name<'v>, &'v RawValue>()? {
            if name.0.eq_ignore_ascii_case(self.0) {
                values.push(value);
            }
        }
        Ok(values)
    }
}

/// A field name. The name is copied only if it contains escapes.
#[derive(serde::Deserialize)]
struct Name<'n>(#[serde(borrow)] Cow<'n, str>);

/// Returns the text of an id. Returns `None` for a list, an object, a boolean or `null`.
fn text_of(value: &RawValue) -> Option<Vec<u8>> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'"' => serde_json::from_str(text).ok().map(String::into_bytes),
        b'-' | b'0'..=b'9' => Some(integer_text(text).into_owned().into_bytes()),
        _ => None,
    }
}

/// The maximum length of an integer that is written without its exponent.
const MAX_DIGITS: usize = 64;

/// Returns an integer without its fraction and exponent, because programs read `7.0` and `7.0E0` as the integer 7.
/// Returns a number that is not an integer unchanged.
fn integer_text(number: &str) -> Cow<'_, str> {
    if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return number.into();
    }
    whole(number).map_or(number.into(), Cow::Owned)
}

/// Returns the digits of an integer. Returns `None` if the number is not an integer or is too long.
fn whole(number: &str) -> Option<String> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    // The index of the decimal point in the digits.
    let point = exponent.parse::<isize>().ok()?.checked_add(whole.len() as isize)?;
    let point = usize::try_from(point).ok().filter(|&point| point <= MAX_DIGITS);
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let point = point?;
    if digits.bytes().skip(point).any(|digit| digit != b'0') {
        return None;
    }
    let integer = format!("{digits:0<point$}")[..point].trim_start_matches('0').to_owned();
    Some(format!("{sign}{integer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, path: &str) -> Vec<String> {
        let path: Vec<String> = path.split('/').map(str::to_owned).collect();
        let values = Json::parse(text.as_bytes()).unwrap().values_at(&path);
        values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
    }

    #[test]
    fn each_field_with_the_name_is_found() {
        for (text, expected) in [
            (r#"{"id": 1, "id": 2}"#, &["1", "2"][..]),
            (r#"{"id": 1, "ID": "2", "iD": 3.0}"#, &["1", "2", "3"]),
            (r#"{"\u0069d": 1, "i": 2}"#, &["1"]),
            (r#"{"id": "\u4e03"}"#, &["七"]),
            // Java writes a `double` in the form `1.0E7`.
            (
                r#"{"id": 1.0E7, "id": 1.2345678E7, "id": -7e+1, "id": 120e-1, "id": 0.0E5}"#,
                &["10000000", "12345678", "-70", "12", "0"],
            ),
            // The following numbers are not integers, or are too long.
            (
                r#"{"id": 1.5, "id": 12e-1, "id": 1e99, "id": 1e99999999999999999999}"#,
                &["1.5", "12e-1", "1e99", "1e99999999999999999999"],
            ),
            // An unpaired surrogate is not a valid text.
            (r#"{"id": "\ud800"}"#, &[]),
            (r#"{"\ud800": 1, "id": 2}"#, &[]),
            ("{}", &[]),
            ("[]", &[]),
            ("7", &[]),
        ] {
            assert_eq!(values(text, "id"), expected, "{text}");
        }
        let text = r#"{"a": [{"b": 1}], "A": [{"B": 2, "b": 3}, {"c": 4}]}"#;
        assert_eq!(values(text, "a/*/b"), ["1", "2", "3"]);
        assert_eq!(values(text, "a/0/b"), ["1", "2", "3"]);
        assert_eq!(values(text, "a/1/c"), ["4"]);
    }

    #[test]
    fn a_deep_text_needs_no_deep_stack() {
        let text = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        assert!(values(&text, "0").is_empty());
    }

    #[test]
    fn other_texts_are_no_json() {
        for text in [&b""[..], b"{", b"{}{}", b"{'id': 1}", b"\xff", b"\"\xff\"", b"{\"a\": 01}"] {
            assert!(Json::parse(text).is_none(), "{text:?}");
        }
    }
}
