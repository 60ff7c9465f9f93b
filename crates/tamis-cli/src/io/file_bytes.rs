//! Loads the bytes of a filter file: maps the file, or reads and decompresses the file.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Deref;
use std::path::Path;

use tamis_formats::{Format, ReadError, TamisFile};

use crate::exit::Failure;
use crate::filters::redis_url::{is_url, not_a_file};
use crate::io::input::{self, Input, InputForm};
use crate::io::map::Mapped;
use crate::io::packing::Packing;

/// A file that was read or mapped.
pub struct LoadedFile {
    /// The content of the file.
    pub content: FileContent,
    /// True if the file is compressed.
    pub is_packed: bool,
}

/// The content of a file.
pub enum FileContent {
    /// A Tamis filter, decoded directly from a stream.
    Tamis(Box<TamisFile>),
    /// The bytes of a file that is not decoded yet.
    Bytes(Bytes),
}

/// The bytes of a file. An uncompressed file is mapped, and a compressed file or a pipe is copied.
pub enum Bytes {
    /// The file itself, mapped into memory.
    Mapped(Mapped),
    /// A copy of the bytes of the file, after decompression.
    Copied(Vec<u8>),
}

impl Bytes {
    /// Checks that the file was not modified since it was opened.
    ///
    /// # Errors
    ///
    /// A message if the file was modified.
    pub fn check_unchanged(&self, name: &str) -> Result<(), Failure> {
        match self {
            Bytes::Mapped(bytes) => bytes.check_unchanged(name),
            Bytes::Copied(_) => Ok(()),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

impl LoadedFile {
    /// Creates a loaded file from uncompressed bytes.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { content: FileContent::Bytes(Bytes::Copied(bytes)), is_packed: false }
    }

    /// Reads and decompresses a file. If `is_raw` is true, the function does not decompress the
    /// file.
    ///
    /// # Errors
    ///
    /// A message for a directory, or a file that cannot be read.
    pub fn read(path: &Path, is_raw: bool) -> Result<Self, Failure> {
        if is_url(path) {
            return Err(not_a_file(path));
        }
        if path.is_dir() {
            let name = input::name(path);
            return Err(Failure::new(format!("{name}: is a directory, not a filter")));
        }
        if is_raw {
            let content = FileContent::Bytes(raw(path)?);
            return Ok(Self { content, is_packed: false });
        }
        let mut stream = Input::open(path, InputForm::FILTER)?;
        let is_packed = stream.is_packed();
        if stream.len_bytes().is_some_and(|len| len > 0) && !is_packed {
            return Ok(Self { content: FileContent::Bytes(mapped(path)?), is_packed });
        }
        let mut bytes = Vec::new();
        let start = stream.by_ref().take(8).read_to_end(&mut bytes);
        start.map_err(|error| stream.failure(&error))?;
        let content = if let [Format { name: "tamis", .. }] = Format::of(&bytes)[..] {
            let file = TamisFile::read_from(bytes.chain(&mut stream), u64::MAX);
            let file = file.map_err(|error| match error {
                ReadError::Io(error) => stream.failure(&error),
                ReadError::Decode(error) => Failure::new(format!("{}: {error}", stream.name())),
            });
            FileContent::Tamis(Box::new(file?))
        } else {
            stream.read_to_end(&mut bytes).map_err(|error| stream.failure(&error))?;
            FileContent::Bytes(Bytes::Copied(bytes))
        };
        Ok(Self { content, is_packed })
    }
}

fn raw(path: &Path) -> Result<Bytes, Failure> {
    let name = input::name(path);
    if path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
        let bytes = mapped(path)?;
        if Packing::of(&bytes) != Packing::Plain {
            note!(
                "{name}: starts like compressed data but is read as plain bits: if it is \
                 compressed, rename it to .gz or .zst"
            );
        }
        return Ok(bytes);
    }
    let mut bytes = Vec::new();
    let read = if input::is_stdin(path) {
        io::stdin().read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::io(name, &error))?;
    Ok(Bytes::Copied(bytes))
}

fn mapped(path: &Path) -> Result<Bytes, Failure> {
    File::open(path)
        .and_then(Mapped::new)
        .map(Bytes::Mapped)
        .map_err(|error| Failure::io(input::name(path), &error))
}
