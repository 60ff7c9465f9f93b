//! Reads a Tamis file from a stream.

use std::io::{self, Read};

use tamis::{Bitmap, BitsMut as _, Plan};
use xxhash_rust::xxh3::Xxh3;

use crate::encoding::header::{BITS_AT, FIXED_BYTES, Header, measure};
use crate::errors::{DecodeError, DecodeErrorKind, ReadError};
use crate::formats::tamis_file::parts::{CHUNK_BYTES, TRAILER_BYTES, check_end, check_trailer};

/// Reads a header and the words after the header. See [`TamisFile::read_from`](crate::TamisFile::read_from).
pub(super) fn read(mut stream: impl Read, max_bytes: u64) -> Result<(Header, Bitmap), ReadError> {
    let header = read_header(&mut stream)?;
    let bytes = header.plan.bytes();
    let error = |kind| DecodeError::new("bits", BITS_AT, kind);
    if bytes > max_bytes {
        return Err(error(DecodeErrorKind::TooLarge { bytes, max_bytes }).into());
    }
    let mut bits = Bitmap::zeroed(header.plan.bits())
        .map_err(|memory| error(DecodeErrorKind::Memory(memory)))?;
    let words = bits.words_mut();
    let mut checksum = Xxh3::with_seed(header.checksum);
    let mut at = header.len as u64;
    for chunk in words.chunks_mut(CHUNK_BYTES / 8) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(chunk);
        let wanted = bytes.len();
        let found = fill(&mut stream, bytes)?;
        if found < wanted {
            return Err(truncated("words", header.len, at, &header.plan, found).into());
        }
        checksum.update(bytes);
        at += wanted as u64;
        for word in chunk {
            *word = u64::from_le(*word);
        }
    }
    check_end(words, &header.plan, at)?;
    let mut trailer = [0; 8];
    let found = fill(&mut stream, &mut trailer)?;
    if found < trailer.len() {
        return Err(truncated("words checksum", header.len, at, &header.plan, found).into());
    }
    check_trailer(checksum.digest(), trailer, at)?;
    if fill(&mut stream, &mut [0])? > 0 {
        return Err(DecodeError::too_long("end", at + TRAILER_BYTES).into());
    }
    Ok((header, bits))
}

/// Reads a header: first the part that states the length of the header, then the remaining bytes of the header.
fn read_header(stream: &mut impl Read) -> Result<Header, ReadError> {
    let mut bytes = vec![0; FIXED_BYTES];
    let found = fill(stream, &mut bytes)?;
    let len = measure(&bytes[..found])?;
    bytes.resize(len, 0);
    let more = fill(stream, &mut bytes[FIXED_BYTES..])?;
    Ok(Header::decode(&bytes[..FIXED_BYTES + more])?)
}

/// Reads until `bytes` is full or the stream ends. Returns the number of bytes that were read.
fn fill(stream: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn truncated(
    field: &'static str,
    header_bytes: usize,
    at: u64,
    plan: &Plan,
    found: usize,
) -> DecodeError {
    let expected = header_bytes as u64 + plan.bytes() + TRAILER_BYTES;
    let found = at + found as u64;
    DecodeError { field, at, kind: DecodeErrorKind::Truncated { expected, found } }
}
