//! The types of ids, and the canonical text of an id.
//!
//! A filter contains the canonical text of each id. For the integer 7, the canonical text is `7`, even if a request
//! writes `007`. Therefore `tamis build ids.txt` and an integer column of a database produce the same filter.

use std::borrow::Cow;
use std::fmt;

/// The type of the ids of a route.
///
/// # Examples
///
/// ```
/// use tamis_sources::{IdType, IntegerForm};
///
/// let id = IdType::Integer { min: 1, max: u64::MAX.into(), form: IntegerForm::default() };
/// assert_eq!(id, IdType::integer());
/// assert_eq!(IdType::text(), IdType::Text { max_bytes: 256 });
/// assert_eq!(*id.canonical(b"007")?, *b"7");
/// assert!(id.canonical(b"seven").is_err() && id.canonical(b"0").is_err());
/// # Ok::<(), tamis_sources::NotAnId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdType {
    /// A decimal integer.
    Integer {
        /// The smallest id.
        min: i128,
        /// The largest id.
        max: i128,
        /// The accepted spellings of an integer.
        form: IntegerForm,
    },
    /// A UUID in any of its usual forms: with or without hyphens, in braces, or as a URN.
    Uuid,
    /// Any text.
    Text {
        /// The length of the longest id in bytes.
        max_bytes: usize,
    },
}

/// The accepted spellings of an integer. The setting must match the upstream service: the service must not find a
/// product under a text that the guard refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerForm {
    /// `007` and `+7` are the id 7. `Long.parseLong` of Java and `strconv.Atoi` of Go accept `007` and `+7`.
    pub is_padded: bool,
    /// ` 7` and `7 ` are the id 7. `int()` of Python accepts ` 7` and `7 `.
    pub is_spaced: bool,
}

impl Default for IntegerForm {
    /// Returns the form that most programs accept: `007` and `+7` are ids, and ` 7` is not an id.
    fn default() -> Self {
        Self { is_padded: true, is_spaced: false }
    }
}

/// The reason why a text is not an id of a type. The guard refuses a request with this text without a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnId {
    /// The text does not have the form of an id.
    Form,
    /// The integer is below the smallest id or above the largest id.
    Range,
    /// The text is longer than the longest id.
    Length,
}

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "is not written as an id",
            Self::Range => "is out of the range of ids",
            Self::Length => "is longer than every id",
        })
    }
}

impl std::error::Error for NotAnId {}

/// The maximum length of the text of an integer in bytes, including leading zeros.
const MAX_INTEGER_BYTES: usize = 64;

impl IdType {
    /// Returns the type of the integers from 1 to [`u64::MAX`] in the [default form](IntegerForm::default).
    #[must_use]
    pub fn integer() -> Self {
        Self::Integer { min: 1, max: u64::MAX.into(), form: IntegerForm::default() }
    }

    /// Returns the type of the texts of 1 to 256 bytes.
    #[must_use]
    pub fn text() -> Self {
        Self::Text { max_bytes: 256 }
    }

    /// Returns the canonical text of an id.
    ///
    /// # Errors
    ///
    /// [`NotAnId`] if the text is not an id of this type.
    pub fn canonical<'t>(&self, text: &'t [u8]) -> Result<Cow<'t, [u8]>, NotAnId> {
        self.canonical_and_value(text).map(|(canonical, _)| canonical)
    }

    /// Returns the canonical text of an id, and the result of [`value_of`](Self::value_of) for this text.
    pub(crate) fn canonical_and_value<'t>(
        &self,
        text: &'t [u8],
    ) -> Result<(Cow<'t, [u8]>, Option<i64>), NotAnId> {
        let canonical = match *self {
            Self::Integer { min, max, form } => {
                let Integer { text, value } = integer(text, form)?;
                let is_id = (min..=max).contains(&value);
                return if is_id { Ok((text, value.try_into().ok())) } else { Err(NotAnId::Range) };
            }
            Self::Uuid => Cow::Owned(uuid(text)?),
            Self::Text { max_bytes } if text.len() > max_bytes => return Err(NotAnId::Length),
            Self::Text { .. } if text.is_empty() => return Err(NotAnId::Form),
            Self::Text { .. } => Cow::Borrowed(text),
        };
        Ok((canonical, None))
    }

    /// Returns the value of an integer id from its canonical text. Returns `None` if the value does not fit in an
    /// `i64`.
    #[must_use]
    pub fn value_of(&self, canonical: &[u8]) -> Option<i64> {
        match self {
            Self::Integer { .. } => std::str::from_utf8(canonical).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// Formats the type with all settings that decide which texts are ids: `integer 1..=100 padded`.
impl fmt::Display for IdType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min, max, form } => {
                write!(f, "integer {min}..={max}")?;
                f.write_str(if form.is_padded { " padded" } else { "" })?;
                f.write_str(if form.is_spaced { " spaced" } else { "" })
            }
            Self::Uuid => f.write_str("uuid"),
            Self::Text { max_bytes } => write!(f, "text of at most {max_bytes} bytes"),
        }
    }
}

struct Integer<'t> {
    text: Cow<'t, [u8]>,
    value: i128,
}

fn integer(text: &[u8], form: IntegerForm) -> Result<Integer<'_>, NotAnId> {
    let text = if form.is_spaced { text.trim_ascii() } else { text };
    if text.len() > MAX_INTEGER_BYTES {
        return Err(NotAnId::Form);
    }
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] if form.is_padded => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NotAnId::Form);
    }
    let significant = digits.trim_ascii_start_zeros();
    let is_padded = significant.len() < digits.len() && digits.len() > 1;
    let is_minus_zero = is_negative && significant.is_empty();
    if (is_padded || is_minus_zero) && !form.is_padded {
        return Err(NotAnId::Form);
    }
    let magnitude = match significant.len() {
        // A number of at most 19 digits always fits in a `u64`, and `u64` arithmetic is faster.
        0..=19 => {
            significant.iter().fold(0, |all, digit| 10 * all + u64::from(digit - b'0')).into()
        }
        20..=38 => significant.iter().fold(0, |all, digit| 10 * all + i128::from(digit - b'0')),
        _ => return Err(NotAnId::Range),
    };
    let value = if is_negative { -magnitude } else { magnitude };
    let is_canonical = !is_padded && !is_minus_zero && text.first() != Some(&b'+');
    let text =
        if is_canonical { Cow::Borrowed(text) } else { Cow::Owned(value.to_string().into_bytes()) };
    Ok(Integer { text, value })
}

/// Removes leading zeros.
trait TrimZeros {
    fn trim_ascii_start_zeros(&self) -> &[u8];
}

impl TrimZeros for [u8] {
    fn trim_ascii_start_zeros(&self) -> &[u8] {
        let zeros = self.iter().take_while(|&&byte| byte == b'0').count();
        &self[zeros..]
    }
}

/// Returns the UUID as 36 lowercase characters.
fn uuid(text: &[u8]) -> Result<Vec<u8>, NotAnId> {
    let text = match text {
        [b'{', inner @ .., b'}'] => inner,
        _ => text.strip_prefix(b"urn:uuid:").unwrap_or(text),
    };
    let digits: Vec<u8> = match text.len() {
        32 => text.to_vec(),
        36 if [8, 13, 18, 23].iter().all(|&at| text[at] == b'-') => {
            text.iter().copied().filter(|&byte| byte != b'-').collect()
        }
        _ => return Err(NotAnId::Form),
    };
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(NotAnId::Form);
    }
    let mut canonical = Vec::with_capacity(36);
    for (i, digit) in digits.iter().enumerate() {
        if [8, 12, 16, 20].contains(&i) {
            canonical.push(b'-');
        }
        canonical.push(digit.to_ascii_lowercase());
    }
    Ok(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: IdType = IdType::Integer {
        min: i64::MIN as i128,
        max: u64::MAX as i128,
        form: IntegerForm { is_padded: true, is_spaced: false },
    };

    fn text(id: &IdType, text: &str) -> Result<String, NotAnId> {
        id.canonical(text.as_bytes()).map(|id| String::from_utf8(id.into_owned()).unwrap())
    }

    #[test]
    fn integers_have_one_canonical_text() {
        for (typed, canonical) in [
            ("7", "7"),
            ("007", "7"),
            ("+7", "7"),
            ("-7", "-7"),
            ("-007", "-7"),
            ("0", "0"),
            ("000", "0"),
            ("-0", "0"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
        ] {
            assert_eq!(text(&ALL, typed), Ok(canonical.to_owned()), "{typed}");
        }
        for wrong in ["", "-", "+", " 7", "7 ", "7a", "0x7", "7.0", "1e3", "٧", "７", "--7", "+-7"]
        {
            assert_eq!(text(&ALL, wrong), Err(NotAnId::Form), "{wrong}");
        }
        for far in ["18446744073709551616", "-9223372036854775809", &"9".repeat(60)] {
            assert_eq!(text(&ALL, far), Err(NotAnId::Range), "{far}");
        }
        assert_eq!(text(&ALL, &"0".repeat(65)), Err(NotAnId::Form));
    }

    #[test]
    fn the_form_of_integers_can_be_chosen() {
        let id = |is_padded, is_spaced| IdType::Integer {
            min: 0,
            max: 1000,
            form: IntegerForm { is_padded, is_spaced },
        };
        for strict in ["007", "+7", "-0", "00"] {
            assert_eq!(text(&id(false, false), strict), Err(NotAnId::Form), "{strict}");
        }
        assert_eq!(text(&id(false, false), "0"), Ok("0".to_owned()));
        assert_eq!(text(&id(false, true), " 7\t"), Ok("7".to_owned()));
        assert_eq!(text(&id(true, true), " 007 "), Ok("7".to_owned()));
        assert_eq!(text(&id(true, false), "1001"), Err(NotAnId::Range));
    }

    #[test]
    fn uuids_have_one_canonical_text() {
        let canonical = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        for typed in [
            canonical,
            "67E55044-10B1-426F-9247-BB680E5FE0C8",
            "67e5504410b1426f9247bb680e5fe0c8",
            "{67e55044-10b1-426f-9247-bb680e5fe0c8}",
            "urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8",
        ] {
            assert_eq!(text(&IdType::Uuid, typed), Ok(canonical.to_owned()), "{typed}");
        }
        for wrong in ["", "67e55044", "67e55044-10b1-426f-9247-bb680e5fe0c", "{}", &"-".repeat(36)]
        {
            assert_eq!(text(&IdType::Uuid, wrong), Err(NotAnId::Form), "{wrong}");
        }
    }

    #[test]
    fn texts_are_ids_up_to_their_length() {
        let id = IdType::Text { max_bytes: 4 };
        assert_eq!(text(&id, "abcd"), Ok("abcd".to_owned()));
        assert_eq!(text(&id, "abcde"), Err(NotAnId::Length));
        assert_eq!(text(&id, ""), Err(NotAnId::Form));
        assert_eq!(*id.canonical(b"\xff\0").unwrap(), *b"\xff\0");
    }
}
