//! A filter file as it was when it was opened.

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

    /// Tests whether both are states of one file, which was written in place.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns when the content has changed.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}

/// A filter file. Its content is that of the tag until the stamp changes.
#[derive(Debug)]
pub struct PublishedFile {
    pub file: File,
    pub stamp: Stamp,
    pub tag: EntityTag,
    /// The format, such as `tamis`.
    pub format: &'static str,
    /// The kind, such as `split-block`. Empty for a filter of another system.
    pub kind: String,
    /// The estimated number of items; `None` if the bits do not show it.
    pub items: Option<f64>,
    /// True if the file has a secret hash key.
    pub is_secret: bool,
}

impl PublishedFile {
    /// Opens a file, and verifies that it is a filter. Reads it twice.
    ///
    /// # Errors
    ///
    /// A message for a file that is no filter, or that was changed meanwhile.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = input::name(path);
        let failure = |error: io::Error| Failure::io(&name, &error);
        let metadata = path.metadata().map_err(failure)?;
        // Before it is opened: to open a pipe may wait forever.
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
        // A Parquet table or an ORC file has several filters. Their items may overlap.
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

    /// Tests whether the content is still that of the tag.
    pub fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| Stamp::new(&metadata) == self.stamp)
    }
}

/// Returns a path of the open file itself, although another one may be at `path` now. Elsewhere
/// than on Linux, `path`.
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
