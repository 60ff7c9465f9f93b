//! A source as an audit reads it.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::id::IdType;
use crate::source::error::SourceError;

/// The ids of a source, for [`audit`](crate::audit()).
pub trait AuditSource {
    /// Passes the id of each row, as the source writes it. A large source may pass a random sample.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the source cannot be read, or the error of `each`.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns those of the ids that exist. All ids are in their canonical text. This reads all
    /// rows; a source that passes a sample must look the ids up instead.
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

/// Returns the canonical text of an id in a row; `None` if it is no id. Spaces around an integer or
/// a UUID do not count.
pub(crate) fn canonical_row<'t>(id: &IdType, text: &'t [u8]) -> Option<Cow<'t, [u8]>> {
    let text = if matches!(id, IdType::Text { .. }) { text } else { text.trim_ascii() };
    id.canonical(text).ok()
}
