//! Reads the fields of a Protocol Buffers message.

use crate::filters::orc_file::error::OrcError;
use crate::filters::varint::varint;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer.
    Number(u64),
    /// A value of text, bytes, a nested message, or several integers.
    Bytes(&'a [u8]),
    /// A number of 4 or 8 bytes. The reader of ORC needs no field of this type.
    Fixed,
}

/// An iterator over the fields of a message, in order. The iterator ends after the first error.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Creates an iterator that starts at the first field of a message.
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        const FIXED_64: u64 = 1;
        const LENGTH: u64 = 2;
        const FIXED_32: u64 = 5;
        let tag = varint(&mut self.0)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            FIXED_64 => self.bytes(8).map(|_| Value::Fixed)?,
            LENGTH => {
                let len = varint(&mut self.0)?;
                Value::Bytes(self.bytes(len)?)
            }
            FIXED_32 => self.bytes(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    fn bytes(&mut self, len: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), OrcError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        Some(self.field().ok_or_else(|| {
            self.0 = &[];
            OrcError::Damaged("one of its footers is not a valid message of Protocol Buffers")
        }))
    }
}

/// Returns the integers of a packed field in order.
pub fn packed(mut bytes: &[u8]) -> impl Iterator<Item = Result<u64, OrcError>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        Some(varint(&mut bytes).ok_or_else(|| {
            bytes = &[];
            OrcError::Damaged("a list of numbers in its footer ends inside of a number")
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u64, Value<'_>)>, OrcError> {
        Fields::new(message).collect()
    }

    #[test]
    fn fields_of_every_wire_type_are_read() {
        let message = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 2, b'a', b'b'],
            &[0x19, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x25, 0, 0, 0, 0],
            &[0x82, 0xf4, 0x03, 0],
        ]
        .concat();
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Bytes(b"ab")),
            (3, Value::Fixed),
            (4, Value::Fixed),
            (8000, Value::Bytes(b"")),
        ];
        assert_eq!(all(&message).unwrap(), expected);
        for len in [1, 2, 4, 6, 9, 17, 20] {
            assert!(all(&message[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn a_message_that_never_ends_is_damaged() {
        assert!(all(&[0xff; 100]).is_err(), "a tag without an end");
        assert!(all(&[&[0x08][..], &[0x80; 100]].concat()).is_err(), "a number without an end");
        assert!(all(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
        assert!(all(&[0x0b]).is_err(), "a group");
        assert!(packed(&[1, 0x80]).collect::<Result<Vec<_>, _>>().is_err());
        assert_eq!(packed(&[1, 0x80, 1]).collect::<Result<Vec<_>, _>>().unwrap(), [1, 128]);
    }
}
