//! Reads inputs: a file or standard input, plain or compressed.
//!
//! For text, the first bytes determine the compression, and the file name has no effect
//! (`packing.rs`). Binary data are decompressed only if the caller requests decompression.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum as _;

use crate::exit::{self, Failure};
use crate::filters::redis_url::without_password;
use crate::io::messages;
use crate::io::output::place::is_replaced;
use crate::io::packing::{MARK_BYTES, Packing, Unpack, ZSTD_HEAD_BYTES};
use crate::io::read::{read_some, read_up_to};
use crate::io::read_ahead::ReadAhead;
use crate::io::standard;
use crate::io::unpack::{NotUnpacked, too_much_memory, unpack};

/// How the bytes of inputs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputForm {
    /// How the inputs are decompressed. If `unpack` is `None`, the first bytes of text determine
    /// the compression. If `unpack` is `None`, binary data are read without decompression, because
    /// a number in binary data may look like the magic bytes of a compressed format.
    pub unpack: Option<Unpack>,
    /// True if the inputs are text. At the start of a text, the reader skips a byte order mark.
    pub is_text: bool,
}

impl InputForm {
    /// How filter files are read: the first bytes determine the compression, and a byte order mark
    /// is not skipped.
    pub const FILTER: Self = Self { unpack: Some(Unpack::Auto), is_text: false };

    /// Returns the decompression that applies if the user does not choose a decompression.
    fn usual(self) -> Unpack {
        if self.is_text { Unpack::Auto } else { Unpack::No }
    }

    /// Returns the compression of an input that begins with `head`.
    pub fn packing(self, head: &[u8]) -> Packing {
        self.unpack.unwrap_or(self.usual()).packing(head)
    }

    /// Describes how the inputs are decompressed, or returns `None` for the default.
    pub fn describe(self) -> Option<String> {
        let unusual = self.unpack.filter(|unpack| *unpack != self.usual())?;
        Some(format!("--unpack {}", unusual.to_possible_value()?.get_name()))
    }

    /// Rejects binary data if both the first bytes and the file name indicate compression. Writes a
    /// note if only the first bytes indicate compression.
    fn check_plain(self, name: &str, head: &[u8]) -> Result<(), Failure> {
        let looks = Packing::of(head);
        if self.unpack.is_some() || self.is_text || looks == Packing::Plain {
            return Ok(());
        }
        let format = looks.name();
        if is_named_packed(Path::new(name)) {
            return Err(Failure::new(format!(
                "{name}: is named and begins like {format} data, and binary data are not \
                 decompressed by their first bytes: add --unpack {format} or --unpack no"
            )));
        }
        messages::note_once(format!(
            "{name}: begins like {format} data and is read as it is; if it is {format}, add \
             --unpack {format}"
        ));
        Ok(())
    }
}

/// The byte order mark that some programs write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One input, read as uncompressed bytes.
pub struct Input {
    name: String,
    len_bytes: Option<u64>,
    consumed_bytes: Arc<AtomicU64>,
    packing: Packing,
    // True if the next bytes are the start of a text, which may begin with a byte order mark.
    is_text_start: bool,
    reader: Box<dyn Read + Send>,
}

impl Input {
    /// Opens `path`, or standard input if `path` is `-`.
    ///
    /// # Errors
    ///
    /// A message for a missing or unreadable file, or a directory.
    pub fn open(path: &Path, form: InputForm) -> Result<Self, Failure> {
        let name = name(path);
        if is_stdin(path) {
            standard::check_input()?;
            return Self::of(name, None, io::stdin(), form);
        }
        let file = File::open(path).map_err(|error| Failure::io(&name, &error))?;
        let metadata = file.metadata().map_err(|error| Failure::io(&name, &error))?;
        if metadata.is_dir() {
            return Err(Failure::new(format!("{name}: is a directory, not a file of records")));
        }
        let len_bytes = metadata.is_file().then_some(metadata.len());
        Self::of(name, len_bytes, file, form)
    }

    /// Reads the first bytes of `reader`. If the first bytes show a compressed format, decompresses
    /// the data.
    fn of(
        name: String,
        len_bytes: Option<u64>,
        reader: impl Read + Send + 'static,
        form: InputForm,
    ) -> Result<Self, Failure> {
        let consumed_bytes = Arc::new(AtomicU64::new(0));
        let mut reader = Counted { reader, bytes: Arc::clone(&consumed_bytes) };
        let mut head = [0; ZSTD_HEAD_BYTES];
        let mut filled = 0;
        // A terminal or `tail -f` may send a short line and wait for the result. Therefore, this
        // loop reads no more bytes than the detection of the format needs.
        while Packing::may_become_known(&head[..filled]) {
            // Four bytes identify most formats.
            let until = if filled < 4 { 4 } else { MARK_BYTES };
            match read_some(&mut reader, &mut head[filled..until]) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) => return Err(Failure::io(&name, &error)),
            }
        }
        let packing = form.packing(&head[..filled]);
        form.check_plain(&name, &head[..filled])?;
        if packing != Packing::Plain && Packing::of(&head[..filled]) != packing {
            let format = packing.name();
            return Err(Failure::new(format!(
                "{name}: is not {format} data: leave out --unpack {format}"
            )));
        }
        if packing == Packing::Zstd {
            // The frame header contains the size of the memory that the frame needs.
            filled += read_up_to(&mut reader, &mut head[filled..])
                .map_err(|error| Failure::io(&name, &error))?;
        }
        let whole = Cursor::new(head).take(filled as u64).chain(reader);
        let reader = unpack(packing, whole).map_err(|error| Failure::io(&name, &error))?;
        let is_text_start = form.is_text;
        Ok(Self { name, len_bytes, consumed_bytes, packing, is_text_start, reader })
    }

    /// Decompresses on a second thread. For uncompressed data, the method does nothing, because a
    /// second thread would save no time.
    #[must_use]
    pub fn unpacked_ahead(mut self) -> Self {
        if self.is_packed() {
            let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(ReadAhead::new(reader));
        }
        self
    }

    /// Returns the path as the user typed the path, or `standard input`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size of the file on disk, or `None` if the input is not a regular file.
    pub fn len_bytes(&self) -> Option<u64> {
        self.len_bytes
    }

    /// Returns the number of bytes read from the file, before decompression.
    pub fn consumed_bytes(&self) -> u64 {
        // Relaxed ordering is enough, because the number is only displayed and publishes no other
        // data.
        self.consumed_bytes.load(Ordering::Relaxed)
    }

    /// Tests whether the input is compressed.
    pub fn is_packed(&self) -> bool {
        self.packing != Packing::Plain
    }

    /// Converts an error of reading this input to a failure.
    pub fn failure(&self, error: &io::Error) -> Failure {
        Failure::Message(format!("{}: {}", self.name, exit::plain(error)))
    }

    /// Converts a decoder's error to a message that names the format and the position.
    fn explain(&self, error: io::Error) -> io::Error {
        if self.packing == Packing::Plain || error.kind() == io::ErrorKind::Interrupted {
            return error;
        }
        if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<NotUnpacked>) {
            return error;
        }
        if is_want_of_memory(&error) {
            return too_much_memory(self.packing, None);
        }
        let format = self.packing.name();
        let at = self.consumed_bytes();
        let text = match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                format!("the {format} data is cut short after {at} bytes; fetch the file again")
            }
            _ => format!("broken {format} data within the first {at} bytes ({error})"),
        };
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut len = self.reader.read(buffer).map_err(|error| self.explain(error))?;
        if !self.is_text_start || len == 0 {
            return Ok(len);
        }
        self.is_text_start = false;
        // A pipe may deliver the byte order mark in several parts.
        while len < buffer.len().min(BYTE_ORDER_MARK.len())
            && BYTE_ORDER_MARK.starts_with(&buffer[..len])
        {
            match read_some(&mut self.reader, &mut buffer[len..]) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) => return Err(self.explain(error)),
            }
        }
        if !buffer[..len].starts_with(BYTE_ORDER_MARK) {
            return Ok(len);
        }
        buffer.copy_within(BYTE_ORDER_MARK.len()..len, 0);
        match len - BYTE_ORDER_MARK.len() {
            0 => self.read(buffer),
            len => Ok(len),
        }
    }
}

/// Tests whether a decoder failed because the data need more memory than allowed.
fn is_want_of_memory(error: &io::Error) -> bool {
    // The errors of zstd have no kind, so the function searches their text.
    error.kind() == io::ErrorKind::OutOfMemory || error.to_string().contains("too much memory")
}

/// A reader that counts the bytes it returns.
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

/// Returns the inputs of a command: its files, or standard input if the user gave no file.
///
/// Opens every file once, to report a missing file before any work.
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

/// Works like [`checked`], for a command whose result is useful without some of its inputs. Reports
/// and skips unreadable inputs. If an input was skipped, the exit status is 2.
///
/// If one of `outputs` is a file, every input must be readable, because an incomplete result must
/// not replace the old file.
///
/// # Errors
///
/// The errors of [`checked`] if one of `outputs` is a file. If none of `outputs` is a file, a
/// message if all inputs are missing, unreadable or directories.
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
    // Opening a named pipe would block until a writer opens the pipe.
    if metadata.is_file() {
        File::open(path).map_err(|error| failure(&error))?;
    }
    Ok(())
}

/// Returns the total size of all inputs on disk, or `None` if an input is not a regular file.
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

    /// The text of the numbers from 1 to 4000, compressed as several xz streams.
    const XZ: &[u8] = include_bytes!("../../tests/packed/numbers.xz");

    pub(crate) const TEXT: InputForm = InputForm { unpack: None, is_text: true };

    fn read(bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let mut input = Input::of("test".into(), None, Cursor::new(bytes), TEXT)?;
        let mut out = Vec::new();
        let read = input.read_to_end(&mut out);
        read.map(|_| out).map_err(|error| input.failure(&error))
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
        let frame = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        for pack in [&gzip as &dyn Fn(&[u8]) -> Vec<u8>, &frame] {
            let all = [pack(b"one\n"), pack(b""), pack(b"two\n")].concat();
            assert_eq!(read(all).unwrap(), b"one\ntwo\n");
        }
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &frame(b"x")].concat();
        assert_eq!(read(skippable).unwrap(), b"x");
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn only_zeros_and_more_of_the_same_may_follow_packed_data() {
        let numbers: String = (1..=4000).map(|number| format!("{number}\n")).collect();
        for (name, packed, text) in [
            ("gzip", gzip(b"one\n"), "one\n"),
            ("zstd", zstd::encode_all(&b"one\n"[..], 1).unwrap(), "one\n"),
            ("bzip2", bzip2(b"one\n"), "one\n"),
            ("xz", XZ.to_vec(), &numbers),
        ] {
            for zeros in [0, 1, 4, 1000] {
                let zeros = vec![0; zeros];
                let twice = [&packed[..], &zeros, &packed, &zeros].concat();
                assert_eq!(read(twice).unwrap(), text.repeat(2).as_bytes(), "{name}");
                for rest in [&b"x"[..], b"more text\n", b"\x1f", b"\x28\xb5"] {
                    let result = read([&packed[..], &zeros, rest].concat());
                    let Err(Failure::Message(line)) = result else { panic!("{name}, {rest:?}") };
                    assert!(line.contains(name), "{line}");
                }
            }
        }
        let other = [&gzip(b"one\n")[..], XZ].concat();
        assert!(read(other).is_err());
    }

    #[test]
    fn a_byte_order_mark_before_text_is_skipped() {
        let text = b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n";
        for bytes in [text.to_vec(), gzip(text), bzip2(text)] {
            assert_eq!(read(bytes).unwrap(), &text[3..]);
        }
        assert_eq!(read(b"\xef\xbb\xbf".to_vec()).unwrap(), b"");
        assert_eq!(read(b"\xef\xbb".to_vec()).unwrap(), b"\xef\xbb");
        assert_eq!(read(b"\xef\xbba".to_vec()).unwrap(), b"\xef\xbba");
        // This reader returns single bytes, like a slow pipe.
        struct Bytes(Vec<u8>);
        impl Read for Bytes {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let len = 1.min(buffer.len()).min(self.0.len());
                buffer[..len].copy_from_slice(&self.0[..len]);
                self.0.drain(..len);
                Ok(len)
            }
        }
        let mut input = Input::of("test".into(), None, Bytes(text.to_vec()), TEXT).unwrap();
        let mut out = Vec::new();
        input.read_to_end(&mut out).unwrap();
        assert_eq!(out, &text[3..]);
    }

    #[test]
    fn binary_data_are_decompressed_only_on_request() {
        let packed = gzip(b"text");
        let open = |name: &str, unpack| {
            let form = InputForm { unpack, is_text: false };
            let mut input = Input::of(name.into(), None, Cursor::new(packed.clone()), form)?;
            let mut out = Vec::new();
            input.read_to_end(&mut out).map_err(|error| input.failure(&error))?;
            Ok::<_, Failure>(out)
        };
        assert_eq!(open("a.bin", None).unwrap(), packed);
        assert_eq!(open("a.gz", Some(Unpack::No)).unwrap(), packed);
        assert_eq!(open("a.gz", Some(Unpack::Gzip)).unwrap(), b"text");
        let Err(Failure::Message(line)) = open("a.gz", Some(Unpack::Xz)) else { panic!() };
        assert_eq!(line, "a.gz: is not xz data: leave out --unpack xz");
        let Err(Failure::Message(line)) = open("a.gz", None) else { panic!() };
        assert!(line.contains("--unpack gzip"), "{line}");
    }

    #[test]
    fn a_window_above_the_limit_is_named_with_the_way_out() {
        // This frame header requests a window of 1 GiB.
        let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3][..], &[0; 20]].concat();
        let Err(Failure::Message(line)) = read(frame) else { panic!() };
        assert!(line.contains("the limit is 128 MiB") && line.contains("--long=31"), "{line}");
    }

    #[test]
    fn packed_data_cut_anywhere_is_an_error() {
        let text = b"a line of text\n".repeat(20);
        for packed in [gzip(&text), zstd::encode_all(&text[..], 3).unwrap()] {
            for len in 5..packed.len() {
                let error = read(packed[..len].to_vec()).expect_err("cut");
                let Failure::Message(line) = error else { panic!() };
                assert!(line.contains("data"), "{line}");
            }
        }
    }

    #[test]
    fn missing_files_and_folders_are_known_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join("missing")] {
            assert!(checked(std::slice::from_ref(&path)).is_err());
            assert!(Input::open(&path, TEXT).is_err());
        }
        assert_eq!(checked(&[]).unwrap(), [PathBuf::from("-")]);
    }
}
