//! Maps files into memory. Only this file and `standard.rs` contain `unsafe` in this crate.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

use crate::exit::Failure;

/// A mapped file. The system reads a page of the file at the first access to the page. All
/// processes that map the file share these pages.
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
    /// The error of the system, for example for a pipe or an empty file.
    pub fn new(file: File) -> io::Result<Self> {
        #[cfg(unix)]
        end_in_words::watch()?;
        let at_first = file.metadata()?;
        // SAFETY: the bytes must not change while they are borrowed. `tamis` never writes into an
        // existing file: it replaces the file, and a mapping keeps the old content. If another
        // program writes into the file, `check_unchanged` reports the change before the command
        // prints a result that depends on the bytes. If another program truncates the file, the
        // SIGBUS handler ends this process with a message.
        #[allow(unsafe_code)]
        let bytes = unsafe { Mmap::map(&file) }?;
        Ok(Self { bytes, file, at_first })
    }

    /// Checks that the file was not modified since it was mapped, for example by `cp new live`.
    ///
    /// # Errors
    ///
    /// A message if the file was modified. `name` is the name of the file.
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

/// The message for a modified file, with advice.
const CHANGED: &str =
    "was overwritten while it was in use; put a new filter in its place with 'mv', not 'cp'";

/// Handles SIGBUS. The system sends this signal on access to a page that a truncated file no longer
/// has.
#[cfg(unix)]
mod end_in_words {
    use std::io;
    use std::sync::OnceLock;

    use signal_hook::consts::SIGBUS;

    /// Registers a handler that ends the program with a message and exit status 2 if a mapped file
    /// was truncated.
    pub fn watch() -> io::Result<()> {
        static IS_WATCHED: OnceLock<bool> = OnceLock::new();
        // SAFETY: the handler calls only `write` and `_exit`, which are async-signal-safe.
        #[allow(unsafe_code)]
        let watched = IS_WATCHED
            .get_or_init(|| unsafe { signal_hook::low_level::register(SIGBUS, end) }.is_ok());
        if *watched { Ok(()) } else { Err(io::Error::other("cannot watch for SIGBUS")) }
    }

    fn end() {
        const TEXT: &[u8] =
            b"tamis: a filter was overwritten while it was in use; put a new one in its place with \
                'mv', not 'cp'\n";
        // SAFETY: `TEXT` is static, and `_exit` does not return to the interrupted code.
        #[allow(unsafe_code)]
        unsafe {
            libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
            libc::_exit(2)
        }
    }
}
