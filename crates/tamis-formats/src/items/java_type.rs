//! Computes `hashCode` of the Java types whose `hashCode` is specified.

use std::fmt;

use crate::rules::hash::polynomial::polynomials;

/// A Java type whose `hashCode` depends only on the value. The default `hashCode` of Java objects changes with every
/// run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JavaType {
    /// `String`.
    String,
    /// `Integer`, and also `Short` and `Byte`, because the three types have the same `hashCode`.
    Integer,
    /// `Long`.
    Long,
    /// `Double`.
    Double,
    /// `Boolean`: `true` or `false`.
    Boolean,
    /// `Character`: one UTF-16 code unit.
    Character,
}

impl JavaType {
    /// All types.
    pub const ALL: [JavaType; 6] = [
        JavaType::String,
        JavaType::Integer,
        JavaType::Long,
        JavaType::Double,
        JavaType::Boolean,
        JavaType::Character,
    ];

    /// Returns the name of the Java class.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            JavaType::String => "String",
            JavaType::Integer => "Integer",
            JavaType::Long => "Long",
            JavaType::Double => "Double",
            JavaType::Boolean => "Boolean",
            JavaType::Character => "Character",
        }
    }

    /// Returns `hashCode()` of a value that is given as text. Returns `None` if the text is not a value of the type.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::JavaType;
    ///
    /// assert_eq!(JavaType::String.hash_code("Aa"), Some(2112));
    /// assert_eq!(JavaType::String.hash_code("BB"), Some(2112));
    /// assert_eq!(JavaType::Long.hash_code("-1"), Some(0));
    /// assert_eq!(JavaType::Integer.hash_code("2147483648"), None);
    /// ```
    #[must_use]
    pub fn hash_code(self, value: &str) -> Option<i32> {
        // Computes the XOR of both halves, as Java does for `Long` and `Double`.
        let halves = |bits: u64| (bits ^ bits >> 32) as i32;
        Some(match self {
            JavaType::String => hash_code_of_units(value.encode_utf16()),
            JavaType::Integer => value.parse().ok()?,
            JavaType::Long => halves(value.parse::<i64>().ok()?.cast_unsigned()),
            JavaType::Double => {
                let value: f64 = value.parse().ok()?;
                // Java hashes all NaN values as one value.
                halves(if value.is_nan() { 0x7ff8 << 48 } else { value.to_bits() })
            }
            JavaType::Boolean => {
                if value.parse().ok()? {
                    1231
                } else {
                    1237
                }
            }
            JavaType::Character => {
                let mut units = value.encode_utf16();
                let unit = units.next()?;
                if units.next().is_some() {
                    return None;
                }
                unit.into()
            }
        })
    }
}

/// Returns `hashCode()` of a Java `String` of UTF-16 code units. Unpaired surrogates are allowed.
#[must_use]
pub fn hash_code_of_units(units: impl Iterator<Item = u16>) -> i32 {
    polynomials(0, [31], units)[0].cast_signed()
}

impl fmt::Display for JavaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
