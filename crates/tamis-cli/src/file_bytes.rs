//! The bytes of a filter file: mapped, or read and unpacked.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use tamis_formats::{Format, Parameter};

use crate::exit::Failure;
use crate::filter_file::Source;
use crate::input::{self, Input};
use crate::map::Mapped;
use crate::told::TellArgs;

/// The bytes of a file. A plain file is mapped; any other file is copied.
pub enum Bytes {
    /// The file itself, mapped into memory.
    Mapped(Mapped),
    /// A copy that was read and unpacked.
    Copied(Vec<u8>),
}

/// The contents of a stream.
pub enum Found {
    /// A Tamis filter, decoded directly from the stream.
    Tamis(Source),
    /// Any other bytes.
    Bytes(Bytes),
}

impl Bytes {
    /// Reads and unpacks a file. If `is_raw`, reads it without unpacking.
    ///
    /// # Errors
    ///
    /// A message for a directory, or a file that cannot be read.
    pub fn read(path: &Path, is_raw: bool) -> Result<Found, Failure> {
        if path.is_dir() {
            return Err(Failure::new(format!(
                "{}: is a directory, not a filter",
                input::name(path)
            )));
        }
        if is_raw { Self::raw(path) } else { Self::unpacked(path) }
    }

    fn raw(path: &Path) -> Result<Found, Failure> {
        let name = input::name(path);
        if path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
            let found = Self::mapped(path)?;
            if let Found::Bytes(bytes) = &found
                && input::starts_packed(bytes)
            {
                note!(
                    "{name}: starts like compressed data but is read as plain bits: if it is compressed, rename it to .gz or .zst"
                );
            }
            return Ok(found);
        }
        let mut bytes = Vec::new();
        let read = if input::is_stdin(path) {
            io::stdin().read_to_end(&mut bytes)
        } else {
            File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
        };
        read.map_err(|error| Failure::io(name, &error))?;
        Ok(Found::Bytes(Bytes::Copied(bytes)))
    }

    fn mapped(path: &Path) -> Result<Found, Failure> {
        let failure = |error: &io::Error| Failure::io(input::name(path), error);
        let file = File::open(path).map_err(|error| failure(&error))?;
        let bytes = Mapped::new(file).map_err(|error| failure(&error))?;
        Ok(Found::Bytes(Bytes::Mapped(bytes)))
    }

    /// Checks that the file was not modified since it was opened.
    ///
    /// # Errors
    ///
    /// A message if it was modified.
    pub fn check_unchanged(&self, name: &str) -> Result<(), Failure> {
        match self {
            Bytes::Mapped(bytes) => bytes.check_unchanged(name),
            Bytes::Copied(_) => Ok(()),
        }
    }

    fn unpacked(path: &Path) -> Result<Found, Failure> {
        let mut stream = Input::open(path)?;
        if stream.len_bytes().is_some_and(|len| len > 0) && !stream.is_packed() {
            return Self::mapped(path);
        }
        let mut bytes = Vec::new();
        let start = stream.by_ref().take(8).read_to_end(&mut bytes);
        start.map_err(|error| stream.failure(&error))?;
        if let [Format { name: "tamis", .. }] = Format::of(&bytes)[..] {
            return Source::read_from(input::name(path), bytes.chain(stream)).map(Found::Tamis);
        }
        stream.read_to_end(&mut bytes).map_err(|error| stream.failure(&error))?;
        Ok(Found::Bytes(Bytes::Copied(bytes)))
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

/// Reads and unpacks all bytes of a file that is not a Tamis filter.
///
/// # Errors
///
/// A message for a file that cannot be read, or a Tamis filter.
pub fn file_bytes(path: &Path) -> Result<impl std::ops::Deref<Target = [u8]> + use<>, Failure> {
    match Bytes::read(path, false)? {
        Found::Bytes(bytes) => Ok(bytes),
        Found::Tamis(_) => {
            Err(Failure::new(format!("{}: is a filter of Tamis", input::name(path))))
        }
    }
}

/// Tests whether a file is read without decompression. This applies if the user gives a format of
/// plain bits and the file name does not end like that of compressed data. Plain bits may begin
/// like compressed data.
pub fn is_raw(path: &Path, tell: &TellArgs) -> bool {
    let is_bits = |format: &Format| {
        !format.is_detectable() || format.parameters.required.contains(&Parameter::Items)
    };
    tell.format.as_deref().and_then(Format::named).is_some_and(is_bits)
        && !input::is_named_packed(path)
}
