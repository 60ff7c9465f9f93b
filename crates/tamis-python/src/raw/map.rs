//! Maps the words of a file into memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;
use tamis::Bits;

/// A mapped file. All processes that map the file share its pages.
#[derive(Clone)]
pub struct MappedFile(Arc<Mmap>);

impl MappedFile {
    /// Maps a whole file for reading.
    ///
    /// # Errors
    ///
    /// The error of the system, for example for a pipe.
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the bytes must not change while they are borrowed. Every Tamis program replaces a
        // file by a rename, and a mapping keeps the old content. The documentation of `tamis.open`
        // states that other programs must replace the file in the same way.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Self(Arc::new(map)))
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Words of a mapped file.
#[derive(Clone)]
pub struct MappedWords {
    file: MappedFile,
    bytes: Range<usize>,
}

impl MappedWords {
    /// Creates the words in a range of the file's bytes. The range must start at a multiple of 8
    /// and contain whole words.
    pub fn new(file: MappedFile, bytes: Range<usize>) -> Self {
        Self { file, bytes }
    }
}

impl Bits for MappedWords {
    type Word = u64;

    #[inline]
    fn words(&self) -> &[u64] {
        bytemuck::cast_slice(&self.file.0[self.bytes.clone()])
    }
}

impl PartialEq for MappedWords {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}
