//! Decompresses the parts of an ORC file. A part of an ORC file is a sequence of chunks. Each chunk
//! has a header of three bytes.

use std::borrow::Cow;

use flate2::{Decompress, FlushDecompress, Status};

use crate::filters::orc_file::error::OrcError;

/// The compression of an ORC file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Zlib,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    fn of(kind: u64) -> Result<Self, OrcError> {
        let refused = |name: &str| {
            Err(OrcError::Refused(format!(
                "its compression is {name}, which tamis does not read: write the file with ZLIB, SNAPPY, \
                 LZ4, ZSTD or NONE"
            )))
        };
        match kind {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Zlib),
            2 => Ok(Compression::Snappy),
            3 => refused("LZO"),
            4 => Ok(Compression::Lz4),
            5 => Ok(Compression::Zstd),
            6 => refused("BROTLI"),
            other => refused(&format!("number {other}")),
        }
    }
}

/// The maximum size of a chunk, in bytes. The length field in a header has 23 bits.
const MOST_CHUNK_BYTES: u64 = 1 << 23;
/// The maximum total size of all parts of a file, in bytes. A small file may expand to terabytes,
/// and a damaged footer may refer to the same part many times.
const MOST_BYTES: u64 = 1 << 30;
/// The bytes that each chunk counts in addition to its content. Without a cost per chunk, a part
/// could have millions of empty chunks.
const CHUNK_COST_BYTES: usize = 1 << 10;

/// Decompresses the parts of one file.
pub struct Decompressor {
    compression: Compression,
    /// The maximum decompressed size of a chunk, in bytes.
    chunk_bytes: usize,
    /// The number of bytes that the remaining parts of the file may have together.
    left: u64,
    /// The bytes of the current chunk.
    chunk: Vec<u8>,
}

impl Decompressor {
    /// Creates the decompressor of a file from the fields of its PostScript.
    ///
    /// # Errors
    ///
    /// [`OrcError`] for an unsupported compression, or for chunks larger than the maximum of ORC.
    pub fn new(kind: u64, chunk_bytes: u64) -> Result<Self, OrcError> {
        let compression = Compression::of(kind)?;
        if compression != Compression::None && !(1..=MOST_CHUNK_BYTES).contains(&chunk_bytes) {
            return Err(OrcError::Damaged("its compression chunks are not of 1 byte to 8 MiB"));
        }
        let chunk_bytes = if compression == Compression::None { 0 } else { chunk_bytes as usize };
        Ok(Self { compression, chunk_bytes, left: MOST_BYTES, chunk: Vec::new() })
    }

    /// Decompresses a part of at most `most_bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`OrcError`] for damaged chunks, and if the part or all parts together are too large.
    pub fn part<'a>(
        &mut self,
        bytes: &'a [u8],
        most_bytes: u64,
    ) -> Result<Cow<'a, [u8]>, OrcError> {
        if self.compression == Compression::None {
            self.take(bytes.len(), most_bytes, 0)?;
            return Ok(Cow::Borrowed(bytes));
        }
        let (mut rest, mut out) = (bytes, Vec::new());
        while !rest.is_empty() {
            let cut = || OrcError::Damaged("a compression chunk is longer than its part");
            let (&[low, middle, high], after) = rest.split_first_chunk().ok_or_else(cut)?;
            let header = u32::from_le_bytes([low, middle, high, 0]);
            let (is_original, len) = (header & 1 == 1, header >> 1);
            let (chunk, after) = after.split_at_checked(len as usize).ok_or_else(cut)?;
            rest = after;
            self.take(CHUNK_COST_BYTES, u64::MAX, 0)?;
            let chunk = if is_original { chunk } else { self.decompress(chunk)? };
            let (len, so_far) = (chunk.len(), out.len());
            out.extend_from_slice(chunk);
            self.take(len, most_bytes, so_far)?;
        }
        Ok(Cow::Owned(out))
    }

    /// Counts the next `len` bytes of a part that already has `so_far` bytes.
    fn take(&mut self, len: usize, most_bytes: u64, so_far: usize) -> Result<(), OrcError> {
        let (len, so_far) = (len as u64, so_far as u64);
        let left = self.left.checked_sub(len).filter(|_| so_far + len <= most_bytes);
        self.left = left.ok_or_else(|| {
            let most = (most_bytes.min(MOST_BYTES) >> 20).max(1);
            OrcError::Refused(format!(
                "its footers or filters need more than {most} MiB, which tamis does not read"
            ))
        })?;
        Ok(())
    }

    fn decompress(&mut self, bytes: &[u8]) -> Result<&[u8], OrcError> {
        const DAMAGED: OrcError =
            OrcError::Damaged("a compression chunk cannot be decompressed to its size");
        self.chunk.resize(self.chunk_bytes, 0);
        let len = match self.compression {
            Compression::None => unreachable!("has no chunks"),
            Compression::Zlib => {
                let mut inflate = Decompress::new(false);
                match inflate.decompress(bytes, &mut self.chunk, FlushDecompress::Finish) {
                    Ok(Status::StreamEnd) => inflate.total_out() as usize,
                    _ => return Err(DAMAGED),
                }
            }
            Compression::Snappy => {
                // The decoder rejects output that does not fit in the chunk.
                snap::raw::Decoder::new().decompress(bytes, &mut self.chunk).map_err(|_| DAMAGED)?
            }
            Compression::Lz4 => {
                lz4_flex::block::decompress_into(bytes, &mut self.chunk).map_err(|_| DAMAGED)?
            }
            Compression::Zstd => {
                zstd::bulk::decompress_to_buffer(bytes, &mut self.chunk[..]).map_err(|_| DAMAGED)?
            }
        };
        Ok(&self.chunk[..len])
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::write::DeflateEncoder;

    use super::*;

    /// Returns a chunk with its header.
    fn chunk(bytes: &[u8], is_original: bool) -> Vec<u8> {
        let header = (bytes.len() as u32) << 1 | u32::from(is_original);
        [&header.to_le_bytes()[..3], bytes].concat()
    }

    fn compressed(kind: u64, bytes: &[u8]) -> Vec<u8> {
        match kind {
            1 => {
                let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            2 => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            4 => lz4_flex::block::compress(bytes),
            _ => zstd::bulk::compress(bytes, 3).unwrap(),
        }
    }

    #[test]
    fn chunks_of_every_compression_are_joined() {
        for kind in [1, 2, 4, 5] {
            let chunks = [
                chunk(&compressed(kind, &[7; 1000]), false),
                chunk(b"as it is", true),
                chunk(&compressed(kind, b""), false),
                chunk(&compressed(kind, &[8; 10]), false),
            ];
            let ends = [1, 2, 3].map(|count| chunks[..count].concat().len());
            let part = chunks.concat();
            let expected = [&[7; 1000][..], b"as it is", &[8; 10]].concat();
            let decompressed = |chunk_bytes, most_bytes| {
                Decompressor::new(kind, chunk_bytes)?.part(&part, most_bytes).map(Cow::into_owned)
            };
            assert_eq!(decompressed(1000, 2000).unwrap(), expected, "{kind}");
            assert_eq!(decompressed(1000, 1018).unwrap(), expected, "{kind}");
            assert!(decompressed(999, 2000).is_err(), "{kind}: a chunk larger than promised");
            let error = decompressed(1000, 1017).unwrap_err().to_string();
            assert!(error.contains("more than 1 MiB"), "{error}");
            for len in 1..part.len() {
                let result = Decompressor::new(kind, 1000).unwrap().part(&part[..len], 2000);
                assert_eq!(result.is_ok(), ends.contains(&len), "{kind} {len}");
            }
        }
    }

    #[test]
    fn a_bomb_is_refused_before_it_fills_the_memory() {
        // Each compressed chunk has some kilobytes, and expands to 8 MiB.
        let bomb = chunk(&compressed(1, &vec![0; MOST_CHUNK_BYTES as usize]), false).repeat(9);
        let mut decompressor = Decompressor::new(1, MOST_CHUNK_BYTES).unwrap();
        let error = decompressor.part(&bomb, 64 << 20).unwrap_err().to_string();
        assert!(error.contains("more than 64 MiB"), "{error}");
        let part = vec![0; 1 << 20];
        let mut none = Decompressor::new(0, 0).unwrap();
        for _ in 0..MOST_BYTES >> 20 {
            none.part(&part, MOST_BYTES).unwrap();
        }
        let error = none.part(&part, MOST_BYTES).unwrap_err().to_string();
        assert!(error.contains("more than 1024 MiB"), "{error}");
    }

    #[test]
    fn other_compressions_are_refused_by_name() {
        for (kind, name) in [(3, "LZO"), (6, "BROTLI"), (7, "number 7")] {
            let error = Decompressor::new(kind, 1).map(drop).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(Decompressor::new(1, 0).is_err());
        assert!(Decompressor::new(1, MOST_CHUNK_BYTES + 1).is_err());
    }
}
