//! Frames: what is written to a log at once, with what shows that it is whole.
//!
//! ```text
//! | length: u32 | check of the length: u32 | checksum: u64 | records, of so many bytes |
//! ```
//!
//! The length has a check of its own, XXH3 of it cut to 32 bits, so that where the next frame begins is known even if the
//! records are damaged.
//!
//! The checksum is XXH3 of the records, seeded with the frame's position in the stream of all logs: a frame that was
//! whole elsewhere, such as in a recycled block of the disk, is not whole here.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before the records.
pub(super) const HEAD_BYTES: usize = 16;

/// Begins a frame: its head is filled in at its end.
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    start
}

/// Ends the frame that begins at `start` in `out`, and at `position` in the stream; false, and it is taken off, if it
/// is too long to have a head.
pub(super) fn end(out: &mut Vec<u8>, start: usize, position: u64) -> bool {
    let (head, records) = out[start..].split_at_mut(HEAD_BYTES);
    let Ok(len) = u32::try_from(records.len()) else {
        out.truncate(start);
        return false;
    };
    head[..4].copy_from_slice(&len.to_le_bytes());
    head[4..8].copy_from_slice(&check_of(len, position).to_le_bytes());
    head[8..].copy_from_slice(&xxh3_64_with_seed(records, position).to_le_bytes());
    true
}

/// Takes a frame off the front of some bytes: its records, and how long it is with its head. `None` if it is cut or
/// damaged.
pub(super) fn split(bytes: &[u8], position: u64) -> Option<(&[u8], usize)> {
    let len = length(bytes, position)?;
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let checksum = u64::from_le_bytes(head[8..].try_into().expect("eight bytes"));
    let records = rest.get(..len)?;
    let is_whole = len > 0 && xxh3_64_with_seed(records, position) == checksum;
    is_whole.then_some((records, HEAD_BYTES + len))
}

/// Returns how long the records of the frame are that begins here, if its head is sound as far.
pub(super) fn length(bytes: &[u8], position: u64) -> Option<usize> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = u32::from_le_bytes(*len);
    let check = u32::from_le_bytes(*rest.first_chunk()?);
    (check == check_of(len, position)).then_some(len as usize)
}

fn check_of(len: u32, position: u64) -> u32 {
    xxh3_64_with_seed(&len.to_le_bytes(), position) as u32
}

/// Appends a number, seven bits a byte, the lowest first.
pub(super) fn put_u64(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the front.
pub(super) fn get_u64(bytes: &mut &[u8]) -> Option<u64> {
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

/// Appends bytes behind their length.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes bytes off the front.
pub(super) fn get_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(get_u64(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_u64(&mut bytes, number);
            assert_eq!(get_u64(&mut &bytes[..]), Some(number));
            assert_eq!(get_u64(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(get_u64(&mut &[0xff; 10][..]), None);
    }

    #[test]
    fn a_flipped_bit_anywhere_is_seen() {
        let mut bytes = b"before".to_vec();
        let start = begin(&mut bytes);
        bytes.extend(b"records");
        assert!(end(&mut bytes, start, 99));
        let frame = bytes[start..].to_vec();
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
