//! Reads the digests of a file.

use crate::block::{BlockReader, DATA};
use crate::digest::StoredDigest;
use crate::error::StateError;

/// A reader of all digests of a file, in the order in which they were appended. The reader holds one
/// batch in memory.
pub struct Replay<'f, D> {
    blocks: BlockReader<'f>,
    digests: Vec<D>,
}

impl<'f, D: StoredDigest> Replay<'f, D> {
    pub(crate) fn new(blocks: BlockReader<'f>) -> Self {
        Self { blocks, digests: Vec::new() }
    }

    /// Returns the next batch of at most 64 KiB of digests, or `None` after the last batch.
    ///
    /// # Errors
    ///
    /// Returns an I/O error, or [`StateError::Damaged`] if the file has changed since it was opened.
    pub fn next_batch(&mut self) -> Result<Option<&[D]>, StateError> {
        while let Some((block, _)) = self.blocks.next()? {
            if block.tag == DATA {
                D::read_each(&block.payload, &mut self.digests);
                return Ok(Some(&self.digests));
            }
        }
        self.blocks.check_end()?;
        Ok(None)
    }
}
