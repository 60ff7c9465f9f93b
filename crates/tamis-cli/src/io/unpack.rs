//! Decompresses data within a memory limit. [`Packing`] lists the formats.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;

use crate::arguments::byte_size::ByteSize;
use crate::io::packing::{DECODER_BYTES, Packing, zstd_bytes};

/// Memory of the program besides its sets and filters: its code and its read and write buffers.
pub const OWN_BYTES: u64 = 8 << 20;

/// Bytes of compressed data per read.
pub const PACKED_BLOCK_BYTES: usize = 256 << 10;

/// Decompresses `packed`.
///
/// # Errors
///
/// An error if memory is exhausted.
pub fn unpack(
    packing: Packing,
    packed: impl Read + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    if packing == Packing::Plain {
        return Ok(Box::new(packed));
    }
    let packed = BufReader::with_capacity(PACKED_BLOCK_BYTES, packed);
    Ok(Box::new(Members::new(packed, packing)?))
}

/// Memory reserved for decompression, in bytes.
static RESERVED_BYTES: AtomicU64 = AtomicU64::new(0);

/// True if a decoder may use only the reserved memory.
static IS_LIMITED: AtomicBool = AtomicBool::new(false);

/// A decoder may use the memory of `--memory` divided by `PARTS`. `PARTS` is 0 if the command has
/// no option `--memory`.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// The largest window that the library of zstd accepts, as a power of two.
const MOST_WINDOW_LOG: u32 = if cfg!(target_pointer_width = "64") { 31 } else { 30 };

/// A decoder that needs at most this many bytes is not limited.
const LITTLE_BYTES: u64 = 512 << 10;

/// The memory limit of a decoder without `--memory`, in bytes. The tools of the formats need as
/// much memory as this limit at their highest compression levels. A hostile header cannot request
/// memory beyond the limit.
const MOST_BYTES: u64 = (128 << 20) + DECODER_BYTES;

/// Returns the memory limit of a decoder.
fn most_bytes() -> u64 {
    if is_limited() { reserved_bytes().max(LITTLE_BYTES) } else { MOST_BYTES }
}

/// Tests whether `--memory` limits the decoders.
pub fn is_limited() -> bool {
    IS_LIMITED.load(Ordering::Relaxed)
}

/// An error with a complete message. The type `NotUnpacked` exists because the messages of the
/// decoders are incomplete.
#[derive(Debug)]
pub struct NotUnpacked(String);

impl fmt::Display for NotUnpacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotUnpacked {}

/// Returns the error for data whose decompression needs more memory than allowed. `needed_bytes` is
/// the needed memory, if known.
pub fn too_much_memory(packing: Packing, needed_bytes: Option<u64>) -> io::Error {
    let needed = needed_bytes.map_or_else(
        || "more memory than allowed".to_owned(),
        |bytes| format!("{} of memory", ByteSize { bytes }),
    );
    let parts = PARTS.load(Ordering::Relaxed);
    let enough = needed_bytes.map_or_else(
        || "a larger --memory".to_owned(),
        |bytes| {
            let enough = bytes.saturating_mul(parts).saturating_add(OWN_BYTES);
            format!("--memory {}M", enough.div_ceil(1 << 20))
        },
    );
    let limit = match (parts, is_limited()) {
        (0, _) => "the limit is 128 MiB: ".to_owned(),
        (_, false) => format!("the limit is 128 MiB: use {enough} and the name of the file, or "),
        (_, true) => format!("--memory is too little: use {enough} and the name of the file, or "),
    };
    let (format, tool) = match packing {
        Packing::Zstd => ("zstd", "zstd -dc --long=31"),
        packing => (packing.name(), "xz -dc"),
    };
    let text = format!(
        "decompressing the {format} data takes {needed}, and {limit}decompress them with '{tool} FILE | \
         tamis ...'"
    );
    io::Error::new(io::ErrorKind::OutOfMemory, NotUnpacked(text))
}

/// Returns the memory reserved for decompression, in bytes.
pub fn reserved_bytes() -> u64 {
    RESERVED_BYTES.load(Ordering::Relaxed)
}

/// Records that the command has the option `--memory`. A decoder may use the memory of `--memory`
/// divided by `parts`.
pub fn set_parts(parts: u64) {
    PARTS.store(parts, Ordering::Relaxed);
}

/// Limits the memory of all decoders to `bytes`. Data whose decompression needs more memory
/// than `bytes` are rejected.
pub fn limit_memory(bytes: u64) {
    // Relaxed ordering is enough, because the values are set before any input is opened.
    if bytes > LITTLE_BYTES {
        RESERVED_BYTES.fetch_max(bytes, Ordering::Relaxed);
    }
    IS_LIMITED.store(true, Ordering::Relaxed);
}

/// The members of a gzip file, the streams of a bzip2 or xz file or the frames of a zstd file, in
/// order.
struct Members<R: BufRead> {
    member: Option<Member<R>>,
    packing: Packing,
}

enum Member<R: BufRead> {
    // The decoders are boxed, because each decoder has hundreds of bytes of state.
    Gzip(Box<GzDecoder<R>>),
    Bzip2(Box<BzDecoder<R>>),
    Zstd(Box<zstd::Decoder<'static, R>>),
    Xz(Box<XzReader<R>>),
}

impl<R: BufRead> Members<R> {
    fn new(packed: R, packing: Packing) -> io::Result<Self> {
        let mut all = Self { member: None, packing };
        all.start(packed)?;
        Ok(all)
    }

    fn start(&mut self, mut packed: R) -> io::Result<()> {
        self.member = Some(match self.packing {
            Packing::Bzip2 => Member::Bzip2(Box::new(BzDecoder::new(packed))),
            Packing::Zstd => {
                let most_bytes = most_bytes().saturating_sub(DECODER_BYTES).max(LITTLE_BYTES);
                let most_log = match zstd_bytes(packed.fill_buf()?) {
                    Some(bytes) if bytes > most_bytes => {
                        return Err(too_much_memory(
                            self.packing,
                            Some(bytes.saturating_add(DECODER_BYTES)),
                        ));
                    }
                    Some(_) => MOST_WINDOW_LOG,
                    // The frame is skippable, or its header is not read yet.
                    None => most_bytes.ilog2().clamp(10, MOST_WINDOW_LOG),
                };
                let mut decoder = zstd::Decoder::with_buffer(packed)?.single_frame();
                decoder.window_log_max(most_log)?;
                Member::Zstd(Box::new(decoder))
            }
            Packing::Xz => {
                let most_kib = u32::try_from(most_bytes() >> 10).unwrap_or(u32::MAX);
                Member::Xz(Box::new(XzReader::new_mem_limit(packed, false, most_kib)))
            }
            Packing::Gzip | Packing::Plain => Member::Gzip(Box::new(GzDecoder::new(packed))),
        });
        Ok(())
    }

    /// Starts the next member, if there is a next member.
    fn start_next(&mut self) -> io::Result<()> {
        let mut packed = match self.member.take() {
            Some(Member::Gzip(decoder)) => decoder.into_inner(),
            Some(Member::Bzip2(decoder)) => decoder.into_inner(),
            Some(Member::Zstd(decoder)) => decoder.finish(),
            Some(Member::Xz(decoder)) => decoder.into_inner(),
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
                // Zeros after the data are skipped, because tapes and disks pad data with zeros.
                packed.consume(zeros);
            } else if Packing::of(head) == self.packing || Packing::may_become_known(head) {
                packed.consume(zeros);
                return self.start(packed);
            } else {
                let format = self.packing.name();
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    NotUnpacked(format!(
                        "bytes that are not {format} follow the {format} data, and cannot be read: \
                         remove them, or decompress the part before them first"
                    )),
                ));
            }
        }
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
                Some(Member::Xz(decoder)) => decoder.read(buffer)?,
            };
            if len > 0 || buffer.is_empty() {
                return Ok(len);
            }
            self.start_next()?;
        }
    }
}
