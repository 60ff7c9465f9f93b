//! A partly loaded filter of Tamis. `BF.SCANDUMP` returns the image of a filter in chunks, and
//! `BF.LOADCHUNK` joins the chunks.
//!
//! ```text
//! header   | "TAMISDMP" | length of the image: u64 |
//! chunks   | image, 16 MiB at a time |
//! ```
//!
//! A header of RedisBloom begins with the number of items. The number of items is always less than
//! the magic number `TAMISDMP` read as an integer.

use crate::text::{self, Text};

/// A filter of which only the first chunks have arrived. The missing chunks may contain any item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialLoad {
    len_bytes: u64,
    bytes: Vec<u8>,
}

const MAGIC: &[u8; 8] = b"TAMISDMP";

/// The maximum length of a chunk, in bytes, which is the same as in RedisBloom.
pub(crate) const MAX_CHUNK_BYTES: usize = 16 << 20;

impl PartialLoad {
    /// Starts a load from a header. Returns `None` if the header is not a header of Tamis, or if
    /// the image in the header is larger than `max_bytes` allows.
    pub(crate) fn from_header(header: &[u8], max_bytes: u64) -> Option<Self> {
        let len = header.strip_prefix(MAGIC)?.try_into().ok().map(u64::from_le_bytes)?;
        // An image is slightly longer than its filter.
        (1..=max_bytes.saturating_add(1 << 20))
            .contains(&len)
            .then(|| Self { len_bytes: len, bytes: Vec::new() })
    }

    /// Creates a partial load from the parts of another partial load. Returns `None` if `bytes` is
    /// not shorter than `len_bytes`.
    pub(crate) fn from_parts(len_bytes: u64, bytes: Vec<u8>) -> Option<Self> {
        ((bytes.len() as u64) < len_bytes).then_some(Self { len_bytes, bytes })
    }

    /// Returns the length of the whole image, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the bytes that have arrived.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the heap memory of the chunks, in bytes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        tamis::allocation_bytes(self.bytes.capacity())
    }

    /// Returns the header of a dump. `len_bytes` is the length of the image in bytes.
    #[must_use]
    pub fn header(len_bytes: u64) -> Vec<u8> {
        [*MAGIC, len_bytes.to_le_bytes()].concat()
    }

    /// Tests whether the image is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.bytes.len() as u64 == self.len_bytes
    }

    /// Appends the chunk that ends before byte `position`, counted from 1.
    ///
    /// # Errors
    ///
    /// The error text if the chunk does not start where the earlier chunks end, or if there is not
    /// enough memory.
    pub(crate) fn append(&mut self, position: i64, chunk: &[u8]) -> Result<(), Text> {
        let end = (self.bytes.len() + chunk.len()) as u64;
        if chunk.is_empty() || u64::try_from(position) != Ok(end + 1) || end > self.len_bytes {
            return Err(text::bf::GAP);
        }
        self.bytes.try_reserve(chunk.len()).map_err(|_| text::NO_MEMORY_FOR_FILTER)?;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    /// Removes the last `len` bytes, so that the client can send the last chunk again.
    pub(crate) fn undo_append(&mut self, len: usize) {
        self.bytes.truncate(self.bytes.len() - len);
    }
}
