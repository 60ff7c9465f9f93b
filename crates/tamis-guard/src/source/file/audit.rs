//! A file as an audit reads it.

use std::fs::File;

use crate::source::audit_source::AuditSource;
use crate::source::error::SourceError;
use crate::source::file::signature::Signature;
use crate::source::file::{self, FileOptions};

impl AuditSource for FileOptions {
    /// Reads the whole file as it is now.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let io = |error| SourceError::Io { path: self.path.clone(), error };
        // A pipe is no file.
        Signature::of_path(&self.path)?;
        let file = File::open(&self.path).map_err(io)?;
        file::each_row(self, &file, &|| false, each)
    }
}
