//! The table of formats.

use std::io;

use crate::error::DecodeError;
use crate::tamis_file::{self, TamisFile};

/// A way to write filters as bytes: a row of [`FORMATS`].
#[derive(Debug)]
pub struct Format {
    /// The name on command lines and in messages.
    pub name: &'static str,
    /// What file names end in, without the dot.
    pub extensions: &'static [&'static str],
    /// What it is, in a line.
    pub summary: &'static str,
    /// Tells from a file's first bytes whether it may be of this format.
    pub sniff: fn(start: &[u8]) -> bool,
    /// Reads a whole file.
    pub decode: fn(bytes: &[u8]) -> Result<TamisFile, DecodeError>,
    /// Writes a whole file.
    pub encode: fn(file: &TamisFile, out: &mut dyn io::Write) -> io::Result<()>,
}

impl Format {
    /// Finds the format of bytes by how they start.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::Format;
    ///
    /// assert!(Format::of(b"plain text").is_none());
    /// assert_eq!(Format::of(b"\x89TAMIS\r\n").map(|format| format.name), Some("tamis"));
    /// ```
    #[must_use]
    pub fn of(start: &[u8]) -> Option<&'static Format> {
        FORMATS.iter().find(|format| (format.sniff)(start))
    }
}

/// Every format, the project's own first.
pub static FORMATS: &[Format] = &[tamis_file::FORMAT];
