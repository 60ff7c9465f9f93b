//! A cursor over untrusted bytes.

use crate::error::{DecodeError, DecodeErrorKind};

/// Takes fields from bytes one after the other; every step may find that they have ended.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset of the next field.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Tells whether every byte was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Takes the next `len` bytes.
    pub(crate) fn bytes(
        &mut self,
        field: &'static str,
        len: usize,
    ) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..len) else {
            let expected = (self.at as u64).saturating_add(len as u64);
            let found = self.bytes.len() as u64;
            return Err(self.error(field, DecodeErrorKind::Truncated { expected, found }));
        };
        self.at += len;
        Ok(taken)
    }

    /// Takes the next `N` bytes.
    pub(crate) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let bytes = self.bytes(field, N)?;
        Ok(bytes.try_into().expect("`bytes` took N bytes"))
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array(field).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Returns how many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns the bytes that were taken from offset `at` on.
    pub(crate) fn since(&self, at: usize) -> &'a [u8] {
        &self.bytes[at..self.at]
    }

    /// Checks that no bytes are left behind the last field.
    pub(crate) fn end(&self, field: &'static str) -> Result<(), DecodeError> {
        let kind = DecodeErrorKind::TooLong { expected: self.at as u64 };
        if self.is_empty() { Ok(()) } else { Err(self.error(field, kind)) }
    }

    /// Returns an error about the next field.
    pub(crate) fn error(&self, field: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { field, at: self.at as u64, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_until_the_bytes_end() {
        let mut reader = Reader::new(&[1, 2, 0, 3, 0, 0, 0, 9]);
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
}
