//! The interface that an audit uses to read a source.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::errors::source_error::SourceError;
use crate::ids::id::{IdType, IntegerForm};

/// A source whose ids [`audit`](crate::audit()) can read.
pub trait AuditSource {
    /// Passes the id of each row to `each`, as the source stores the id. A large source may pass a random sample of its
    /// rows.
    ///
    /// # Errors
    ///
    /// Returns [`SourceError`] if the source cannot be read, or the error that `each` returns.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns the ids of `ids` that exist in the source. All ids in `ids` are in their canonical text. The default
    /// implementation reads all rows. A source that passes only a sample of its rows must look up the ids instead.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the source cannot be read.
    fn existing(
        &mut self,
        id: &IdType,
        ids: &HashSet<Vec<u8>>,
    ) -> Result<HashSet<Vec<u8>>, SourceError> {
        let mut existing = HashSet::new();
        self.each_row(&mut |row| {
            existing.extend(canonical_row(id, row).and_then(|row| ids.get(&*row)).cloned());
            Ok(())
        })?;
        Ok(existing)
    }
}

/// The sources of one set. An id exists if it exists in any source. A row counts once for each source that has it.
impl AuditSource for Vec<Box<dyn AuditSource>> {
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.iter_mut().try_for_each(|source| source.each_row(each))
    }

    fn existing(
        &mut self,
        id: &IdType,
        ids: &HashSet<Vec<u8>>,
    ) -> Result<HashSet<Vec<u8>>, SourceError> {
        let mut existing = HashSet::new();
        for source in self {
            existing.extend(source.existing(id, ids)?);
        }
        Ok(existing)
    }
}

/// Returns the canonical text of an id from a row. Returns `None` if the text is not an id. The function accepts spaces
/// around an integer or a UUID, and leading zeros of an integer. The spelling rules for ids in requests do not apply to
/// rows.
pub(crate) fn canonical_row<'t>(id: &IdType, text: &'t [u8]) -> Option<Cow<'t, [u8]>> {
    canonical_row_and_value(id, text).map(|(canonical, _)| canonical)
}

/// Returns the result of [`canonical_row`], and the value of an integer that fits in 64 bits.
pub(crate) fn canonical_row_and_value<'t>(
    id: &IdType,
    text: &'t [u8],
) -> Option<(Cow<'t, [u8]>, Option<i64>)> {
    let id = match *id {
        IdType::Text { .. } => return id.canonical_and_value(text).ok(),
        IdType::Integer { min, max, form } => {
            IdType::Integer { min, max, form: IntegerForm { is_padded: true, ..form } }
        }
        IdType::Uuid => IdType::Uuid,
    };
    id.canonical_and_value(text.trim_ascii()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_of_a_row_may_have_zeros_in_front_of_it() {
        let form = IntegerForm { is_padded: false, is_spaced: false };
        let integers = IdType::Integer { min: 0, max: 100, form };
        // A column with `ZEROFILL` returns leading zeros.
        assert_eq!(canonical_row(&integers, b"0000000007").as_deref(), Some(&b"7"[..]));
        assert_eq!(canonical_row(&integers, b" 7 ").as_deref(), Some(&b"7"[..]));
        for text in [&b"x"[..], b"101", b""] {
            assert_eq!(canonical_row(&integers, text), None);
        }
        let texts = IdType::Text { max_bytes: 10 };
        assert_eq!(canonical_row(&texts, b" 07").as_deref(), Some(&b" 07"[..]));
    }
}
