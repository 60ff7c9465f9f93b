//! Decompresses data within a memory limit. [`Packing`] lists the formats.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;

use crate::packing::{DECODER_BYTES, Packing};

/// Bytes of compressed data per read.
pub const PACKED_BLOCK_BYTES: usize = 256 << 10;

/// Decompresses `packed`. `name` is the name of the input, for messages.
///
/// # Errors
///
/// An error if memory is exhausted.
pub fn unpack(
    packing: Packing,
    packed: impl Read + Send + 'static,
    name: &str,
) -> io::Result<Box<dyn Read + Send>> {
    if packing == Packing::Plain {
        return Ok(Box::new(packed));
    }
    let packed = BufReader::with_capacity(PACKED_BLOCK_BYTES, packed);
    let most_bytes = most_bytes();
    Ok(match packing {
        Packing::Plain => unreachable!("returned above"),
        Packing::Gzip | Packing::Bzip2 | Packing::Zstd => {
            Box::new(Members::new(packed, packing, name)?)
        }
        Packing::Xz => {
            let most_kib = u32::try_from(most_bytes >> 10).unwrap_or(u32::MAX);
            Box::new(XzReader::new_mem_limit(packed, true, most_kib))
        }
    })
}

/// Memory reserved for decompression, in bytes.
static RESERVED_BYTES: AtomicU64 = AtomicU64::new(0);

/// True if a decoder may use only the reserved memory.
static IS_LIMITED: AtomicBool = AtomicBool::new(false);

/// A decoder that needs at most this many bytes is not limited.
const LITTLE_BYTES: u64 = 512 << 10;

/// Returns the memory limit of a decoder. Without `--memory`, the limit is the memory that the
/// formats' own tools use at their highest levels. A hostile header cannot request more.
fn most_bytes() -> u64 {
    if IS_LIMITED.load(Ordering::Relaxed) { reserved_bytes().max(LITTLE_BYTES) } else { 128 << 20 }
}

/// Returns the memory reserved for decompression, in bytes.
pub fn reserved_bytes() -> u64 {
    RESERVED_BYTES.load(Ordering::Relaxed)
}

/// Limits the memory of all decoders to `bytes`. Data that need more memory are rejected.
pub fn limit_memory(bytes: u64) {
    // Relaxed: the values are set before any input is opened.
    if bytes > LITTLE_BYTES {
        RESERVED_BYTES.fetch_max(bytes, Ordering::Relaxed);
    }
    IS_LIMITED.store(true, Ordering::Relaxed);
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
                    "{name}: the bytes after the {format} data are not {format} and are ignored"
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
