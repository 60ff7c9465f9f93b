//! What the tables of all kinds of sources have in common.

use std::path::Path;
use std::sync::Arc;

use tamis_sources::SourceKind;

use crate::config::setting::InvalidValue;

/// The fields of the table of one kind of source.
pub(super) trait SourceFields {
    /// Checks the fields, and returns the settings of the source. Paths are relative to `folder`.
    fn kind(&self, folder: &Path) -> Result<Arc<dyn SourceKind>, InvalidValue>;
}
