//! A cursor over untrusted bytes.

use std::ops::RangeBounds;

use crate::errors::{DecodeError, DecodeErrorKind};

/// Reads fields from bytes in order. Every method returns an error if the input ends too early.
///
/// `field` is the name of the next field in error messages.
///
/// # Examples
///
/// ```
/// use tamis_formats::ByteReader;
///
/// let mut reader = ByteReader::new(&[1, 0, 9]);
/// assert_eq!(reader.u16("version")?, 1);
/// let error = reader.u32("length").unwrap_err();
/// assert_eq!((error.field, error.at), ("length", 2));
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    /// Creates a cursor at the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset of the next field.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Tests whether every byte has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early.
    pub fn bytes(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..len) else {
            let expected = (self.at as u64).saturating_add(len as u64);
            let found = self.bytes.len() as u64;
            return Err(self.error(field, DecodeErrorKind::Truncated { expected, found }));
        };
        self.at += len;
        Ok(taken)
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(field, N)?);
        Ok(array)
    }

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array(field).map(|[byte]| byte)
    }

    /// Reads a little-endian number of 16 bits.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Reads a little-endian number of 32 bits.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Reads a little-endian number of 64 bits.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Reads a big-endian signed number of 32 bits: the encoding of a Java `int`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early.
    pub fn i32_be(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.array(field).map(i32::from_be_bytes)
    }

    /// Reads a big-endian count. The count must be in the range `allowed`; `expected` describes this range.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the input ends too early, or if the count is not in the range.
    pub fn count_be(
        &mut self,
        field: &'static str,
        allowed: impl RangeBounds<u32>,
        expected: &'static str,
    ) -> Result<u32, DecodeError> {
        let at = self.at;
        let found = self.i32_be(field)?;
        let count = u32::try_from(found).ok().filter(|count| allowed.contains(count));
        count.ok_or(DecodeError::unexpected(field, at, expected, found))
    }

    /// Returns the number of remaining bytes.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns the remaining bytes.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Returns the bytes that were read since offset `at`.
    #[must_use]
    pub fn since(&self, at: usize) -> &'a [u8] {
        &self.bytes[at..self.at]
    }

    /// Checks that no bytes follow the last field.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with the expected length if bytes follow the last field.
    pub fn end(&self, field: &'static str) -> Result<(), DecodeError> {
        if self.is_empty() { Ok(()) } else { Err(DecodeError::too_long(field, self.at as u64)) }
    }

    /// Creates an error about a number in the next field that differs from `expected`.
    #[must_use]
    pub fn unexpected(
        &self,
        field: &'static str,
        expected: &'static str,
        found: impl Into<i128>,
    ) -> DecodeError {
        DecodeError::unexpected(field, self.at, expected, found)
    }

    /// Creates an error about the next field.
    #[must_use]
    pub fn error(&self, field: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::new(field, self.at, kind)
    }

    /// Returns the error "the field is not `reason`" about the next field.
    pub(crate) fn invalid(&self, field: &'static str, reason: &'static str) -> DecodeError {
        DecodeError::invalid(field, self.at, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_until_the_bytes_end() {
        let mut reader = ByteReader::new(&[1, 2, 0, 3, 0, 0, 0, 9]);
        assert_eq!(reader.u8("a"), Ok(1));
        assert_eq!(reader.u16("b"), Ok(2));
        assert_eq!(reader.u32("c"), Ok(3));
        let error = reader.u64("d").unwrap_err();
        assert_eq!((error.field, error.at), ("d", 7));
        assert_eq!(error.kind, DecodeErrorKind::Truncated { expected: 15, found: 8 });
        assert_eq!(reader.bytes("e", usize::MAX).unwrap_err().at, 7);
        assert_eq!(reader.u8("f"), Ok(9));
        assert!(reader.is_empty());
    }

    #[test]
    fn counts_are_in_range_and_nothing_follows_the_end() {
        let mut reader = ByteReader::new(&[0, 0, 1, 2, 255, 255, 255, 255, 9]);
        assert_eq!(reader.count_be("a", 1.., "1 or more"), Ok(258));
        let error = reader.count_be("b", 0.., "0 or more").unwrap_err();
        assert_eq!(error.to_string(), "the b at byte 4 is -1, expected 0 or more");
        assert_eq!(reader.end("c").unwrap_err().kind, DecodeErrorKind::TooLong { expected: 8 });
    }
}
