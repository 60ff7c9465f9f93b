//! Converts an item that is given as text to the bytes that the original system of a filter hashes.
//!
//! Guava calls the conversion of an item to bytes a funnel. No file stores the funnel, so the user must give the
//! funnel. A wrong funnel gives wrong answers without an error.

use std::fmt;
use std::str::FromStr;

use crate::items::charset::Charset;
use crate::items::java_type::JavaType;
use crate::rules::hash::abloom;
use crate::rules::hash::orc::{murmur3_64, wang_64};

/// How the system that created a filter converts an item to bytes.
///
/// # Examples
///
/// ```
/// use tamis_formats::{Charset, Funnel};
///
/// let mut scratch = Vec::new();
/// assert_eq!(Funnel::Int.key(b"-2", &mut scratch)?, [0xfe, 0xff, 0xff, 0xff]);
/// assert_eq!(Funnel::Text(Charset::Utf16Be).key("你".as_bytes(), &mut scratch)?, [0x4f, 0x60]);
/// # Ok::<(), tamis_formats::ItemError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Funnel {
    /// The bytes, unchanged.
    Bytes,
    /// Bytes, given as hexadecimal digits.
    Hex,
    /// Text in a charset. Guava: `Funnels.stringFunnel(charset)`.
    Text(Charset),
    /// Text in a charset, written twice: the funnel in many copies of the Java class `BloomFilterHelper`.
    Twice(Charset),
    /// Text as UTF-16 code units, little-endian. Guava: `Funnels.unencodedCharsFunnel()`.
    Chars,
    /// A decimal number in 32 bits, little-endian. Guava: `Funnels.integerFunnel()`.
    Int,
    /// A decimal number in 64 bits, little-endian. Guava: `Funnels.longFunnel()`.
    Long,
    /// An unsigned decimal number in 32 bits, little-endian: `UINT_32` of Parquet.
    UnsignedInt,
    /// A decimal number as IEEE 754 in 32 bits, little-endian. 0 and -0 are different items.
    Float,
    /// A decimal number as IEEE 754 in 64 bits, little-endian. 0 and -0 are different items.
    Double,
    /// A hash of 128 bits that the user's own function computes, little-endian. The text is decimal (signed or
    /// unsigned), or hexadecimal after `0x`.
    Hash128,
    /// A decimal number in 64 bits, big-endian: Hive's `addLong`.
    LongBigEndian,
    /// A decimal number as IEEE 754 in 64 bits, big-endian: Hive's `addDouble`.
    DoubleBigEndian,
    /// ORC's hash of a value in 64 bits, little-endian.
    Orc(OrcType),
    /// abloom's hash of a Python object in 64 bits, little-endian.
    Abloom(AbloomType),
    /// `hashCode()` of a Java object in 32 bits, little-endian.
    HashCode(JavaType),
    /// An unsigned decimal number in 64 bits, little-endian: sets of integers.
    Unsigned,
}

/// The types of ORC columns that have different hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OrcType {
    /// Text and binary values: the bytes, unchanged.
    Bytes,
    /// Whole numbers of any width, and dates as days since 1970.
    Long,
    /// Floating point numbers of 64 bits.
    Double,
    /// Floating point numbers of 32 bits. A number is converted to 64 bits before hashing.
    Float,
}

/// The types of Python objects that have different hashes in abloom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AbloomType {
    /// `str` in UTF-8, and `bytes`.
    Bytes,
    /// `int`: a decimal number of any length.
    Int,
    /// `float`: a decimal number. A whole number has the same hash as the equal `int`.
    Float,
}

/// The reason why a funnel cannot convert an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemError {
    /// The item is not a decimal number of `bits` bits.
    NotInteger {
        /// The number of bits: 32, 64 or 128.
        bits: u32,
    },
    /// The item is not a whole decimal number.
    NotWhole,
    /// The item is not a decimal number.
    NotNumber,
    /// The item is not UTF-8 text.
    NotText,
    /// The item is not an even number of hexadecimal digits.
    NotHex,
    /// The item is not a value of the given Java type.
    NotOf(JavaType),
}

impl fmt::Display for ItemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemError::NotInteger { bits } => write!(f, "not a decimal number of {bits} bits"),
            ItemError::NotWhole => f.write_str("not a whole decimal number"),
            ItemError::NotNumber => f.write_str("not a decimal number"),
            ItemError::NotText => f.write_str("not UTF-8 text"),
            ItemError::NotOf(java) => write!(f, "not a value of Java's {java}"),
            ItemError::NotHex => f.write_str("not an even number of hexadecimal digits"),
        }
    }
}

impl std::error::Error for ItemError {}

impl Funnel {
    /// The names of all funnels, each with a description of its items.
    pub const NAMES: &[(&str, &str)] = &[
        ("bytes", "the bytes as they are"),
        ("hex", "bytes as hexadecimal digits"),
        ("text", "text in a charset (Guava: stringFunnel)"),
        ("twice", "text in a charset, repeated (many copies of BloomFilterHelper)"),
        ("chars", "UTF-16 code units (Guava: unencodedCharsFunnel)"),
        ("int", "a decimal number of 32 bits (Guava: integerFunnel)"),
        ("long", "a decimal number of 64 bits (Guava: longFunnel)"),
        ("unsigned", "an unsigned decimal number of 64 bits"),
        ("unsigned-int", "an unsigned decimal number of 32 bits"),
        ("float", "a decimal number as IEEE 754 in 32 bits"),
        ("double", "a decimal number as IEEE 754 in 64 bits"),
        ("long-be", "a decimal number of 64 bits, big-endian (Hive: addLong)"),
        ("double-be", "a decimal number as IEEE 754 in 64 bits, big-endian (Hive: addDouble)"),
        ("orc-bytes", "text in UTF-8, or bytes, of an ORC column"),
        ("orc-long", "a whole number of an ORC column; a date as days since 1970"),
        ("orc-double", "a DOUBLE of an ORC column"),
        ("orc-float", "a FLOAT of an ORC column"),
        ("abloom-bytes", "text in UTF-8, or bytes, of Python's abloom"),
        ("abloom-int", "a whole number of Python's abloom"),
        ("abloom-float", "a floating point number of Python's abloom"),
        ("hash128", "the item's hash by the user's own function, a number of 128 bits"),
        ("hash-string", "hashCode() of a Java String"),
        ("hash-integer", "hashCode() of a Java Integer"),
        ("hash-long", "hashCode() of a Java Long"),
        ("hash-double", "hashCode() of a Java Double"),
        ("hash-boolean", "hashCode() of a Java Boolean"),
        ("hash-character", "hashCode() of a Java Character"),
    ];

    /// Finds a funnel by its name. Returns `None` if the name is unknown, or if the funnel needs a charset but
    /// `charset` is `None`.
    #[must_use]
    pub fn named(name: &str, charset: Option<Charset>) -> Option<Funnel> {
        if let Some(class) = name.strip_prefix("hash-") {
            let is_named = |java: &JavaType| java.name().eq_ignore_ascii_case(class);
            return JavaType::ALL.into_iter().find(is_named).map(Funnel::HashCode);
        }
        Some(match name {
            "bytes" => Funnel::Bytes,
            "hex" => Funnel::Hex,
            "text" => Funnel::Text(charset?),
            "twice" => Funnel::Twice(charset?),
            "chars" => Funnel::Chars,
            "int" => Funnel::Int,
            "long" => Funnel::Long,
            "unsigned" => Funnel::Unsigned,
            "unsigned-int" => Funnel::UnsignedInt,
            "float" => Funnel::Float,
            "double" => Funnel::Double,
            "long-be" => Funnel::LongBigEndian,
            "double-be" => Funnel::DoubleBigEndian,
            "orc-bytes" => Funnel::Orc(OrcType::Bytes),
            "orc-long" => Funnel::Orc(OrcType::Long),
            "orc-double" => Funnel::Orc(OrcType::Double),
            "orc-float" => Funnel::Orc(OrcType::Float),
            "abloom-bytes" => Funnel::Abloom(AbloomType::Bytes),
            "abloom-int" => Funnel::Abloom(AbloomType::Int),
            "abloom-float" => Funnel::Abloom(AbloomType::Float),
            "hash128" => Funnel::Hash128,
            _ => return None,
        })
    }

    /// Returns the bytes that the original system hashes for `item`. Stores the bytes in `scratch` if the bytes differ
    /// from `item`.
    ///
    /// # Errors
    ///
    /// [`ItemError`] if the original system cannot hash `item`.
    pub fn key<'a>(self, item: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], ItemError> {
        match self {
            Funnel::Bytes => return Ok(item),
            Funnel::Text(Charset::Utf8) => return text(item).map(str::as_bytes),
            _ => scratch.clear(),
        }
        match self {
            Funnel::Bytes => unreachable!("returned above"),
            Funnel::Hex => unhex(item, scratch)?,
            Funnel::Text(charset) => charset.encode(text(item)?, scratch),
            Funnel::Twice(charset) => {
                charset.encode(text(item)?, scratch);
                scratch.extend_from_within(..);
            }
            Funnel::Chars => Charset::Utf16Le.encode(text(item)?, scratch),
            Funnel::Int => scratch.extend(integer::<i32>(item, 32)?.to_le_bytes()),
            Funnel::UnsignedInt => scratch.extend(integer::<u32>(item, 32)?.to_le_bytes()),
            Funnel::Long => scratch.extend(integer::<i64>(item, 64)?.to_le_bytes()),
            Funnel::Float => scratch.extend(real::<f32>(item)?.to_le_bytes()),
            Funnel::Double => scratch.extend(real::<f64>(item)?.to_le_bytes()),
            Funnel::LongBigEndian => scratch.extend(integer::<i64>(item, 64)?.to_be_bytes()),
            Funnel::DoubleBigEndian => scratch.extend(real::<f64>(item)?.to_be_bytes()),
            Funnel::Orc(of) => scratch.extend(of.hash(item)?.to_le_bytes()),
            Funnel::Abloom(of) => scratch.extend(of.hash(item)?.to_le_bytes()),
            Funnel::HashCode(java) => {
                let code = java.hash_code(text(item)?).ok_or(ItemError::NotOf(java))?;
                scratch.extend(code.to_le_bytes());
            }
            Funnel::Hash128 => scratch.extend(hash_128(item)?.to_le_bytes()),
            Funnel::Unsigned => scratch.extend(integer::<u64>(item, 64)?.to_le_bytes()),
        }
        Ok(scratch)
    }
}

impl OrcType {
    fn hash(self, item: &[u8]) -> Result<u64, ItemError> {
        Ok(match self {
            OrcType::Bytes => murmur3_64(item),
            OrcType::Long => wang_64(integer(item, 64)?),
            OrcType::Double => hash_double(real(item)?),
            OrcType::Float => hash_double(f64::from(real::<f32>(item)?)),
        })
    }
}

fn hash_double(value: f64) -> u64 {
    wang_64(value.to_bits().cast_signed())
}

impl AbloomType {
    fn hash(self, item: &[u8]) -> Result<u64, ItemError> {
        match self {
            AbloomType::Bytes => Ok(abloom::of_bytes(item)),
            AbloomType::Int => abloom::of_int(item).ok_or(ItemError::NotWhole),
            AbloomType::Float => abloom::of_float(real(item)?).ok_or(ItemError::NotNumber),
        }
    }
}

fn text(item: &[u8]) -> Result<&str, ItemError> {
    std::str::from_utf8(item).map_err(|_| ItemError::NotText)
}

fn integer<T: FromStr>(item: &[u8], bits: u32) -> Result<T, ItemError> {
    parse(item).ok_or(ItemError::NotInteger { bits })
}

fn real<T: FromStr>(item: &[u8]) -> Result<T, ItemError> {
    parse(item).ok_or(ItemError::NotNumber)
}

fn parse<T: FromStr>(item: &[u8]) -> Option<T> {
    text(item).ok()?.parse().ok()
}

fn hash_128(item: &[u8]) -> Result<u128, ItemError> {
    let text = text(item)?;
    let hash = match text.strip_prefix("0x") {
        // `from_str_radix` would accept a plus sign.
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().or_else(|| text.parse().ok().map(i128::cast_unsigned)),
    };
    hash.ok_or(ItemError::NotInteger { bits: 128 })
}

fn unhex(item: &[u8], to: &mut Vec<u8>) -> Result<(), ItemError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(ItemError::NotHex);
    let (pairs, rest) = item.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(ItemError::NotHex);
    }
    for &[high, low] in pairs {
        to.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(funnel: Funnel, item: &str) -> Result<Vec<u8>, ItemError> {
        funnel.key(item.as_bytes(), &mut vec![1, 2, 3]).map(<[u8]>::to_vec)
    }

    #[test]
    fn unmappable_characters_become_question_marks() {
        for (charset, item, expected) in [
            (Charset::Utf8, "é你", &b"\xc3\xa9\xe4\xbd\xa0"[..]),
            (Charset::Latin1, "é你😀", b"\xe9??"),
            (Charset::Ascii, "aé", b"a?"),
            (Charset::Utf16Be, "a😀", b"\0a\xd8\x3d\xde\x00"),
            (Charset::Utf16Le, "a", b"a\0"),
            (Charset::Gbk, "你好é😀a", b"\xc4\xe3\xba\xc3\xa8\xa6?a"),
            (Charset::Gb18030, "你😀", b"\xc4\xe3\x94\x39\xfc\x36"),
        ] {
            assert_eq!(key(Funnel::Text(charset), item).unwrap(), expected, "{charset}");
            assert_eq!(key(Funnel::Twice(charset), item).unwrap(), expected.repeat(2));
        }
    }

    #[test]
    fn every_funnel_has_a_name() {
        for (name, _) in Funnel::NAMES {
            assert!(Funnel::named(name, Some(Charset::Gbk)).is_some(), "{name}");
        }
        assert_eq!(Funnel::named("text", None), None);
        assert_eq!(Funnel::named("txt", Some(Charset::Utf8)), None);
    }

    #[test]
    fn numbers_are_little_endian_and_in_range() {
        assert_eq!(key(Funnel::Int, "-1"), Ok(vec![255; 4]));
        assert_eq!(key(Funnel::Long, "258"), Ok(vec![2, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(key(Funnel::Unsigned, "18446744073709551615"), Ok(vec![255; 8]));
        assert_eq!(key(Funnel::UnsignedInt, "4294967295"), Ok(vec![255; 4]));
        assert_eq!(key(Funnel::UnsignedInt, "-1"), Err(ItemError::NotInteger { bits: 32 }));
        assert_eq!(key(Funnel::Hash128, "-1"), Ok(vec![255; 16]));
        assert_eq!(key(Funnel::Hash128, "0x1ff"), key(Funnel::Hash128, "511"));
        assert_eq!(key(Funnel::Hash128, "0x+1"), Err(ItemError::NotInteger { bits: 128 }));
        assert_eq!(key(Funnel::Unsigned, "-1"), Err(ItemError::NotInteger { bits: 64 }));
        for item in ["2147483648", "", "1 ", "0x1", "1.0", "a"] {
            assert_eq!(key(Funnel::Int, item), Err(ItemError::NotInteger { bits: 32 }), "{item}");
        }
        assert_eq!(key(Funnel::Float, "-0"), Ok(vec![0, 0, 0, 0x80]));
        assert_eq!(key(Funnel::Double, "2.5e0"), Ok(vec![0, 0, 0, 0, 0, 0, 4, 0x40]));
        assert_eq!(key(Funnel::Double, "2,5"), Err(ItemError::NotNumber));
    }

    #[test]
    fn invalid_text_and_invalid_hexadecimal_are_refused() {
        let mut scratch = Vec::new();
        assert_eq!(Funnel::Chars.key(b"\xff", &mut scratch), Err(ItemError::NotText));
        assert_eq!(Funnel::Bytes.key(b"\xff", &mut scratch), Ok(&b"\xff"[..]));
        assert_eq!(key(Funnel::Hex, "00fFa1"), Ok(vec![0, 255, 0xa1]));
        for item in ["0", "0g", "+1"] {
            assert_eq!(key(Funnel::Hex, item), Err(ItemError::NotHex), "{item}");
        }
    }
}
