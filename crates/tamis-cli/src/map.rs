//! Files as memory. With `standard.rs` the only `unsafe` of this crate.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

use crate::exit::Failure;

/// A mapped file, whose pages are read when they are touched, and shared with every other process that maps it.
pub struct Mapped {
    bytes: Mmap,
    file: File,
    at_first: Metadata,
}

impl Mapped {
    /// Maps a whole file for reading.
    ///
    /// # Errors
    ///
    /// Those of the system, such as for a pipe or an empty file.
    pub fn new(file: File) -> io::Result<Self> {
        #[cfg(unix)]
        end_in_words::watch()?;
        let at_first = file.metadata()?;
        // SAFETY: the bytes must not change while they are borrowed. `tamis` itself never writes into a file that exists:
        // it puts a new one in its place, and a mapping keeps the old. What another program writes into it is found by
        // `check_unchanged` before an answer that rests on it is given; a file cut shorter ends this process in words.
        #[allow(unsafe_code)]
        let bytes = unsafe { Mmap::map(&file) }?;
        Ok(Self { bytes, file, at_first })
    }

    /// Refuses to go on if the file was written to since it was mapped, as `cp new live` does.
    ///
    /// # Errors
    ///
    /// If it was; `name` is that of the file.
    pub fn check_unchanged(&self, name: &str) -> Result<(), Failure> {
        let now = self.file.metadata().map_err(|error| Failure::io(name, &error))?;
        let is_as_before = now.len() == self.at_first.len()
            && now.modified().ok() == self.at_first.modified().ok();
        if is_as_before { Ok(()) } else { Err(Failure::new(format!("{name}: {CHANGED}"))) }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What is wrong, and what to do.
const CHANGED: &str =
    "was overwritten while it was in use; put a new filter in its place with 'mv', not 'cp'";

/// The signal of a page that a mapped file no longer has.
#[cfg(unix)]
mod end_in_words {
    use std::io;
    use std::sync::OnceLock;

    use signal_hook::consts::SIGBUS;

    /// Has the program end with a message and exit status 2 when a mapped file has become shorter.
    pub fn watch() -> io::Result<()> {
        static IS_WATCHED: OnceLock<bool> = OnceLock::new();
        // SAFETY: the handler calls only `write` and `_exit`, which a handler may.
        #[allow(unsafe_code)]
        let watched = IS_WATCHED
            .get_or_init(|| unsafe { signal_hook::low_level::register(SIGBUS, end) }.is_ok());
        if *watched { Ok(()) } else { Err(io::Error::other("cannot watch for SIGBUS")) }
    }

    fn end() {
        const TEXT: &[u8] =
            b"tamis: a filter was overwritten while it was in use; put a new one in its place with 'mv', not 'cp'\n";
        // SAFETY: the bytes are there for good, and neither function returns to what was interrupted.
        #[allow(unsafe_code)]
        unsafe {
            libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
            libc::_exit(2)
        }
    }
}
