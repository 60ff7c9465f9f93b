//! Reads and writes numbers, doubles and strings as RDB files and the result of `DUMP` encode these values.

pub(crate) mod crc64;
pub(crate) mod value_type;

use std::borrow::Cow;

use crate::formats::module_value::{ModuleReader, ModuleWriter};

/// The opcodes before the values of a module.
mod opcode {
    pub const END: u64 = 0;
    pub const SIGNED: u64 = 1;
    pub const NUMBER: u64 = 2;
    pub const FLOAT: u64 = 3;
    pub const DOUBLE: u64 = 4;
    pub const STRING: u64 = 5;
}

/// The newest RDB version of Redis whose types are all known: the version of Redis 8.
pub(crate) const MAX_RDB_VERSION: u32 = 12;
/// The newest RDB version of Valkey whose types are all known: the version of Valkey 9.
pub(crate) const MAX_VALKEY_VERSION: u32 = 80;
/// The first version of Valkey's own format. Versions below 80 belong to Redis.
pub(crate) const MIN_VALKEY_VERSION: u32 = 80;

/// Reads values in order. A method returns `None` if the next value does not have the form that the method reads.
#[derive(Clone)]
pub(crate) struct RdbReader<'a> {
    bytes: &'a [u8],
    /// The memory that the strings not yet read may take.
    left_bytes: u64,
    /// Whether a string was rejected because its length exceeds `left_bytes`.
    is_over: bool,
}

impl<'a> RdbReader<'a> {
    pub fn new(bytes: &'a [u8], max_bytes: u64) -> Self {
        Self { bytes, left_bytes: max_bytes, is_over: false }
    }

    /// Tests whether a string was rejected because the string needs more memory than allowed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Subtracts the memory of a string of `len` bytes from the allowed memory. The string is the expansion of `packed`
    /// bytes.
    fn count(&mut self, len: u64, packed: u64) -> Option<()> {
        // A length is forged if the packed bytes cannot expand to the length. A forged length does not count as a lack
        // of memory.
        let is_possible = len <= MAX_EXPANSION.saturating_mul(packed);
        self.is_over |= is_possible && len > self.left_bytes;
        self.left_bytes = self.left_bytes.checked_sub(len)?;
        Some(())
    }

    /// Returns the remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Reads a number in the encoding of lengths. The number has 6, 14, 32 or 64 bits.
    pub fn length(&mut self) -> Option<u64> {
        let first = self.take(1)?[0];
        let rest =
            |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        Some(match (first >> 6, first) {
            (0, low) => u64::from(low),
            (1, high) => u64::from(high & 0x3f) << 8 | u64::from(self.take(1)?[0]),
            (2, 0x80) => rest(self.take(4)?),
            (2, 0x81) => rest(self.take(8)?),
            _ => return None,
        })
    }

    fn opcode(&mut self, expected: u64) -> Option<()> {
        (self.length()? == expected).then_some(())
    }

    /// Reads a string without an opcode. Only a string that is compressed or stored as a number is copied.
    pub fn bytes(&mut self) -> Option<Cow<'a, [u8]>> {
        match *self.bytes.first()? {
            COMPRESSED => {
                self.take(1)?;
                let (packed, len) = (self.length()?, self.length()?);
                let packed = self.take(usize::try_from(packed).ok()?)?;
                self.count(len, packed.len() as u64)?;
                expand(packed, usize::try_from(len).ok()?).map(Cow::Owned)
            }
            // A small integer is stored as a binary number. The string is the decimal text of the number.
            kind @ 0xc0..=0xc2 => {
                self.take(1)?;
                let bytes = self.take(1 << (kind & 3))?;
                let number = match bytes {
                    &[a] => i32::from(a as i8),
                    &[a, b] => i32::from(i16::from_le_bytes([a, b])),
                    bytes => i32::from_le_bytes(*bytes.first_chunk()?),
                };
                Some(Cow::Owned(number.to_string().into_bytes()))
            }
            _ => {
                let len = self.length()?;
                let bytes = self.take(usize::try_from(len).ok()?)?;
                self.count(len, len)?;
                Some(Cow::Borrowed(bytes))
            }
        }
    }

    /// Skips a string without expanding it.
    pub fn skip_bytes(&mut self) -> Option<()> {
        let first = *self.bytes.first()?;
        let len = match first {
            COMPRESSED => {
                self.take(1)?;
                let packed = self.length()?;
                self.length()?;
                packed
            }
            0xc0..=0xc2 => {
                self.take(1)?;
                1 << (first & 3)
            }
            _ => self.length()?,
        };
        self.take(usize::try_from(len).ok()?).map(|_| ())
    }

    /// Skips the values of a module, and the opcode at their end.
    pub fn skip_values(&mut self) -> Option<()> {
        loop {
            match self.length()? {
                opcode::END => return Some(()),
                opcode::SIGNED | opcode::NUMBER => _ = self.length()?,
                opcode::FLOAT => _ = self.take(4)?,
                opcode::DOUBLE => _ = self.take(8)?,
                opcode::STRING => self.skip_bytes()?,
                _ => return None,
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Tests whether the opcode `END` comes next and no bytes follow.
    pub fn end(mut self) -> bool {
        self.opcode(opcode::END).is_some() && self.is_empty()
    }
}

impl<'a> ModuleReader<'a> for RdbReader<'a> {
    fn number(&mut self) -> Option<u64> {
        self.opcode(opcode::NUMBER)?;
        self.length()
    }

    fn double(&mut self) -> Option<f64> {
        self.opcode(opcode::DOUBLE)?;
        Some(f64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    fn string(&mut self) -> Option<Cow<'a, [u8]>> {
        self.opcode(opcode::STRING)?;
        self.bytes()
    }
}

/// The largest number of bytes that one compressed byte can expand to. A copy of 264 bytes is stored in three bytes.
pub(crate) const MAX_EXPANSION: u64 = 88;

/// The first byte of a compressed string.
const COMPRESSED: u8 = 0xc3;

/// Decompresses LZF, which consists of literal runs and copies of earlier output. Returns `None` unless the result has
/// exactly `len` bytes.
fn expand(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    // If the packed bytes cannot expand to `len` bytes, `len` is forged.
    if len as u64 > MAX_EXPANSION.saturating_mul(packed.len() as u64) {
        return None;
    }
    let mut out = Vec::new();
    out.try_reserve_exact(len).ok()?;
    let mut bytes = packed.iter().copied();
    while let Some(control) = bytes.next() {
        if control < 32 {
            for _ in 0..=control {
                out.push(bytes.next()?);
            }
        } else {
            let mut copied = usize::from(control >> 5);
            if copied == 7 {
                copied += usize::from(bytes.next()?);
            }
            let distance = usize::from(control & 0x1f) << 8 | usize::from(bytes.next()?);
            let start = out.len().checked_sub(distance + 1)?;
            // The source range of a copy may overlap the bytes that the copy writes.
            for i in start..start + copied + 2 {
                out.push(out[i]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

/// Encodes values in order.
#[derive(Default)]
pub(crate) struct RdbWriter(Vec<u8>);

impl RdbWriter {
    /// Creates a writer whose first byte is the type `kind`.
    pub fn new(kind: u8) -> Self {
        Self(vec![kind])
    }

    /// Writes bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn length(&mut self, number: u64) {
        match number {
            0..0x40 => self.0.push(number as u8),
            0x40..0x4000 => self.0.extend([0x40 | (number >> 8) as u8, number as u8]),
            0x4000..=0xffff_ffff => {
                self.0.push(0x80);
                self.0.extend((number as u32).to_be_bytes());
            }
            _ => {
                self.0.push(0x81);
                self.0.extend(number.to_be_bytes());
            }
        }
    }

    /// Writes a string without an opcode.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn end(mut self) -> Vec<u8> {
        self.length(opcode::END);
        self.0
    }
}

impl ModuleWriter for RdbWriter {
    fn number(&mut self, number: u64) {
        self.length(opcode::NUMBER);
        self.length(number);
    }

    fn double(&mut self, number: f64) {
        self.length(opcode::DOUBLE);
        self.0.extend(number.to_le_bytes());
    }

    fn string(&mut self, bytes: &[u8]) {
        self.length(opcode::STRING);
        self.bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_every_width() {
        for number in [0, 63, 64, 16_383, 16_384, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let mut to = RdbWriter::new(7);
            to.number(number);
            let bytes = to.end();
            let mut from = RdbReader::new(&bytes[1..], 0);
            assert_eq!(from.number(), Some(number));
            assert!(from.end());
        }
    }

    #[test]
    fn compressed_strings_are_expanded() {
        assert_eq!(expand(&[2, b'a', b'b', b'c'], 3).as_deref(), Some(&b"abc"[..]));
        // The input consists of three literal bytes, and a copy of four bytes from three bytes back. The source of the
        // copy overlaps the bytes that the copy writes.
        assert_eq!(expand(&[2, b'a', b'b', b'c', 2 << 5, 2], 7).as_deref(), Some(&b"abcabca"[..]));
        assert_eq!(expand(&[0, 0, 7 << 5, 255, 0], 265), Some(vec![0; 265]));
        for (packed, len) in [
            (&[2, b'a'][..], 3),
            (&[1 << 5, 0], 3),
            (&[0, b'a'], 2),
            (&[0, b'a', 0, b'b'], 1),
            (&[7 << 5], 9),
            (&[0], usize::MAX),
        ] {
            assert_eq!(expand(packed, len), None, "{packed:?}");
        }
    }
}
