//! The parts of a Tamis file, and their checks.

use tamis::Plan;

use crate::encoding::header::Header;
use crate::errors::{DecodeError, DecodeErrorKind};

/// The number of bytes after the words, which are the checksum of the words.
pub(super) const TRAILER_BYTES: u64 = size_of::<u64>() as u64;

/// The number of bytes of words that are read or written at once. A chunk of 256 KiB stays in the CPU cache until its
/// checksum is computed.
pub(super) const CHUNK_BYTES: usize = 256 << 10;

/// The parts of a whole file.
pub(super) struct Parts<'a> {
    pub(super) header: Header,
    pub(super) words: &'a [u8],
    pub(super) trailer: [u8; 8],
}

impl<'a> Parts<'a> {
    pub(super) fn split(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = Header::decode(bytes)?;
        let (len, found) = (header.len as u64, bytes.len() as u64);
        let words_bytes = header.plan.bytes();
        let expected = len + words_bytes + TRAILER_BYTES;
        if found < expected {
            let kind = DecodeErrorKind::Truncated { expected, found };
            return Err(DecodeError { field: "words", at: len, kind });
        }
        if found > expected {
            return Err(DecodeError::too_long("end", expected));
        }
        let rest = &bytes[header.len..];
        let (words, trailer) = rest.split_at(rest.len() - TRAILER_BYTES as usize);
        let trailer = trailer.try_into().expect("the trailer has eight bytes");
        Ok(Self { header, words, trailer })
    }
}

/// Checks that the last word has no set bit after the last bit of the plan.
pub(super) fn check_end(words: &[u64], plan: &Plan, end: u64) -> Result<(), DecodeError> {
    let used = plan.bits() % 64;
    match words.last() {
        Some(last) if used > 0 && last >> used != 0 => {
            Err(DecodeError { field: "bits", at: end - 8, kind: DecodeErrorKind::NotZero })
        }
        _ => Ok(()),
    }
}

pub(super) fn check_trailer(computed: u64, trailer: [u8; 8], at: u64) -> Result<(), DecodeError> {
    if u64::from_le_bytes(trailer) == computed {
        Ok(())
    } else {
        Err(DecodeError { field: "words checksum", at, kind: DecodeErrorKind::Checksum })
    }
}
