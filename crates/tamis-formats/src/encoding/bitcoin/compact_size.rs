//! Reads and writes numbers of one to nine bytes: Bitcoin's encoding of lengths and counts.

use crate::encoding::reader::ByteReader;
use crate::errors::{DecodeError, DecodeErrorKind};

/// Reads a number. Rejects a number that is not in its shortest form, as Bitcoin nodes do.
///
/// # Errors
///
/// [`DecodeError`] if bytes are missing or the number is not in its shortest form.
pub fn read(reader: &mut ByteReader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let start = reader.invalid(field, "a number in its shortest form");
    let (n, least) = match reader.u8(field)? {
        0xfd => (reader.u16(field)?.into(), 0xfd),
        0xfe => (reader.u32(field)?.into(), 1 << 16),
        0xff => (reader.u64(field)?, 1 << 32),
        n => (n.into(), 0),
    };
    if n < least { Err(start) } else { Ok(n) }
}

/// Reads the count of elements of at least `min_bytes` bytes each. Rejects a count that exceeds the remaining bytes.
///
/// # Errors
///
/// The errors of [`read`], and an error if the remaining bytes are too few for this count.
pub fn read_count(
    reader: &mut ByteReader<'_>,
    field: &'static str,
    min_bytes: u64,
) -> Result<usize, DecodeError> {
    let count = read(reader, field)?;
    let (at, left) = (reader.at() as u64, reader.left() as u64);
    let needed = count.saturating_mul(min_bytes);
    if needed > left {
        let expected = at.saturating_add(needed);
        return Err(reader.error(field, DecodeErrorKind::Truncated { expected, found: at + left }));
    }
    Ok(count as usize)
}

/// Reads a byte string with a length prefix.
///
/// # Errors
///
/// The errors of [`read_count`].
pub fn read_bytes<'a>(
    reader: &mut ByteReader<'a>,
    field: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let len = read_count(reader, field, 1)?;
    reader.bytes(field, len)
}

/// Appends a number in its shortest form.
pub fn write(n: u64, to: &mut Vec<u8>) {
    match n {
        0..0xfd => to.push(n as u8),
        0xfd..0x1_0000 => {
            to.push(0xfd);
            to.extend((n as u16).to_le_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            to.push(0xfe);
            to.extend((n as u32).to_le_bytes());
        }
        _ => {
            to.push(0xff);
            to.extend(n.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_in_the_fewest_bytes() {
        for (n, len) in [
            (0, 1),
            (252, 1),
            (253, 3),
            (65_535, 3),
            (65_536, 5),
            (u64::from(u32::MAX), 5),
            (1 << 32, 9),
            (u64::MAX, 9),
        ] {
            let mut bytes = Vec::new();
            write(n, &mut bytes);
            assert_eq!(bytes.len(), len, "{n}");
            assert_eq!(read(&mut ByteReader::new(&bytes), "n"), Ok(n));
            assert!(read(&mut ByteReader::new(&bytes[..len - 1]), "n").is_err());
        }
    }

    #[test]
    fn numbers_not_in_shortest_form_are_refused() {
        for bytes in [
            &[9, 0xfd, 252, 0][..],
            &[9, 0xfe, 255, 255, 0, 0],
            &[9, 0xff, 255, 255, 255, 255, 0, 0, 0, 0],
        ] {
            let mut reader = ByteReader::new(bytes);
            reader.u8("nine").unwrap();
            assert_eq!(read(&mut reader, "n").unwrap_err().at, 1);
        }
    }

    #[test]
    fn counts_are_compared_with_the_remaining_bytes() {
        let bytes = [3, 0, 0, 0, 0, 0, 0];
        assert_eq!(read_count(&mut ByteReader::new(&bytes), "n", 2), Ok(3));
        let error = read_count(&mut ByteReader::new(&bytes), "n", 3).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Truncated { expected: 10, found: 7 });
        assert!(read_count(&mut ByteReader::new(&[255; 9]), "n", 100).is_err());
    }
}
