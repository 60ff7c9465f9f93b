//! A byte string that stores short contents inline.

use std::fmt;
use std::ops::{Deref, DerefMut};

use tamis::allocation_bytes;

/// A byte string in 24 bytes. Up to 22 bytes are stored inline without an allocation. Most keys and
/// many values fit inline.
///
/// # Examples
///
/// ```
/// use tamis_commands::SmallBytes;
///
/// let mut bytes = SmallBytes::from(&b"user:1"[..]);
/// assert_eq!((&bytes[..], bytes.heap_bytes()), (&b"user:1"[..], 0));
/// bytes.resize(100);
/// assert_eq!((bytes.len(), bytes[99], bytes.heap_bytes()), (100, 0, 112));
/// ```
#[derive(Clone)]
pub struct SmallBytes(Storage);

#[derive(Clone)]
enum Storage {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Boxed(Box<[u8]>),
}

const INLINE_BYTES: usize = 22;

impl SmallBytes {
    /// Changes the length to `len`: truncates the bytes or appends zeros.
    pub fn resize(&mut self, len: usize) {
        if len == self.len() {
            return;
        }
        let kept = self.len().min(len);
        let mut longer = Self::zeroed(len);
        longer[..kept].copy_from_slice(&self[..kept]);
        *self = longer;
    }

    /// Returns the heap memory in bytes, computed by [`allocation_bytes`].
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        match &self.0 {
            Storage::Inline { .. } => 0,
            Storage::Boxed(bytes) => allocation_bytes(bytes.len()),
        }
    }

    fn zeroed(len: usize) -> Self {
        Self(if len <= INLINE_BYTES {
            Storage::Inline { len: len as u8, bytes: [0; INLINE_BYTES] }
        } else {
            Storage::Boxed(vec![0; len].into())
        })
    }
}

impl From<&[u8]> for SmallBytes {
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() > INLINE_BYTES {
            return Self(Storage::Boxed(bytes.into()));
        }
        let mut small = Self::zeroed(bytes.len());
        small.copy_from_slice(bytes);
        small
    }
}

impl From<Vec<u8>> for SmallBytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() > INLINE_BYTES {
            return Self(Storage::Boxed(bytes.into()));
        }
        Self::from(&bytes[..])
    }
}

impl Default for SmallBytes {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Storage::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Storage::Boxed(bytes) => bytes,
        }
    }
}

impl DerefMut for SmallBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Storage::Inline { len, bytes } => &mut bytes[..usize::from(*len)],
            Storage::Boxed(bytes) => bytes,
        }
    }
}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_are_kept_and_resized() {
        for len in 0..60_usize {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            assert_eq!(*SmallBytes::from(&bytes[..]), bytes[..]);
            assert_eq!(SmallBytes::from(bytes.clone()).heap_bytes() == 0, len <= 22);
            for resized in [0, 21, 22, 23, 59] {
                let mut small = SmallBytes::from(&bytes[..]);
                small.resize(resized);
                let mut twin = bytes.clone();
                twin.resize(resized, 0);
                assert_eq!(*small, twin[..]);
            }
        }
        assert_eq!(size_of::<Option<SmallBytes>>(), 24);
    }
}
