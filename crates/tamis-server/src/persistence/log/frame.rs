//! Frames: the units in which changes are appended to a log. The effect of a frame is atomic.
//!
//! ```text
//! | length: u64 | check of the length: u32 | checksum: u64 | records, `length` bytes |
//! ```
//!
//! The length has its own check: the XXH3-64 hash of its eight bytes, truncated to 32 bits. With a
//! valid length, the reader finds the next frame even if the records are damaged. The reader
//! allocates no memory for a damaged length.
//!
//! The checksum is the XXH3-64 hash of the records. The length check and the checksum use the same
//! seed. The seed is the position of the frame in the stream of all logs, XOR the secret of the log
//! (`header.rs`). Because the seed contains the position, a frame that was valid at another
//! position, such as in a recycled disk block, is invalid. A client does not know the secret, so a
//! client cannot choose bytes that form a valid frame.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::persistence::header::{FIELD_BYTES, field, parse_field};

/// The length of a frame header, in bytes.
pub(crate) const HEADER_BYTES: usize = 20;

/// Appends a frame. `seed` is the seed of the checks; `encode` appends the records of the frame.
pub(crate) fn append(out: &mut Vec<u8>, seed: u64, encode: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    encode(out);
    let (header, records) = out[start..].split_at_mut(HEADER_BYTES);
    let len = records.len() as u64;
    header[..12].copy_from_slice(&field(len, seed));
    header[12..].copy_from_slice(&xxh3_64_with_seed(records, seed).to_le_bytes());
}

/// Splits a frame off the front of `bytes`. Returns the records of the frame, and the length of the
/// frame including the header. Returns `None` if the frame is incomplete or damaged.
pub(crate) fn split(bytes: &[u8], seed: u64) -> Option<(&[u8], usize)> {
    let len = length(bytes, seed)?;
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let checksum = u64::from_le_bytes(header[12..].try_into().expect("eight bytes"));
    let records = rest.get(..usize::try_from(len).ok()?)?;
    let is_whole = len > 0 && xxh3_64_with_seed(records, seed) == checksum;
    is_whole.then_some((records, HEADER_BYTES + records.len()))
}

/// Returns the length of the records of the frame at the start of `bytes`. Returns `None` if the
/// check of the length is wrong.
pub(crate) fn length(bytes: &[u8], seed: u64) -> Option<u64> {
    parse_field(bytes.get(..FIELD_BYTES)?, seed)
}

/// Encodes a number with seven bits per byte, lowest bits first.
pub(crate) fn put_u64(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Decodes a number. Advances `bytes` past the number.
pub(crate) fn get_u64(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        number |= bits << shift;
        if bits << shift >> shift != bits {
            return None;
        }
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Encodes the length of `bytes`, and then `bytes`.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes a byte string that follows its length. Advances `bytes` past the byte string.
pub(crate) fn get_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(get_u64(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decoded_as_encoded() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_u64(&mut bytes, number);
            assert_eq!(get_u64(&mut &bytes[..]), Some(number));
            assert_eq!(get_u64(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(get_u64(&mut &[0xff; 10][..]), None);
    }

    #[test]
    fn a_flipped_bit_invalidates_a_frame() {
        let mut bytes = b"before".to_vec();
        append(&mut bytes, 99, |out| out.extend(b"records"));
        let frame = bytes[6..].to_vec();
        assert_eq!(split(&frame, 99), Some((&b"records"[..], frame.len())));
        assert_eq!(split(&frame, 98), None);
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(split(&flipped, 99), None, "bit {bit}");
        }
        for len in 0..frame.len() {
            assert_eq!(split(&frame[..len], 99), None);
        }
    }
}
