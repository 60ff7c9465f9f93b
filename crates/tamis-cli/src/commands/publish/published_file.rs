//! A filter file in the state in which it was opened.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tamis::HashFunction;
use tamis_formats::TamisFile;
use tamis_guard::EntityTag;

use crate::arguments::decode_options::DecodeArgs;
use crate::exit::Failure;
use crate::filters::content_tag::ContentTag;
use crate::filters::open_filter::Trust;
use crate::filters::opener::Opener;
use crate::io::input;

/// The attributes of a file that show whether its content has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    identity: (u64, u64),
    pub len_bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt as _;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let identity = (0, 0);
        Self { identity, len_bytes: metadata.len(), modified: metadata.modified().ok() }
    }

    /// Tests whether both stamps belong to the same file. If the stamps of the same file differ, a
    /// program has written the file in place.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns the time of the last change of the content.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}

/// A filter file. The content of the file matches `tag` until the identity, the size or the
/// modification time of the file changes.
#[derive(Debug)]
pub struct PublishedFile {
    pub file: File,
    pub stamp: Stamp,
    pub tag: EntityTag,
    /// The format, such as `tamis`.
    pub format: &'static str,
    /// The kind, such as `split-block`. The kind is empty for a filter of another system.
    pub kind: String,
    /// The estimated number of items, or `None` if the bits do not determine the number.
    pub items: Option<f64>,
    /// True if the file has a secret hash key.
    pub is_secret: bool,
}

impl PublishedFile {
    /// Opens a file, and verifies that the file is a filter. The function reads the file twice.
    ///
    /// # Errors
    ///
    /// Returns a message if the file is not a filter, or if the file was changed during the reads.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = input::name(path);
        let failure = |error: io::Error| Failure::io(&name, &error);
        let metadata = path.metadata().map_err(failure)?;
        // The check of the file type precedes `File::open`, because opening a pipe may block
        // forever.
        if !metadata.is_file() {
            return Err(Failure::new(format!("{name}: is not a regular file")));
        }
        let file = File::open(path).map_err(failure)?;
        let stamp = Stamp::new(&file.metadata().map_err(failure)?);
        let tag = ContentTag::of_file(&file).map_err(failure)?;
        let decode = DecodeArgs::default();
        let opened = of_descriptor(&file, path);
        let all = Opener::new(&decode).all(&opened, Trust::Verify);
        let all = all.map_err(|failure| failure.renamed(&opened, &name))?;
        let (mut format, mut kind, mut items, mut is_secret) = ("", String::new(), None, false);
        // A Parquet table or an ORC file has several filters, and the items of these filters may
        // overlap.
        let is_one = all.len() == 1;
        for filter in all.into_iter().flatten() {
            format = filter.format.name;
            if let Some(view) = filter.view()? {
                let info = view.info_from(&view.filter, None);
                kind = info.kind.to_owned();
                items = Some(info.items).filter(|items| items.is_finite());
                is_secret |= view.filter.hasher().function() == HashFunction::Sip13;
            } else {
                let info = filter.contents().info();
                items = Some(info.items).filter(|items| is_one && items.is_finite());
                let own = filter.contents().downcast_ref::<TamisFile>();
                let function = own.map(|file| file.filter.hasher().function());
                is_secret |= function == Some(HashFunction::Sip13);
            }
        }
        if Stamp::new(&file.metadata().map_err(failure)?) != stamp {
            return Err(Failure::new(format!("{name}: was changed while it was read")));
        }
        Ok(Self { file, stamp, tag, format, kind, items, is_secret })
    }

    /// Tests whether the content still matches the tag.
    pub fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| Stamp::new(&metadata) == self.stamp)
    }
}

/// Returns a path of the open file itself, even if another file is at `path` now. On systems other
/// than Linux, returns `path`.
fn of_descriptor(file: &File, path: &Path) -> PathBuf {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        _ = path;
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
    #[cfg(not(target_os = "linux"))]
    {
        _ = file;
        path.to_owned()
    }
}
