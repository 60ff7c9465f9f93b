//! Dumps of a cuckoo filter of RedisBloom: `CF.SCANDUMP` and `CF.LOADCHUNK`.
//!
//! The header has 38 bytes, little-endian, without gaps:
//!
//! ```text
//! byte 0       8         16        24            32            34               36
//!      | items | buckets | removed | sub-filters | bucket size | max iterations | expansion |
//!        u64     u64       u64       u64           u16           u16              u16
//! ```
//!
//! The slots follow in chunks, end to end, oldest sub-filter first. A chunk is named by the position
//! behind its last byte, counted from 1.

use super::sub_filter::SubFilter;
use super::{MAX_BUCKET_SIZE, MAX_EXPANSION, MAX_SUB_FILTERS, RedisCuckoo};
use crate::growing::redis::{can_allocate, parts};
use crate::growing::{RedisChunkError, RedisHeaderError, RedisHeaderErrorKind};

impl RedisCuckoo {
    /// Returns the header of a dump, which holds all but the slots.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let sub_filters = self.sub_filters.len() as u64;
        for (i, number) in
            [self.items, self.buckets(), self.removed, sub_filters].into_iter().enumerate()
        {
            header[8 * i..8 * i + 8].copy_from_slice(&number.to_le_bytes());
        }
        for (i, number) in
            [self.bucket_size, self.max_iterations, self.expansion].into_iter().enumerate()
        {
            header[32 + 2 * i..34 + 2 * i].copy_from_slice(&number.to_le_bytes());
        }
        header
    }

    /// Makes a filter by the header of a dump, all slots empty: its items are not found until the chunks
    /// are [loaded](Self::load_chunk).
    ///
    /// # Errors
    ///
    /// [`RedisHeaderError`] if no server wrote this, or there is not enough memory.
    pub fn from_header(header: &[u8]) -> Result<Self, RedisHeaderError> {
        let (field, found) = ("header", header.len());
        let length =
            RedisHeaderError { field, at: 0, kind: RedisHeaderErrorKind::Length { found } };
        if found != HEADER_BYTES {
            return Err(length);
        }
        let mut fields = parts::Fields::new(header);
        let (wide, narrow) = read(&mut fields).ok_or(length)?;
        let [items, buckets, removed, sub_filters] = wide;
        let [bucket_size, max_iterations, expansion] = narrow;
        let impossible =
            |field, at| RedisHeaderError { field, at, kind: RedisHeaderErrorKind::Value };
        if !(1..=MAX_BUCKET_SIZE).contains(&bucket_size) {
            return Err(impossible("bucket size", 32));
        }
        if max_iterations == 0 {
            return Err(impossible("max iterations", 34));
        }
        // One that is no power of two would make evictions lose items.
        if expansion > MAX_EXPANSION || expansion != 0 && !expansion.is_power_of_two() {
            return Err(impossible("expansion", 36));
        }
        // 65,536, which the server accepts, would be counted there as none.
        if !(1..=MAX_SUB_FILTERS as u64).contains(&sub_filters) || expansion == 0 && sub_filters > 1
        {
            return Err(impossible("sub-filters", 24));
        }
        if !buckets.is_power_of_two() || buckets > MAX_BUCKETS {
            return Err(impossible("buckets", 8));
        }
        // All sizes are checked before the first allocation.
        let (mut next, mut sum_bytes) = (Some(buckets), 0_u64);
        for _ in 0..sub_filters {
            sum_bytes = next
                .and_then(|buckets| buckets.checked_mul(u64::from(bucket_size)))
                .and_then(|bytes| sum_bytes.checked_add(bytes))
                // Positions are signed in commands.
                .filter(|&sum| sum < i64::MAX as u64 / 8)
                .ok_or(impossible("buckets", 8))?;
            next = next.and_then(|buckets| buckets.checked_mul(u64::from(expansion)));
        }
        let no_memory = |error| RedisHeaderError {
            field: "buckets",
            at: 8,
            kind: RedisHeaderErrorKind::Memory(error),
        };
        can_allocate(sum_bytes).map_err(no_memory)?;
        let first = SubFilter::zeroed(buckets, bucket_size).map_err(no_memory)?;
        let mut all = vec![first];
        let mut buckets = buckets;
        for _ in 1..sub_filters {
            buckets *= u64::from(expansion);
            all.push(SubFilter::zeroed(buckets, bucket_size).map_err(no_memory)?);
        }
        Ok(Self { sub_filters: all, items, removed, bucket_size, max_iterations, expansion })
    }

    /// Returns the chunk at a position, and the position behind it, at which the next chunk begins; none
    /// at the end, for 0, for a negative position and of a filter without items.
    ///
    /// The first position is 1. A sub-filter of at most 16 MiB is one chunk, whole even if the position
    /// is inside it, as the server has it: ask only for positions that a chunk came with.
    #[must_use]
    pub fn chunk(&self, position: i64) -> Option<(i64, Vec<u8>)> {
        if self.items == 0 {
            return None;
        }
        let start = u64::try_from(position).ok()?.checked_sub(1)?;
        let (i, at) = parts::find(self.sub_filters.iter().map(SubFilter::len_bytes), start)?;
        let sub_filter = &self.sub_filters[i];
        let len = sub_filter.len_bytes();
        let (at, len) = if len <= parts::MAX_CHUNK_BYTES {
            (0, len)
        } else {
            (at, (len - at).min(parts::MAX_CHUNK_BYTES))
        };
        Some((position + len as i64, parts::copy_out(sub_filter.words(), at, len)))
    }

    /// Overwrites the bytes that end before a position, as [`chunk`](Self::chunk) gave them with it.
    ///
    /// The counts are those of the header and stay.
    ///
    /// # Errors
    ///
    /// [`RedisChunkError`] if there are no bytes or they do not lie within one sub-filter; nothing has
    /// changed then.
    pub fn load_chunk(&mut self, position: i64, bytes: &[u8]) -> Result<(), RedisChunkError> {
        let len = bytes.len() as u64;
        let start = u64::try_from(position)
            .ok()
            .filter(|_| len > 0)
            .and_then(|position| position.checked_sub(1)?.checked_sub(len))
            .ok_or(RedisChunkError::Position)?;
        let (i, at) = parts::find(self.sub_filters.iter().map(SubFilter::len_bytes), start)
            .ok_or(RedisChunkError::Outside)?;
        let sub_filter = &mut self.sub_filters[i];
        if len > sub_filter.len_bytes() - at {
            return Err(RedisChunkError::TooLong);
        }
        parts::copy_in(sub_filter.words_mut(), at, bytes);
        Ok(())
    }
}

fn read(fields: &mut parts::Fields<'_>) -> Option<([u64; 4], [u16; 3])> {
    let wide = [fields.take()?, fields.take()?, fields.take()?, fields.take()?];
    let narrow = [fields.take()?, fields.take()?, fields.take()?];
    Some((wide.map(u64::from_le_bytes), narrow.map(u16::from_le_bytes)))
}

const HEADER_BYTES: usize = 38;

/// What the server's field of 56 bits holds.
const MAX_BUCKETS: u64 = (1 << 56) - 1;
