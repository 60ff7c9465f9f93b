//! Filter files: opened in place, and replaced atomically.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use tamis::{AnyFilter, BitView, Bits, HashFunction, Span};
use tamis_formats::{DecodeErrorKind, Format, ReadError, TamisFile};

use crate::exit::Failure;
use crate::input::{self, Input};
use crate::map::Mapped;
use crate::output::Output;
use crate::span::SpanArg;

/// A filter to read. A plain file is mapped. A pipe or a compressed file (gzip or another
/// compression) is copied.
pub struct Source {
    name: String,
    place: Place,
}

enum Place {
    Mapped(Mapped),
    // Boxed because a filter's plan and metadata are several times the size of a mapping.
    Copied(Box<TamisFile>),
}

/// The verification of a mapped filter before its words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Verify the checksums: one pass over the file finds every flipped bit.
    Verify,
    /// Skip the verification: the words were verified before.
    Assume,
}

impl Source {
    /// Opens the filter at `path`, or on standard input if it is `-`.
    ///
    /// # Errors
    ///
    /// A message for a missing or unreadable file, a directory, or a file that is not a complete
    /// filter.
    pub fn open(path: &Path, trust: Trust) -> Result<Self, Failure> {
        let name = input::name(path);
        let place = match mapped(path, &name)? {
            Some(bytes) => match TamisFile::view(&bytes) {
                Ok(_) => {
                    if trust == Trust::Verify {
                        TamisFile::verify(&bytes).map_err(|error| of_file(&name, error))?;
                    }
                    Place::Mapped(bytes)
                }
                Err(error) if error.kind == DecodeErrorKind::NotInPlace => {
                    copied(Input::open(path)?, &name)?
                }
                Err(error) => return Err(of_file(&name, error)),
            },
            None => copied(Input::open(path)?, &name)?,
        };
        Ok(Self { name, place })
    }

    /// Reads a copy of the filter in a stream.
    ///
    /// # Errors
    ///
    /// A message if the stream fails or does not contain a complete filter.
    pub fn read_from(name: String, stream: impl Read) -> Result<Self, Failure> {
        let place = copied(stream, &name)?;
        Ok(Self { name, place })
    }

    /// Returns the path as typed, or `standard input`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that the file was not modified since it was opened. After a modification, the bytes
    /// read may belong neither to the old filter nor to the new one.
    ///
    /// # Errors
    ///
    /// A message if it was modified.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
        match &self.place {
            Place::Mapped(bytes) => bytes.check_unchanged(&self.name),
            Place::Copied(_) => Ok(()),
        }
    }

    /// Returns a copy of the filter that the caller can change.
    ///
    /// # Errors
    ///
    /// A message for a damaged filter that was opened with [`Trust::Assume`].
    pub fn into_file(self) -> Result<TamisFile, Failure> {
        match self.place {
            Place::Mapped(bytes) => TamisFile::read_from(&bytes[..], u64::MAX)
                .map_err(|error| of_stream(&self.name, error)),
            Place::Copied(file) => Ok(*file),
        }
    }

    /// Returns the filter. Its words stay in place.
    ///
    /// # Errors
    ///
    /// No error that [`open`](Self::open) has not returned before.
    pub fn file(&self) -> Result<TamisFile<BitView<'_>>, Failure> {
        match &self.place {
            Place::Mapped(bytes) => {
                TamisFile::view(bytes).map_err(|error| of_file(&self.name, error))
            }
            Place::Copied(file) => {
                let filter = file.filter.as_view().expect("a filter that was read has not grown");
                let mut view = TamisFile::new(filter);
                view.added = file.added;
                view.metadata = file.metadata.clone();
                Ok(view)
            }
        }
    }
}

/// Reads a copy of the filter at `path` that the caller can change.
///
/// # Errors
///
/// The errors of [`Source::open`].
pub fn read(path: &Path) -> Result<TamisFile, Failure> {
    let name = input::name(path);
    let stream = Input::open(path)?;
    TamisFile::read_from(stream, u64::MAX).map_err(|error| of_stream(&name, error))
}

/// Opens the filter at `path` for a change in place. Returns it with a lock that the caller holds
/// until the changed filter is saved. Without the lock, if two processes change a filter at once,
/// the items of one are lost.
///
/// # Errors
///
/// The errors of [`Source::open`]; a message for standard input, or a filter that another process
/// is changing.
pub fn open_to_change(path: &Path) -> Result<(File, TamisFile), Failure> {
    let lock = lock_to_change(path)?;
    check_unpacked(path)?;
    Ok((lock, read(path)?))
}

/// Locks the filter at `path` for a change in place.
///
/// # Errors
///
/// A message for standard input, a directory, a file that cannot be opened, or a filter that
/// another process is changing.
pub fn lock_to_change(path: &Path) -> Result<File, Failure> {
    if input::is_stdin(path) {
        return Err(Failure::new("the filter to change must be a file, not standard input"));
    }
    if path.is_dir() {
        return Err(Failure::new(format!("{}: is a directory, not a filter", input::name(path))));
    }
    lock(path)
}

/// Rejects a compressed file for a change in place: the command would replace it by an uncompressed
/// file of the same name.
///
/// # Errors
///
/// A message if the file is compressed or cannot be read.
pub fn check_unpacked(path: &Path) -> Result<(), Failure> {
    if !path.is_file() || !Input::open(path)?.is_packed() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: is packed, and would be replaced by an unpacked file of that name: unpack it first (gunzip, unzstd), and \
         change that",
        input::name(path)
    )))
}

/// Locks the file at `path` against changes by other processes, until the file is closed.
///
/// # Errors
///
/// A message if the file cannot be opened, or if another process holds the lock.
fn lock(path: &Path) -> Result<File, Failure> {
    let failure = |error: &std::io::Error| Failure::io(input::name(path), error);
    loop {
        let file = File::open(path).map_err(|error| failure(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(format!(
                    "{}: another process is changing it; try again later",
                    path.display()
                )));
            }
            // Some network file systems do not support locks.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        // The process that held the lock may have replaced the file.
        if is_still_at(&file, path).map_err(|error| failure(&error))? {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (held, there) = (file.metadata()?, path.metadata()?);
    Ok((held.dev(), held.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}

fn copied(stream: impl Read, name: &str) -> Result<Place, Failure> {
    let file = TamisFile::read_from(stream, u64::MAX).map_err(|error| of_stream(name, error))?;
    Ok(Place::Copied(Box::new(file)))
}

/// Maps `path` if it is a plain file that starts like a Tamis filter.
fn mapped(path: &Path, name: &str) -> Result<Option<Mapped>, Failure> {
    if input::is_stdin(path) {
        return Ok(None);
    }
    let failure = |error: &io::Error| Failure::io(name, error);
    let metadata = path.metadata().map_err(|error| failure(&error))?;
    if metadata.is_dir() {
        return Err(Failure::new(format!("{name}: is a directory, not a filter")));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let file = File::open(path).map_err(|error| failure(&error))?;
    let mut start = Vec::new();
    (&file).take(8).read_to_end(&mut start).map_err(|error| failure(&error))?;
    if Format::of(&start).first().is_none_or(|format| format.name != "tamis") {
        return Ok(None);
    }
    Mapped::new(file).map(Some).map_err(|error| failure(&error))
}

fn of_file(name: &str, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{name}: {error}"))
}

fn of_stream(name: &str, error: ReadError) -> Failure {
    match error {
        ReadError::Io(error) => Failure::io(name, &error),
        ReadError::Decode(error) => of_file(name, error),
    }
}

/// Replaces `path` by `file` after `file` is complete and on disk. Returns its size in bytes.
///
/// Only the owner may read a filter with a secret key, unless the old file had other permissions.
///
/// # Errors
///
/// A message for a directory or a full disk. The old file is then unchanged.
pub fn save<B: Bits<Word = u64>>(path: &Path, file: &TamisFile<B>) -> Result<u64, Failure> {
    let is_secret = file.filter.hasher().function() == HashFunction::Sip13;
    let output = if is_secret { Output::open_private(path)? } else { Output::open(Some(path))? };
    let mut sink = Sink { output, failure: None };
    if let Err(error) = file.write_to(&mut sink) {
        return Err(sink.failure.unwrap_or_else(|| Failure::io(input::name(path), &error)));
    }
    sink.output.finish()?;
    Ok(file.len_bytes())
}

/// Rejects a window filter whose present slice began after `now_millis`. Items that are added or
/// merged now would precede the window, so the filter would expire them at once.
///
/// # Errors
///
/// A message if the clock is ahead.
pub fn check_clock<B: Bits<Word = u64>>(
    filter: &AnyFilter<B>,
    now_millis: u64,
    name: &str,
) -> Result<(), Failure> {
    let AnyFilter::Window(window) = filter else { return Ok(()) };
    let Some(began) = window.began_millis() else { return Ok(()) };
    let ahead_millis = began.saturating_sub(now_millis);
    if ahead_millis == 0 {
        return Ok(());
    }
    let ahead = SpanArg(Span::Millis(ahead_millis));
    Err(Failure::new(format!(
        "{name}: its clock is {ahead} ahead of this machine's, and earlier items are forgotten; set the \
         machine's clock, or build the filter again"
    )))
}

/// Adapts an [`Output`] to [`Write`]. It stores the failure, which names the file.
pub struct Sink {
    /// The destination.
    pub output: Output,
    /// The failure of the last write, if it failed.
    pub failure: Option<Failure>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.output.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(failure) => {
                self.failure = Some(failure);
                Err(io::Error::other("kept as `failure`"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
