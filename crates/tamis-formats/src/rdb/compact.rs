//! The two compact lists of Redis, ziplist and listpack, in which it stores small hashes.
//!
//! ```text
//! ziplist   bytes: u32 | last: u32 | entries: u16 | previous length, encoding, text | ... | 0xff
//! listpack  bytes: u32 | entries: u16 | encoding, text, own length backwards | ... | 0xff
//! ```

/// The byte that ends both.
const END: u8 = 0xff;

/// Reads a ziplist of at most `max` entries; numbers become decimal text.
pub(super) fn ziplist(bytes: &[u8], max: usize) -> Option<Vec<Vec<u8>>> {
    let mut from = Bytes(bytes.get(10..)?);
    let mut texts = Vec::new();
    while from.peek()? != END {
        let wide_length = from.u8()? == 254;
        if wide_length {
            from.take(4)?;
        }
        let first = from.u8()?;
        let text = match first {
            0..0x40 => from.text(first.into())?,
            0x40..0x80 => {
                let low = from.u8()?;
                from.text(usize::from(first & 0x3f) << 8 | usize::from(low))?
            }
            0x80 => {
                let len = u32::from_be_bytes(*from.take(4)?.first_chunk()?);
                from.text(len as usize)?
            }
            0xc0 => from.number(2)?,
            0xd0 => from.number(4)?,
            0xe0 => from.number(8)?,
            0xf0 => from.number(3)?,
            0xfe => from.number(1)?,
            0xf1..=0xfd => decimal(i64::from(first & 0xf) - 1),
            _ => return None,
        };
        texts.push(text);
        (texts.len() <= max).then_some(())?;
    }
    Some(texts)
}

/// Reads a listpack of at most `max` entries; numbers become decimal text.
pub(super) fn listpack(bytes: &[u8], max: usize) -> Option<Vec<Vec<u8>>> {
    let mut from = Bytes(bytes.get(6..)?);
    let mut texts = Vec::new();
    while from.peek()? != END {
        let before = from.0.len();
        let first = from.u8()?;
        let text = match first {
            0..0x80 => decimal(first.into()),
            0x80..0xc0 => from.text(usize::from(first & 0x3f))?,
            0xc0..0xe0 => {
                let number = i64::from(first & 0x1f) << 8 | i64::from(from.u8()?);
                // 13 signed bits.
                decimal(number << 51 >> 51)
            }
            0xe0..0xf0 => {
                let low = from.u8()?;
                from.text(usize::from(first & 0xf) << 8 | usize::from(low))?
            }
            0xf0 => {
                let len = u32::from_le_bytes(*from.take(4)?.first_chunk()?);
                from.text(len as usize)?
            }
            0xf1 => from.number(2)?,
            0xf2 => from.number(3)?,
            0xf3 => from.number(4)?,
            0xf4 => from.number(8)?,
            _ => return None,
        };
        // The entry's length follows in groups of seven bits.
        let len = before - from.0.len();
        let groups = [0x80, 0x4000, 0x20_0000, 0x1000_0000].iter().filter(|&&least| len >= least);
        from.take(1 + groups.count())?;
        texts.push(text);
        (texts.len() <= max).then_some(())?;
    }
    Some(texts)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn text(&mut self, len: usize) -> Option<Vec<u8>> {
        self.take(len).map(<[u8]>::to_vec)
    }

    /// Reads a signed little-endian number of `len` bytes.
    fn number(&mut self, len: usize) -> Option<Vec<u8>> {
        let number =
            self.take(len)?.iter().rev().fold(0, |number, &byte| number << 8 | i64::from(byte));
        let unused = 64 - 8 * len as u32;
        Some(decimal(number << unused >> unused))
    }
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
        // An entry longer than 127 bytes: its length takes two bytes.
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
