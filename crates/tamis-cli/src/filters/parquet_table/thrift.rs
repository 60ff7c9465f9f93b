//! Finds a field in a struct of Thrift's compact protocol, such as the footer of a Parquet table.

use crate::filters::varint::varint;

/// Tests whether the struct at the start of `bytes` has the field `wanted`. Returns `None` if the
/// bytes are not a struct.
pub fn has_field(bytes: &[u8], wanted: i64) -> Option<bool> {
    let mut rest = Rest(bytes);
    let mut id = 0;
    while let Some(kind) = rest.field(&mut id)? {
        if id == wanted {
            return Some(true);
        }
        rest.skip(kind, MOST_DEPTH)?;
    }
    Some(false)
}

/// The maximum depth of nested structs and lists.
const MOST_DEPTH: u32 = 32;

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn bytes(&mut self, len: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(len).ok()?..)?;
        Some(())
    }

    /// Reads the header of the next field. Returns the type of the field, and sets `id` to the
    /// number of the field. `Some(None)` means the end of the struct.
    fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        *id = match header >> 4 {
            0 => {
                let zigzag = varint(&mut self.0)?;
                (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed()
            }
            delta => id.checked_add(i64::from(delta))?,
        };
        Some(Some(header & 15))
    }

    /// Skips a value of the type `kind`.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // The type of a boolean field contains its value.
            1 | 2 => {}
            3 => self.bytes(1)?,
            4..=6 => _ = varint(&mut self.0)?,
            7 => self.bytes(8)?,
            8 => {
                let len = varint(&mut self.0)?;
                self.bytes(len)?;
            }
            9 | 10 => {
                let header = self.byte()?;
                let count =
                    if header >> 4 == 15 { varint(&mut self.0)? } else { (header >> 4).into() };
                for _ in 0..count {
                    self.element(header & 15, depth)?;
                }
            }
            11 => {
                let count = varint(&mut self.0)?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 15, depth)?;
                }
            }
            12 => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Skips an element of a list, a set or a map. A boolean element takes one byte.
    fn element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if matches!(kind, 1 | 2) { self.bytes(1) } else { self.skip(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_type_are_skipped() {
        // 1: i32 7, 2: list of two structs (the second has a binary), 3: true, 4: map of i16 to bool,
        // 20: double.
        let bytes =
            [
                &[
                    0x15, 0x0e, 0x19, 0x2c, 0x00, 0x18, 2, b'a', b'b', 0x00, 0x11, 0x1b, 1, 0x41,
                    2, 1,
                ][..],
                &[0x07, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0x00],
            ]
            .concat();
        for id in [1, 2, 3, 4, 20] {
            assert_eq!(has_field(&bytes, id), Some(true), "{id}");
        }
        assert_eq!(has_field(&bytes, 8), Some(false));
        for len in 0..bytes.len() {
            assert_eq!(has_field(&bytes[..len], 8), None, "{len}");
        }
        assert_eq!(has_field(&[0x19; 1000], 8), None, "lists in lists");
        let many = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(has_field(&many, 8), None, "more elements than bytes");
    }
}
