//! The trait that the tables of all source kinds implement.

use std::path::Path;
use std::sync::Arc;

use tamis_sources::SourceKind;

use crate::config::setting::InvalidValue;

/// The fields in the table of one source kind.
pub(super) trait SourceFields {
    /// Checks the fields, and returns the settings of one source for each table. Paths are relative to `folder`.
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue>;

    /// Tests whether the source is a filter that responses of the program must prove.
    fn needs_proof(&self) -> bool {
        false
    }

    /// Tests whether the source reports each update of a row, also if the id of the row stays the same.
    fn reports_updates(&self) -> bool {
        false
    }
}
