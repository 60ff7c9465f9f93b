//! Reads inputs: a file or standard input, plain or compressed.
//!
//! The first bytes determine the compression; the file name does not (`unpack.rs`).

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exit::{self, Failure};
use crate::messages;
use crate::output::is_replaced;
use crate::packing::{MARK_BYTES, Packing};
use crate::read::read_some;
use crate::read_ahead::ReadAhead;
use crate::redis_url::without_password;
use crate::standard;
use crate::unpack::unpack;

/// One input, read as uncompressed bytes.
pub struct Input {
    name: String,
    len_bytes: Option<u64>,
    consumed_bytes: Arc<AtomicU64>,
    packing: Packing,
    reader: Box<dyn Read + Send>,
}

impl Input {
    /// Opens `path`, or standard input if it is `-`.
    ///
    /// # Errors
    ///
    /// A message for a missing or unreadable file, or a directory.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let name = name(path);
        if is_stdin(path) {
            standard::check_input()?;
            return Self::of(name, None, io::stdin());
        }
        let file = File::open(path).map_err(|error| Failure::io(&name, &error))?;
        let metadata = file.metadata().map_err(|error| Failure::io(&name, &error))?;
        if metadata.is_dir() {
            return Err(Failure::new(format!("{name}: is a directory, not a file of records")));
        }
        let len_bytes = metadata.is_file().then_some(metadata.len());
        Self::of(name, len_bytes, file)
    }

    /// Reads the first bytes of `reader` and decompresses the rest if they show a compressed
    /// format.
    fn of(
        name: String,
        len_bytes: Option<u64>,
        reader: impl Read + Send + 'static,
    ) -> Result<Self, Failure> {
        let consumed_bytes = Arc::new(AtomicU64::new(0));
        let mut reader = Counted { reader, bytes: Arc::clone(&consumed_bytes) };
        let mut head = [0; MARK_BYTES];
        let mut filled = 0;
        // A terminal or `tail -f` may send a line of two bytes and then wait for its answer. So no
        // more bytes are read than the detection needs.
        while Packing::may_become_known(&head[..filled]) {
            // Four bytes identify most formats.
            let until = if filled < 4 { 4 } else { MARK_BYTES };
            match read_some(&mut reader, &mut head[filled..until]) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) => return Err(Failure::io(&name, &error)),
            }
        }
        let packing = Packing::of(&head[..filled]);
        let whole = Cursor::new(head).take(filled as u64).chain(reader);
        let reader = unpack(packing, whole, &name).map_err(|error| Failure::io(&name, &error))?;
        Ok(Self { name, len_bytes, consumed_bytes, packing, reader })
    }

    /// Decompresses on a second thread. Uncompressed bytes are read on the caller's thread, because
    /// a thread would not make this faster.
    #[must_use]
    pub fn unpacked_ahead(mut self) -> Self {
        if self.is_packed() {
            let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(ReadAhead::new(reader));
        }
        self
    }

    /// Returns the path as typed, or `standard input`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size of the file on disk, or `None` if the input is not a regular file.
    pub fn len_bytes(&self) -> Option<u64> {
        self.len_bytes
    }

    /// Returns the number of bytes read from the file, before decompression.
    pub fn consumed_bytes(&self) -> u64 {
        // Relaxed: the number is only displayed and publishes no other data.
        self.consumed_bytes.load(Ordering::Relaxed)
    }

    /// Tests whether the input is compressed.
    pub fn is_packed(&self) -> bool {
        self.packing != Packing::Plain
    }

    /// Returns the failure of reading this input.
    pub fn failure(&self, error: &io::Error) -> Failure {
        Failure::Message(format!("{}: {}", self.name, exit::plain(error)))
    }

    /// Converts a decoder's error to a message that names the format and the position.
    fn explain(&self, error: io::Error) -> io::Error {
        if self.packing == Packing::Plain || error.kind() == io::ErrorKind::Interrupted {
            return error;
        }
        let format = self.packing.name();
        let at = self.consumed_bytes();
        let text = match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                format!("the {format} data is cut short after {at} bytes; fetch the file again")
            }
            _ if is_want_of_memory(&error) => {
                format!(
                    "decompressing the {format} data takes more memory than --memory allows; \
                     decompress them first"
                )
            }
            _ => format!("broken {format} data within the first {at} bytes ({error})"),
        };
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| self.explain(error))
    }
}

/// Tests whether a decoder failed because the data need more memory than allowed.
fn is_want_of_memory(error: &io::Error) -> bool {
    // The errors of zstd have no kind, so their text is searched.
    error.kind() == io::ErrorKind::OutOfMemory || error.to_string().contains("too much memory")
}

/// A reader that counts the bytes it passes on.
struct Counted<R> {
    reader: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(buffer)?;
        self.bytes.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

/// Tests whether `bytes` begin with the magic bytes of a compressed format.
pub fn starts_packed(bytes: &[u8]) -> bool {
    !matches!(Packing::of(bytes), Packing::Plain)
}

/// Tests whether `path` has the extension of a compressed format.
pub fn is_named_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["gz", "zst", "xz", "bz2"].iter().any(|packed| extension == *packed)
    })
}

/// Tests whether `path` stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the name of `path` for messages.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".into() } else { without_password(path) }
}

/// Returns the inputs of a command: its files, or standard input if there are none.
///
/// Every file is opened once, so that a missing file is reported before any work.
///
/// # Errors
///
/// A message for the first file that is missing, unreadable or a directory.
pub fn checked(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if files.is_empty() {
        return Ok(vec![PathBuf::from("-")]);
    }
    files.iter().try_for_each(|path| check(path))?;
    Ok(files.to_vec())
}

/// Like [`checked`], for a command whose result is useful without one of its inputs. Unreadable
/// inputs are reported and skipped, and the exit status will be 2.
///
/// If one of `outputs` is a file, every input must be readable: an incomplete result must not
/// replace the old file.
///
/// # Errors
///
/// The errors of [`checked`] if one of `outputs` is a file. Otherwise a message if no input
/// remains: every file is missing, unreadable or a directory.
pub fn present(files: &[PathBuf], outputs: &[Option<&Path>]) -> Result<Vec<PathBuf>, Failure> {
    if outputs.iter().flatten().any(|path| is_replaced(path)) {
        return checked(files);
    }
    let (mut paths, mut last) = (Vec::with_capacity(files.len().max(1)), None);
    for path in files {
        match check(path) {
            Ok(()) => paths.push(path.clone()),
            Err(Failure::Message(message)) => {
                if let Some(message) = last.replace(message) {
                    messages::error(message);
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    match last {
        None if files.is_empty() => paths.push(PathBuf::from("-")),
        None => {}
        Some(message) if paths.is_empty() => return Err(Failure::Message(message)),
        Some(message) => {
            messages::error(message);
            exit::set_incomplete();
        }
    }
    Ok(paths)
}

/// Rejects a file that is missing, unreadable or a directory.
fn check(path: &Path) -> Result<(), Failure> {
    if is_stdin(path) {
        return Ok(());
    }
    let failure = |error: &io::Error| Failure::io(name(path), error);
    let metadata = path.metadata().map_err(|error| failure(&error))?;
    if metadata.is_dir() {
        let message = format!("{}: is a directory, not a file of records", name(path));
        return Err(Failure::new(message));
    }
    // Opening a named pipe would block until its writer opens it.
    if metadata.is_file() {
        File::open(path).map_err(|error| failure(&error))?;
    }
    Ok(())
}

/// Returns the total size of all inputs on disk, or `None` if one of them is not a regular file.
pub fn total_len_bytes(paths: &[PathBuf]) -> Option<u64> {
    paths
        .iter()
        .map(|path| {
            let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
            (!is_stdin(path)).then_some(metadata.len())
        })
        .sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut input = Input::of("test".into(), None, Cursor::new(bytes)).unwrap();
        let mut out = Vec::new();
        input.read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn plain_bytes_come_as_they_are() {
        for bytes in
            [&b""[..], b"a", b"abc", b"one\ntwo", b"\x1f", b"\x28\xb5\x2f", b"P*M", b"P*Mx"]
        {
            assert_eq!(read(bytes.to_vec()).unwrap(), bytes);
        }
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        let gz = [gzip(b"one\n"), gzip(b""), gzip(b"two\n")].concat();
        assert_eq!(read(gz).unwrap(), b"one\ntwo\n");
        let frame = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        let zst = [frame(b"one\n"), frame(b""), frame(b"two\n")].concat();
        assert_eq!(read(zst).unwrap(), b"one\ntwo\n");
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &frame(b"x")].concat();
        assert_eq!(read(skippable).unwrap(), b"x");
    }

    #[test]
    fn packed_data_cut_anywhere_is_an_error() {
        let text = b"a line of text\n".repeat(20);
        for packed in [gzip(&text), zstd::encode_all(&text[..], 3).unwrap()] {
            for len in 5..packed.len() {
                let error = read(packed[..len].to_vec()).expect_err("cut");
                assert!(error.to_string().contains("data"), "{error}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_in_packed_data_is_an_error() {
        let text = b"a line of text\n".repeat(20);
        let mut packed = gzip(&text);
        let middle = packed.len() / 2;
        packed[middle] ^= 4;
        assert!(read(packed).is_err());
    }

    #[test]
    fn missing_files_and_folders_are_known_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join("missing")] {
            assert!(checked(std::slice::from_ref(&path)).is_err());
            assert!(Input::open(&path).is_err());
        }
        assert_eq!(checked(&[]).unwrap(), [PathBuf::from("-")]);
    }
}
