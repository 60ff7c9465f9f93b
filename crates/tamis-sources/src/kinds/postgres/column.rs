//! The id column, and the text of its values.

use std::borrow::Cow;

use crate::ids::fold::Fold;
use crate::ids::id::IdType;

/// The way in which a column stores ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// The types `smallint`, `integer` and `bigint`, and `numeric` without a fraction.
    Integer,
    Uuid,
    /// The types `text` and `varchar`.
    Text,
    /// The type `char(n)`. The source ignores trailing spaces of a value.
    Padded,
    /// The type `citext`. The source ignores the case of a value.
    Case,
}

impl ColumnKind {
    /// Returns the kind of a column from the name of its type in `pg_type`. Returns `None` if the type cannot hold ids.
    /// `is_whole` is true for `numeric(N, 0)`. In a `numeric` column with fractions, the texts `7` and `7.0` are equal.
    pub(super) fn of(name: &str, is_whole: bool) -> Option<Self> {
        Some(match name {
            "int2" | "int4" | "int8" => Self::Integer,
            "numeric" if is_whole => Self::Integer,
            "uuid" => Self::Uuid,
            "text" | "varchar" => Self::Text,
            "bpchar" => Self::Padded,
            "citext" => Self::Case,
            _ => return None,
        })
    }

    /// Tests whether the column may hold ids of a type.
    pub(super) fn fits(self, id: &IdType) -> bool {
        match id {
            IdType::Integer { .. } => self == Self::Integer,
            IdType::Uuid => self != Self::Integer,
            IdType::Text { .. } => self != Self::Uuid,
        }
    }

    /// Returns the function that converts a text id to its key.
    pub(super) fn fold(self) -> Fold {
        match self {
            Self::Integer | Self::Uuid | Self::Text => Fold::Exact,
            Self::Padded => Fold::Padded,
            Self::Case => Fold::Case,
        }
    }

    /// Tests whether different values are always different ids. For UUIDs in a text column, an uppercase text and a
    /// lowercase text are the same id.
    pub(super) fn is_one_to_one(self, id: &IdType) -> bool {
        *id != IdType::Uuid || self == Self::Uuid
    }

    /// Returns the text of an id from the text of a value.
    pub(super) fn id_text(self, value: &[u8]) -> &[u8] {
        match self {
            Self::Padded => {
                let spaces = value.iter().rev().take_while(|&&byte| byte == b' ').count();
                &value[..value.len() - spaces]
            }
            _ => value,
        }
    }

    /// Returns the text of an id from a line of `COPY` without its line end. Returns `None` for NULL.
    pub(super) fn line_text(self, line: &[u8]) -> Option<Cow<'_, [u8]>> {
        if line == br"\N" {
            return None;
        }
        // Integers and UUIDs contain no backslash.
        if matches!(self, Self::Integer | Self::Uuid) || !line.contains(&b'\\') {
            return Some(Cow::Borrowed(self.id_text(line)));
        }
        let value = without_escapes(line);
        let length = self.id_text(&value).len();
        Some(Cow::Owned(value[..length].to_vec()))
    }
}

/// Decodes the escapes of the text format of `COPY`.
fn without_escapes(line: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        value.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'b') => 0x08,
                Some(b'f') => 0x0c,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 0x0b,
                Some(other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_copy_become_the_texts_of_ids() {
        use ColumnKind::{Integer, Padded, Text};
        for (kind, line, text) in [
            (Integer, "-7", Some("-7")),
            (Integer, r"\N", None),
            (Text, r"\N", None),
            (Text, r"\\N", Some(r"\N")),
            (Text, r"a\tb\nc\rd\\e\be\ff\v", Some("a\tb\nc\rd\\e\u{8}e\u{c}f\u{b}")),
            (Text, "a ", Some("a ")),
            (Padded, "a  b   ", Some("a  b")),
            (Padded, r"a\n  ", Some("a\n")),
            (Text, "", Some("")),
            (Text, "\\", Some("\\")),
        ] {
            let found = kind.line_text(line.as_bytes());
            assert_eq!(found.as_deref(), text.map(str::as_bytes), "{kind:?} {line}");
        }
    }

    #[test]
    fn types_that_cannot_hold_ids_are_refused() {
        for name in ["numeric", "float8", "json", "bytea", "timestamptz", "name"] {
            assert_eq!(ColumnKind::of(name, false), None, "{name}");
        }
        assert_eq!(ColumnKind::of("numeric", true), Some(ColumnKind::Integer));
        assert_eq!(ColumnKind::of("int2", true), Some(ColumnKind::Integer));
        let text = IdType::Text { max_bytes: 10 };
        assert!(ColumnKind::Padded.fits(&text) && !ColumnKind::Uuid.fits(&text));
        assert!(!ColumnKind::Text.is_one_to_one(&IdType::Uuid));
    }
}
