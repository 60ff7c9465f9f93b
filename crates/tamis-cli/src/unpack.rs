//! Detects and decompresses compressed data, within a memory limit.
//!
//! | format | begins with | may follow |
//! | --- | --- | --- |
//! | gzip | `1f 8b` | any number of members, zeros, bytes that are ignored with a note |
//! | bzip2 | `BZh1` to `BZh9`, then the mark of a block or of the end | any number of streams, as for gzip |
//! | xz | `fd 7zXZ 00` | any number of streams, zeros |
//! | zstd | `28 b5 2f fd`, or a skippable frame | any number of frames, as for gzip |

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;

use crate::input::{is_stdin, read_some};

/// Bytes of compressed data per read.
pub const PACKED_BLOCK_BYTES: usize = 256 << 10;

/// The compression of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// No compression.
    Plain,
    /// gzip, with Deflate.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz, not the older lzma.
    Xz,
    /// bzip2.
    Bzip2,
}

/// Length of the longest magic bytes that identify a format.
pub const MARK_BYTES: usize = 10;

/// The magic bytes of each format.
const MARKS: [(&[RangeInclusive<u8>], Packing); 6] = [
    (&[0x1f..=0x1f, 0x8b..=0x8b], Packing::Gzip),
    (&[0x28..=0x28, 0xb5..=0xb5, 0x2f..=0x2f, 0xfd..=0xfd], Packing::Zstd),
    // A zstd stream may begin with a skippable frame.
    (&[0x50..=0x5f, 0x2a..=0x2a, 0x4d..=0x4d, 0x18..=0x18], Packing::Zstd),
    (&[0xfd..=0xfd, b'7'..=b'7', b'z'..=b'z', b'X'..=b'X', b'Z'..=b'Z', 0..=0], Packing::Xz),
    // The first three bytes could also begin a line of text. So the next six bytes are checked too:
    // the decimal digits of π at the start of a block, or those of √π at the end of the stream.
    (&bzip2([0x31, 0x41, 0x59, 0x26, 0x53, 0x59]), Packing::Bzip2),
    (&bzip2([0x17, 0x72, 0x45, 0x38, 0x50, 0x90]), Packing::Bzip2),
];

const fn bzip2([a, b, c, d, e, f]: [u8; 6]) -> [RangeInclusive<u8>; MARK_BYTES] {
    [b'B'..=b'B', b'Z'..=b'Z', b'h'..=b'h', b'1'..=b'9', a..=a, b..=b, c..=c, d..=d, e..=e, f..=f]
}

impl Packing {
    /// Returns the compression of data that begin with `head`.
    pub fn of(head: &[u8]) -> Self {
        let is_of = |mark: &[RangeInclusive<u8>]| {
            head.len() >= mark.len() && mark.iter().zip(head).all(|(may, byte)| may.contains(byte))
        };
        MARKS.iter().find(|(mark, _)| is_of(mark)).map_or(Packing::Plain, |(_, packing)| *packing)
    }

    /// Tests whether `head` is a proper prefix of the magic bytes of a compressed format. More
    /// bytes are then needed to decide.
    pub fn may_become_known(head: &[u8]) -> bool {
        MARKS.iter().any(|(mark, _)| {
            head.len() < mark.len() && mark.iter().zip(head).all(|(may, byte)| may.contains(byte))
        })
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Xz => "xz",
            Packing::Bzip2 => "bzip2",
        }
    }

    /// Decompresses `packed`. `name` is the name of the input, for messages.
    ///
    /// # Errors
    ///
    /// An error if memory is exhausted.
    pub fn unpack(
        self,
        packed: impl Read + Send + 'static,
        name: &str,
    ) -> io::Result<Box<dyn Read + Send>> {
        if self == Packing::Plain {
            return Ok(Box::new(packed));
        }
        let packed = BufReader::with_capacity(PACKED_BLOCK_BYTES, packed);
        let most_bytes = most_bytes();
        Ok(match self {
            Packing::Plain => unreachable!("returned above"),
            Packing::Gzip | Packing::Bzip2 | Packing::Zstd => {
                Box::new(Members::new(packed, self, name)?)
            }
            Packing::Xz => {
                let most_kib = u32::try_from(most_bytes >> 10).unwrap_or(u32::MAX);
                Box::new(XzReader::new_mem_limit(packed, true, most_kib))
            }
        })
    }
}

/// Memory reserved for decompression, in bytes.
static ASIDE_BYTES: AtomicU64 = AtomicU64::new(0);

/// True if a decoder may use only the reserved memory.
static IS_LIMITED: AtomicBool = AtomicBool::new(false);

/// Upper bound for the memory of a decoder besides its window or dictionary.
const DECODER_BYTES: u64 = 1 << 20;

/// Memory needs up to this size are ignored.
const LITTLE_BYTES: u64 = 512 << 10;

/// Returns the memory limit of a decoder. Without `--memory`, the limit is the memory that the
/// formats' own tools use at their highest levels. A hostile header cannot request more.
fn most_bytes() -> u64 {
    if IS_LIMITED.load(Ordering::Relaxed) { aside().max(LITTLE_BYTES) } else { 128 << 20 }
}

/// Returns the memory reserved for decompression, in bytes.
pub fn aside() -> u64 {
    ASIDE_BYTES.load(Ordering::Relaxed)
}

/// Reserves memory for the decompression of `paths`, at most half of `max_bytes`. Data that need
/// more memory are rejected later.
pub fn set_aside(paths: &[PathBuf], max_bytes: u64) {
    /// Reserve for a pipe, whose data may be compressed.
    const PIPE_BYTES: u64 = 4 << 20;
    let of_path = |path: &PathBuf| {
        if is_stdin(path) || !path.is_file() {
            PIPE_BYTES.min(max_bytes / 16)
        } else {
            needed_bytes(path).unwrap_or(0).min(max_bytes / 2)
        }
    };
    let needed = paths.iter().map(of_path).max().unwrap_or(0);
    // Relaxed: the values are set before any input is opened.
    if needed > LITTLE_BYTES {
        ASIDE_BYTES.fetch_max(needed, Ordering::Relaxed);
    }
    IS_LIMITED.store(true, Ordering::Relaxed);
}

/// Reads the memory needed for decompression from the start of a file.
fn needed_bytes(path: &Path) -> Option<u64> {
    let mut head = [0; 64];
    let mut file = File::open(path).ok()?;
    let mut filled = 0;
    while filled < head.len() {
        match read_some(&mut file, &mut head[filled..]).ok()? {
            0 => break,
            len => filled += len,
        }
    }
    let head = &head[..filled];
    Some(match Packing::of(head) {
        Packing::Plain => 0,
        Packing::Gzip => 128 << 10,
        // A block has up to 900,000 bytes, and the decoder needs five bytes for each.
        Packing::Bzip2 => 5 << 20,
        Packing::Xz => xz_bytes(head).unwrap_or(8 << 20) + DECODER_BYTES,
        Packing::Zstd => zstd_bytes(head).unwrap_or(8 << 20) + DECODER_BYTES,
    })
}

/// Reads the dictionary size from the header of the first block of an xz stream.
fn xz_bytes(head: &[u8]) -> Option<u64> {
    // The stream header has 12 bytes. The block header follows: its size and flags, then up to two
    // optional sizes that no single-threaded tool writes, then the filters. A filter has an id, a
    // length and properties. LZMA2 (0x21) has one byte of properties.
    let block = head.get(12..)?;
    let at = block.windows(2).position(|pair| pair == [0x21, 1])?;
    let bits = u32::from(*block.get(at + 2)?);
    let mantissa = 2 | u64::from(bits & 1);
    Some(if bits >= 40 { u64::from(u32::MAX) } else { mantissa << (bits / 2 + 11) })
}

/// Reads the window size from the header of a zstd frame.
fn zstd_bytes(head: &[u8]) -> Option<u64> {
    if !head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return None;
    }
    let descriptor = *head.get(4)?;
    let is_single = descriptor & 0x20 != 0;
    if !is_single {
        let window = *head.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The window is the whole content. The content size follows the dictionary ID.
    let at = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let len = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut size = [0; 8];
    size[..len].copy_from_slice(head.get(at..at + len)?);
    Some(u64::from_le_bytes(size).min(128 << 20))
}

/// The members of a gzip file, the streams of a bzip2 file or the frames of a zstd file, in order.
struct Members<R: BufRead> {
    member: Option<Member<R>>,
    packing: Packing,
    name: String,
}

enum Member<R: BufRead> {
    // Boxed because the decoders have hundreds of bytes of state.
    Gzip(Box<GzDecoder<R>>),
    Bzip2(Box<BzDecoder<R>>),
    Zstd(Box<zstd::Decoder<'static, R>>),
}

impl<R: BufRead> Members<R> {
    fn new(packed: R, packing: Packing, name: &str) -> io::Result<Self> {
        let mut all = Self { member: None, packing, name: name.into() };
        all.start(packed)?;
        Ok(all)
    }

    fn start(&mut self, packed: R) -> io::Result<()> {
        self.member = Some(match self.packing {
            Packing::Bzip2 => Member::Bzip2(Box::new(BzDecoder::new(packed))),
            Packing::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(packed)?.single_frame();
                // The library accepts window logs from 10 to 27 here.
                let window_bytes = most_bytes().saturating_sub(DECODER_BYTES).max(LITTLE_BYTES);
                decoder.window_log_max(window_bytes.next_power_of_two().ilog2().clamp(10, 27))?;
                Member::Zstd(Box::new(decoder))
            }
            _ => Member::Gzip(Box::new(GzDecoder::new(packed))),
        });
        Ok(())
    }

    /// Starts the next member, if there is one.
    fn start_next(&mut self) -> io::Result<()> {
        let mut packed = match self.member.take() {
            Some(Member::Gzip(decoder)) => decoder.into_inner(),
            Some(Member::Bzip2(decoder)) => decoder.into_inner(),
            Some(Member::Zstd(decoder)) => decoder.finish(),
            None => return Ok(()),
        };
        loop {
            let rest = packed.fill_buf()?;
            let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
            let head = &rest[zeros..];
            if rest.is_empty() {
                return Ok(());
            }
            if head.is_empty() {
                // Tapes and disks pad data with zeros.
                packed.consume(zeros);
            } else if Packing::of(head) == self.packing || Packing::may_become_known(head) {
                packed.consume(zeros);
                return self.start(packed);
            } else {
                let (name, format) = (&self.name, self.packing.name());
                let note = format!(
                    "{name}: bytes that are no {format} follow the {format} data and are ignored"
                );
                note_once(note);
                return Ok(());
            }
        }
    }
}

/// Writes a note about an input once. An input may be read twice: to estimate its length, and to
/// process it.
fn note_once(text: String) {
    static NOTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !noted.contains(&text) {
        note!("{text}");
        noted.push(text);
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = match &mut self.member {
                None => return Ok(0),
                Some(Member::Gzip(decoder)) => decoder.read(buffer)?,
                Some(Member::Bzip2(decoder)) => decoder.read(buffer)?,
                Some(Member::Zstd(decoder)) => decoder.read(buffer)?,
            };
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            self.start_next()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_not_taken_for_packed_data() {
        for text in ["BZh9 is no bzip2", "BZh91AY&S", "P*M", "\u{fd}7zXZ", "", "a", "(\u{b5}/"] {
            assert_eq!(Packing::of(text.as_bytes()), Packing::Plain, "{text}");
        }
        assert!(!Packing::may_become_known(b"BZx") && !Packing::may_become_known(b"a"));
        assert!(Packing::may_become_known(b"") && Packing::may_become_known(b"BZh9"));
    }

    #[test]
    fn the_memory_of_a_decoder_is_read_from_the_header() {
        // Headers written by `xz -6`, `xz -0` and `zstd -19` (window 8 MiB), and by `zstd` for ten
        // bytes (a single segment).
        let xz =
            |bits| [&b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0\x21\x01"[..], &[bits, 0]].concat();
        assert_eq!(xz_bytes(&xz(0x16)), Some(8 << 20));
        assert_eq!(xz_bytes(&xz(0x0c)), Some(256 << 10));
        assert_eq!(zstd_bytes(&[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68]), Some(8 << 20));
        assert_eq!(zstd_bytes(&[0x28, 0xb5, 0x2f, 0xfd, 0x24, 10]), Some(10));
        assert_eq!(zstd_bytes(&[0x28, 0xb5]), None);
    }
}
