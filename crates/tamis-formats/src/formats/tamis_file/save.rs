//! Saves a filter to a file and loads a filter from a file, in one call.

use std::fs::{self, File};
use std::path::Path;

use tamis::{
    AnyFilter, AtomicBitmap, BloomFilter, Classic, Counting, Cuckoo, FilterWords, Growing, Parquet,
    PlanError, SplitBlock, Window,
};

use crate::encoding::metadata::Metadata;
use crate::errors::{FileError, FileErrorKind, ReadError};
use crate::formats::tamis_file::{TamisFile, write};
use crate::replace_file::{Readers, replace_file};

/// Saves a filter to a [Tamis file](TamisFile) and loads a filter from a Tamis file.
///
/// Every filter type of the crate `tamis` that owns its memory implements the trait. The file
/// contains the plan, the hash function with its seed or key, and checksums.
///
/// # Examples
///
/// ```
/// use tamis::{Bloom, SharedBloom};
/// use tamis_formats::Save;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("seen.tamis");
/// let mut seen = Bloom::for_items(1_000, 0.01)?;
/// seen.insert("tamis");
/// seen.save(&path)?;
/// let seen = SharedBloom::load(&path)?;
/// assert!(seen.contains("tamis"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Save: FilterWords + Sized {
    /// Writes the filter to a file, and replaces the file at `path` atomically. After a crash, the
    /// path has either the complete old file or the complete new file. The file is on disk when the
    /// method returns.
    ///
    /// The new file has the permissions of the old file. Only the owner may read the file of a filter
    /// with a secret key. Other threads may insert into a [`SharedBloom`](tamis::SharedBloom)
    /// meanwhile: the file contains every item whose insert returned before the call of `save`.
    /// Takes linear time, and no copy of the filter.
    ///
    /// # Errors
    ///
    /// [`FileError`] with the path and the reason. If the reason is [`FileErrorKind::Write`], a
    /// previous file is unchanged.
    fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        save(self, 0, &Metadata::new(), path.as_ref())
    }

    /// Reads a filter from a file, and checks every byte. Takes linear time.
    ///
    /// # Errors
    ///
    /// [`FileError`] with the path and the reason, for example [`FileErrorKind::Kind`] if the file
    /// contains a filter of another kind. [`AnyFilter`] loads a filter of any kind.
    fn load(path: impl AsRef<Path>) -> Result<Self, FileError>;
}

/// Writes a Tamis file, and replaces the file at `path` atomically.
fn save(
    filter: &impl FilterWords,
    added: u64,
    metadata: &Metadata,
    path: &Path,
) -> Result<(), FileError> {
    let readers = if filter.hasher().is_keyed() { Readers::Owner } else { Readers::ByUmask };
    replace_file(path, readers, |file| write(filter, added, metadata, file))
}

impl<B: tamis::Bits<Word = u64>> TamisFile<B> {
    /// Writes the file, and replaces the file at `path` atomically, as [`Save::save`] does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Save::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        save(&self.filter, self.added, &self.metadata, path.as_ref())
    }
}

impl TamisFile {
    /// Reads a file, and checks every byte. Takes linear time.
    ///
    /// # Errors
    ///
    /// [`FileError`] with the path and the reason.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let unread = |error| FileErrorKind::Read(error).at(path);
        // Opening a named pipe would wait for a writer.
        if !fs::metadata(path).map_err(unread)?.is_file() {
            return Err(FileErrorKind::NotAFile.at(path));
        }
        let file = File::open(path).map_err(unread)?;
        let len_bytes = file.metadata().map_err(unread)?.len();
        TamisFile::read_from(file, len_bytes).map_err(|error| match error {
            ReadError::Io(error) => unread(error),
            ReadError::Decode(error) => FileErrorKind::Decode(error).at(path),
        })
    }
}

/// Returns the error for a file with a filter of another kind.
fn other_kind(error: &PlanError, path: &Path) -> FileError {
    match *error {
        PlanError::OtherKind { expected, found } => {
            FileErrorKind::Kind { expected, found }.at(path)
        }
        _ => unreachable!("a filter is refused only by its kind: {error}"),
    }
}

macro_rules! save_kinds {
    ($($filter:ty),* $(,)?) => { $(
        impl Save for $filter {
            fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
                let path = path.as_ref();
                let filter = TamisFile::load(path)?.filter.try_into();
                filter.map_err(|error| other_kind(&error, path))
            }
        }
    )* };
}

save_kinds! {
    BloomFilter<SplitBlock>,
    BloomFilter<Classic>,
    BloomFilter<Parquet>,
    BloomFilter<SplitBlock, AtomicBitmap>,
    BloomFilter<Classic, AtomicBitmap>,
    BloomFilter<Parquet, AtomicBitmap>,
    Counting,
    Cuckoo,
    Growing,
    Window,
}

impl Save for AnyFilter {
    fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        TamisFile::load(path).map(|file| file.filter)
    }
}
