//! Values that a configuration contains as text: durations, sizes, policies and secrets.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use tamis_sources::Policy;

/// A type that a configuration contains as text or as an integer.
pub(super) trait FromText: Sized {
    /// A description of the expected text for error messages.
    const EXPECTED: &'static str;

    fn from_text(text: &str) -> Option<Self>;

    fn from_number(_: u64) -> Option<Self> {
        None
    }
}

/// A configuration value that is parsed from text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Text<T>(pub(super) T);

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parser<T>(PhantomData<T>);

        impl<T: FromText> Visitor<'_> for Parser<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                T::from_text(text).map(Text).ok_or_else(wrong)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text<T>, E> {
                let wrong = || E::invalid_value(de::Unexpected::Unsigned(number), &self);
                T::from_number(number).map(Text).ok_or_else(wrong)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text<T>, E> {
                let parsed = u64::try_from(number).ok().and_then(T::from_number);
                parsed
                    .map(Text)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
        }

        deserializer.deserialize_any(Parser(PhantomData))
    }
}

/// Splits a text such as `60s` into a number and a unit.
fn split(text: &str) -> Option<(u64, &str)> {
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let number = text[..text.len() - unit.len()].parse().ok()?;
    Some((number, unit.trim()))
}

impl FromText for Duration {
    const EXPECTED: &'static str = "a time such as \"250ms\", \"5s\", \"10m\" or \"1h\"";

    fn from_text(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        // The maximum duration is one century, so that no clock overflows.
        let millis = number.checked_mul(millis).filter(|&it| it <= 100 * 366 * 86_400_000)?;
        Some(Self::from_millis(millis))
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl FromText for Size {
    const EXPECTED: &'static str = "a size such as \"64K\", \"16M\" or \"2G\"";

    fn from_text(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let shift = match unit.to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            _ => return None,
        };
        number.checked_mul(1 << shift).filter(|&bytes| bytes <= 1 << 40).map(Self)
    }

    fn from_number(number: u64) -> Option<Self> {
        (number <= 1 << 40).then_some(Self(number))
    }
}

impl FromText for Policy {
    const EXPECTED: &'static str = "\"pass\", \"reject\" or \"limit 100/s\"";

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "pass" => Some(Self::Pass),
            "reject" => Some(Self::Reject),
            _ => {
                let number = text.strip_prefix("limit ")?.trim().strip_suffix("/s")?;
                number.trim().parse().ok().map(Self::Limit)
            }
        }
    }
}

/// A text that messages never show. The text `${NAME}` is replaced by an environment variable.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        expand(&text, |name| std::env::var(name).ok()).map(Self).map_err(de::Error::custom)
    }
}

/// Replaces each `${NAME}` by the value of the variable `NAME`.
pub(super) fn expand(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut parts = text.split("${");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').ok_or("`${` has no closing `}`")?;
        let value = variable(name).ok_or_else(|| {
            format!("the environment variable {name:?} is not set, or is not UTF-8")
        })?;
        expanded.push_str(&value);
        expanded.push_str(rest);
    }
    Ok(expanded)
}

/// A single value, or a list of values.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    pub(super) fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        for (text, millis) in [("250ms", 250), ("5s", 5000), ("10 m", 600_000), ("1d", 86_400_000)]
        {
            assert_eq!(Duration::from_text(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "5 weeks", "99999999999999999999s", "36601d", "1.5s"] {
            assert_eq!(Duration::from_text(text), None, "{text}");
        }
        for (text, bytes) in [("64K", 65536), ("1 MiB", 1 << 20), ("2gb", 2 << 30), ("7", 7)] {
            assert_eq!(Size::from_text(text), Some(Size(bytes)), "{text}");
        }
        for text in ["", "K", "1T", "-1K", "99999999999G"] {
            assert_eq!(Size::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn policies_are_words() {
        assert_eq!(Policy::from_text("limit 100/s"), Some(Policy::Limit(100)));
        for text in ["limit", "limit 100", "limit -1/s", "Pass", ""] {
            assert_eq!(Policy::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn variables_are_expanded() {
        let variable = |name: &str| (name == "A").then(|| "x${B}".to_owned());
        assert_eq!(expand("1${A}2${A}", variable), Ok("1x${B}2x${B}".to_owned()));
        assert_eq!(expand("$A {A}", variable), Ok("$A {A}".to_owned()));
        assert!(expand("${B}", variable).unwrap_err().contains("\"B\""));
        assert!(expand("${A", variable).is_err());
    }
}
