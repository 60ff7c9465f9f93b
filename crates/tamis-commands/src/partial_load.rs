//! A partly loaded Tamis filter: `BF.SCANDUMP` returns its image in chunks, and `BF.LOADCHUNK`
//! joins them.
//!
//! ```text
//! header   | "TAMISDMP" | length of the image: u64 |
//! chunks   | image, 16 MiB at a time |
//! ```
//!
//! RedisBloom's header begins with the number of items. That number is never as large as the magic
//! `TAMISDMP` read as an integer.

use crate::image::ImageError;
use crate::value::Value;

/// A filter of which only the first chunks have arrived. It may contain any item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialLoad {
    len_bytes: u64,
    bytes: Vec<u8>,
}

const MAGIC: &[u8; 8] = b"TAMISDMP";

/// The longest chunk, equal to RedisBloom's limit.
pub(crate) const MAX_CHUNK_BYTES: usize = 16 << 20;

/// Why a chunk cannot be appended to the earlier chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinError {
    /// The chunk does not start where the earlier chunks end.
    Gap,
    /// All chunks have arrived but do not decode: the filter changed during the dump, or a chunk
    /// was altered.
    Value,
    /// All chunks have arrived and decode to a window whose clock is ahead.
    Ahead,
    /// There is not enough memory.
    Memory,
}

impl PartialLoad {
    /// Starts a load from a header. Returns `None` if the header is not Tamis', or announces an
    /// image larger than `max_bytes` allows.
    pub(crate) fn from_header(header: &[u8], max_bytes: u64) -> Option<Self> {
        let len = header.strip_prefix(MAGIC)?.try_into().ok().map(u64::from_le_bytes)?;
        // An image is slightly longer than its filter.
        (1..=max_bytes.saturating_add(1 << 20))
            .contains(&len)
            .then(|| Self { len_bytes: len, bytes: Vec::new() })
    }

    /// Creates a load from the parts of another. Returns `None` if `bytes` is not shorter than
    /// `len_bytes`.
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

    /// Appends the chunk that ends before byte `position`, counted from 1. Returns the value once
    /// the image is complete.
    pub(crate) fn join(
        &mut self,
        position: i64,
        chunk: &[u8],
        now_millis: u64,
    ) -> Result<Option<Value>, JoinError> {
        let end = (self.bytes.len() + chunk.len()) as u64;
        if chunk.is_empty() || u64::try_from(position) != Ok(end + 1) || end > self.len_bytes {
            return Err(JoinError::Gap);
        }
        self.bytes.try_reserve(chunk.len()).map_err(|_| JoinError::Memory)?;
        self.bytes.extend_from_slice(chunk);
        if end < self.len_bytes {
            return Ok(None);
        }
        match Value::from_dump(&self.bytes) {
            Ok(Value::PartialLoad(_)) => Err(JoinError::Value),
            Ok(value) if value.is_ahead(now_millis) => Err(JoinError::Ahead),
            Ok(value) => Ok(Some(value)),
            Err(ImageError::Memory) => {
                // Undo the append, so that the client can send the chunk again.
                self.bytes.truncate((end - chunk.len() as u64) as usize);
                Err(JoinError::Memory)
            }
            Err(_) => Err(JoinError::Value),
        }
    }
}

/// Returns the chunk of `BF.SCANDUMP` at a position, and the next position. Returns `None` past the
/// end.
pub(crate) fn chunk(value: &Value, position: i64) -> Option<(i64, Vec<u8>)> {
    if position == 0 {
        let mut header = MAGIC.to_vec();
        header.extend(value.image_bytes().to_le_bytes());
        return Some((1, header));
    }
    let start = u64::try_from(position).ok()?.checked_sub(1)?;
    let part = value.image_part(start, MAX_CHUNK_BYTES);
    if part.is_empty() { None } else { Some((position + part.len() as i64, part)) }
}
