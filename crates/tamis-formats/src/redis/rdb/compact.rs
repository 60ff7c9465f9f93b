//! Reads the two compact lists of Redis: ziplist and listpack. Redis stores a small hash as a ziplist or as a listpack.
//!
//! ```text
//! ziplist   bytes: u32 | last: u32 | entries: u16 | previous length, encoding, text | ... | 0xff
//! listpack  bytes: u32 | entries: u16 | encoding, text, own length backwards | ... | 0xff
//! ```

use crate::redis::rdb_encoding::RdbReader;

/// The last byte of a ziplist and of a listpack.
const END: u8 = 0xff;

/// Reads a ziplist of at most `max` entries. A number is converted to decimal text.
pub(super) fn ziplist(bytes: &[u8], max: usize) -> Option<Vec<Vec<u8>>> {
    let mut from = RdbReader::new(bytes.get(10..)?, 0);
    let mut texts = Vec::new();
    while *from.rest().first()? != END {
        let wide_length = from.take(1)?[0] == 254;
        if wide_length {
            from.take(4)?;
        }
        let first = from.take(1)?[0];
        let text = match first {
            0..0x40 => text(&mut from, first.into())?,
            0x40..0x80 => {
                let low = from.take(1)?[0];
                text(&mut from, usize::from(first & 0x3f) << 8 | usize::from(low))?
            }
            0x80 => {
                let len = u32::from_be_bytes(*from.take(4)?.first_chunk()?);
                text(&mut from, len as usize)?
            }
            0xc0 => number(&mut from, 2)?,
            0xd0 => number(&mut from, 4)?,
            0xe0 => number(&mut from, 8)?,
            0xf0 => number(&mut from, 3)?,
            0xfe => number(&mut from, 1)?,
            0xf1..=0xfd => decimal(i64::from(first & 0xf) - 1),
            _ => return None,
        };
        texts.push(text);
        (texts.len() <= max).then_some(())?;
    }
    Some(texts)
}

/// Reads a listpack of at most `max` entries. A number is converted to decimal text.
pub(super) fn listpack(bytes: &[u8], max: usize) -> Option<Vec<Vec<u8>>> {
    let mut from = RdbReader::new(bytes.get(6..)?, 0);
    let mut texts = Vec::new();
    while *from.rest().first()? != END {
        let before = from.rest().len();
        let first = from.take(1)?[0];
        let text = match first {
            0..0x80 => decimal(first.into()),
            0x80..0xc0 => text(&mut from, usize::from(first & 0x3f))?,
            0xc0..0xe0 => {
                let number = i64::from(first & 0x1f) << 8 | i64::from(from.take(1)?[0]);
                // The number is a signed integer of 13 bits.
                decimal(number << 51 >> 51)
            }
            0xe0..0xf0 => {
                let low = from.take(1)?[0];
                text(&mut from, usize::from(first & 0xf) << 8 | usize::from(low))?
            }
            0xf0 => {
                let len = u32::from_le_bytes(*from.take(4)?.first_chunk()?);
                text(&mut from, len as usize)?
            }
            0xf1 => number(&mut from, 2)?,
            0xf2 => number(&mut from, 3)?,
            0xf3 => number(&mut from, 4)?,
            0xf4 => number(&mut from, 8)?,
            _ => return None,
        };
        // The length of the entry follows the entry, with seven bits in each byte.
        let len = before - from.rest().len();
        let groups = [0x80, 0x4000, 0x20_0000, 0x1000_0000].iter().filter(|&&least| len >= least);
        from.take(1 + groups.count())?;
        texts.push(text);
        (texts.len() <= max).then_some(())?;
    }
    Some(texts)
}

fn text(from: &mut RdbReader<'_>, len: usize) -> Option<Vec<u8>> {
    from.take(len).map(<[u8]>::to_vec)
}

/// Reads a signed little-endian number of `len` bytes.
fn number(from: &mut RdbReader<'_>, len: usize) -> Option<Vec<u8>> {
    let number =
        from.take(len)?.iter().rev().fold(0, |number, &byte| number << 8 | i64::from(byte));
    let unused = 64 - 8 * len as u32;
    Some(decimal(number << unused >> unused))
}

fn decimal(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Option<Vec<Vec<u8>>> {
        Some(texts.iter().map(|text| text.as_bytes().to_vec()).collect())
    }

    #[test]
    fn ziplists_have_text_and_numbers_of_every_width() {
        let mut bytes = vec![0; 10];
        bytes.extend([0, 2, b'a', b'b']);
        bytes.extend([4, 0x40, 1, b'c']);
        bytes.extend([254, 4, 0, 0, 0, 0x80, 0, 0, 0, 1, b'd']);
        bytes.extend([0, 0xc0, 0xff, 0xff]);
        bytes.extend([0, 0xd0, 0, 0, 0, 0x80]);
        bytes.extend([0, 0xe0, 1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0, 0xf0, 0, 0, 0x80]);
        bytes.extend([0, 0xfe, 0x80]);
        bytes.extend([0, 0xf1, 0, 0xfd, END]);
        let expected = ["ab", "c", "d", "-1", "-2147483648", "1", "-8388608", "-128", "0", "12"];
        assert_eq!(ziplist(&bytes, 10), texts(&expected));
        assert_eq!(ziplist(&bytes, 9), None);
        for len in 0..bytes.len() {
            assert_eq!(ziplist(&bytes[..len], 10), None, "{len}");
        }
    }

    #[test]
    fn listpacks_have_text_and_numbers_of_every_width() {
        let mut bytes = vec![0; 6];
        bytes.extend([127, 1]);
        bytes.extend([0x82, b'a', b'b', 3]);
        bytes.extend([0xdf, 0xff, 2]);
        bytes.extend([0xe0, 1, b'c', 3]);
        bytes.extend([0xf0, 1, 0, 0, 0, b'd', 6]);
        bytes.extend([0xf1, 0, 0x80, 3]);
        bytes.extend([0xf2, 0, 0, 0x80, 4]);
        bytes.extend([0xf3, 0, 0, 0, 0x80, 5]);
        bytes.extend([0xf4, 1, 0, 0, 0, 0, 0, 0, 0, 9]);
        // The length of an entry takes two bytes if the entry is longer than 127 bytes.
        bytes.extend([0xe0, 130]);
        bytes.extend([b'x'; 130]);
        bytes.extend([1, 4, END]);
        let long = "x".repeat(130);
        let expected =
            ["127", "ab", "-1", "c", "d", "-32768", "-8388608", "-2147483648", "1", &long];
        assert_eq!(listpack(&bytes, 10), texts(&expected));
        assert_eq!(listpack(&bytes, 9), None);
        for len in 0..bytes.len() {
            assert_eq!(listpack(&bytes[..len], 10), None, "{len}");
        }
    }
}
