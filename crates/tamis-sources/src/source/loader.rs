//! Loads the rows of a read into a generation.

use crate::errors::source_error::SourceError;
use crate::ids::batch::Batch;
use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::source::audit_source::canonical_row_and_value;
use crate::source::status::Rows;

/// Loads the rows of a full read into a generation. The loader buffers ids. [`finish`](Self::finish) inserts the last
/// ids, so the caller must call `finish` before the publication of the generation.
pub struct Loader<'a> {
    id_type: &'a IdType,
    batch: Batch<'a>,
    rows: Rows,
}

impl<'a> Loader<'a> {
    /// Creates a loader for ids of a type.
    #[must_use]
    pub fn new(id_type: &'a IdType, generation: &'a Generation) -> Self {
        Self { id_type, batch: Batch::new(generation), rows: Rows::default() }
    }

    /// Loads a row. `text` is the id as the source stores it. `None` stands for NULL. If the text is not an id of the
    /// type, the loader only counts the row as invalid.
    ///
    /// # Errors
    ///
    /// [`SourceError::Plan`] if the filter must grow and the system has no memory.
    pub fn row(&mut self, text: Option<&[u8]>) -> Result<(), SourceError> {
        let id = text.and_then(|text| canonical_row_and_value(self.id_type, text));
        self.rows.add(id.is_some());
        let Some((id, value)) = id else { return Ok(()) };
        Ok(self.batch.load_key(&id, value)?)
    }

    /// Returns the number of rows so far.
    #[must_use]
    pub fn rows(&self) -> Rows {
        self.rows
    }

    /// Inserts the buffered ids. Returns the number of all rows.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`row`](Self::row).
    pub fn finish(mut self) -> Result<Rows, SourceError> {
        self.batch.flush()?;
        Ok(self.rows)
    }
}
