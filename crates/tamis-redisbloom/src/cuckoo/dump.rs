//! Dumps and loads a cuckoo filter, like `CF.SCANDUMP` and `CF.LOADCHUNK`.
//!
//! The header has 38 bytes. The numbers of the header are little-endian, without padding:
//!
//! ```text
//! byte 0       8         16        24            32            34               36
//!      | items | buckets | removed | sub-filters | bucket size | max iterations | expansion |
//!        u64     u64       u64       u64           u16           u16              u16
//! ```
//!
//! The chunks of a dump follow the header. The chunks contain the slots without padding, oldest
//! sub-filter first. The position of a chunk is the position of the byte after the chunk's last
//! byte. Positions start at 1.

use crate::cuckoo::options::{MAX_BUCKET_SIZE, MAX_EXPANSION};
use crate::cuckoo::sub_filter::SubFilter;
use crate::cuckoo::{MAX_SUB_FILTERS, RedisCuckoo};
use crate::error::{RedisChunkError, RedisHeaderError, RedisHeaderErrorKind};
use crate::memory_limit::can_allocate;
use crate::parts;

impl RedisCuckoo {
    /// Returns the header of a dump. The header contains all fields of the filter except the slots.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let wide = [self.items, self.buckets(), self.removed, self.sub_filters.len() as u64];
        let narrow = [self.bucket_size, self.max_iterations, self.expansion];
        let (wide, narrow) = (wide.map(u64::to_le_bytes), narrow.map(u16::to_le_bytes));
        let mut header = [0; HEADER_BYTES];
        let (head, tail) = header.split_at_mut(size_of_val(&wide));
        head.copy_from_slice(wide.as_flattened());
        tail.copy_from_slice(narrow.as_flattened());
        header
    }

    /// Creates a filter from the header of a dump, with all slots empty. The filter does not
    /// contain the items until the caller has [loaded](Self::load_chunk) all chunks.
    ///
    /// # Errors
    ///
    /// [`RedisHeaderError`] if no server can write this header, or if there is not enough memory.
    pub fn from_header(header: &[u8]) -> Result<Self, RedisHeaderError> {
        Self::from_header_within(header, u64::MAX)
    }

    /// Creates a filter from the header of a dump, like [`from_header`](Self::from_header), with a
    /// memory limit. All slots together may use at most `max_bytes`. Without a memory limit, a
    /// short header can request any amount of memory.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`from_header`](Self::from_header). If the filter would
    /// exceed `max_bytes`, the error kind is [`RedisHeaderErrorKind::Memory`].
    pub fn from_header_within(header: &[u8], max_bytes: u64) -> Result<Self, RedisHeaderError> {
        let found = header.len();
        let length = RedisHeaderError::new("header", 0, RedisHeaderErrorKind::Length { found });
        if found != HEADER_BYTES {
            return Err(length);
        }
        let mut fields = parts::Fields::new(header);
        let (wide, narrow) = read(&mut fields).ok_or(length)?;
        let [items, buckets, removed, sub_filters] = wide;
        let [bucket_size, max_iterations, expansion] = narrow;
        let impossible = RedisHeaderError::value;
        if !(1..=MAX_BUCKET_SIZE).contains(&bucket_size) {
            return Err(impossible("bucket size", 32));
        }
        if max_iterations == 0 {
            return Err(impossible("max iterations", 34));
        }
        // If the expansion were not a power of two, moves between buckets would lose items.
        if expansion > MAX_EXPANSION || expansion != 0 && !expansion.is_power_of_two() {
            return Err(impossible("expansion", 36));
        }
        // RedisBloom accepts 65,536 sub-filters and stores the number as zero. This function
        // rejects 65,536 sub-filters.
        if !(1..=MAX_SUB_FILTERS as u64).contains(&sub_filters) || expansion == 0 && sub_filters > 1
        {
            return Err(impossible("sub-filters", 24));
        }
        if !buckets.is_power_of_two() || buckets > MAX_BUCKETS {
            return Err(impossible("buckets", 8));
        }
        let sizes = std::iter::successors(Some(buckets), |it| it.checked_mul(expansion.into()));
        let sizes = sizes.take(sub_filters as usize);
        // The code checks the sizes of all sub-filters before the first allocation.
        let sum_bytes = sizes.clone().try_fold(0_u64, |sum, buckets| {
            sum.checked_add(buckets.checked_mul(bucket_size.into())?)
        });
        let is_whole = sizes.clone().count() as u64 == sub_filters;
        // The limit of the sum keeps positions within an `i64`, because commands use signed
        // positions.
        let sum_bytes = sum_bytes
            .filter(|&sum| is_whole && sum < i64::MAX as u64 / 8)
            .ok_or(impossible("buckets", 8))?;
        let no_memory =
            |error| RedisHeaderError::new("buckets", 8, RedisHeaderErrorKind::Memory(error));
        can_allocate(sum_bytes, max_bytes).map_err(no_memory)?;
        let all: Result<Vec<_>, _> =
            sizes.map(|buckets| SubFilter::zeroed(buckets, bucket_size)).collect();
        let all = all.map_err(no_memory)?;
        Ok(Self { items, removed, ..Self::of(all, bucket_size, max_iterations, expansion) })
    }

    /// Returns the chunk at a position, and the position of the next chunk. Returns `None` after
    /// the last chunk, for position 0, for a negative position, and for an empty filter.
    ///
    /// A filter is empty only if the item count is zero and all slots are empty. The item count in
    /// a [header](Self::from_header) may be lower than the number of loaded fingerprints.
    ///
    /// The first position is 1. A sub-filter of at most 16 MiB is one chunk. If a sub-filter is one
    /// chunk, this method returns the whole chunk for each position inside the sub-filter, as
    /// RedisBloom does. Pass only 1 or a position that this method has returned.
    #[must_use]
    pub fn chunk(&self, position: i64) -> Option<(i64, Vec<u8>)> {
        let is_blank = |it: &SubFilter| it.words().iter().all(|word| *word == 0);
        if self.items == 0 && self.sub_filters.iter().all(is_blank) {
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

    /// Loads a chunk that [`chunk`](Self::chunk) returned. `position` is the position that `chunk`
    /// returned together with the bytes: the position after the last byte of the chunk.
    ///
    /// This method does not change the item counts, which come from the header.
    ///
    /// # Errors
    ///
    /// [`RedisChunkError`] if `bytes` is empty, or if the bytes are not within one sub-filter.
    /// After an error, the filter is unchanged.
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

/// The maximum number of buckets. RedisBloom stores the number of buckets in 56 bits.
const MAX_BUCKETS: u64 = (1 << 56) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuckoo::RedisCuckooOptions;
    use crate::cuckoo::tests::{filled, reloaded};

    #[test]
    fn flawed_headers_are_refused() {
        let header = RedisCuckoo::new(&RedisCuckooOptions::default()).unwrap().header();
        assert!(RedisCuckoo::from_header(&header).is_ok());
        for len in (0..38).chain([39]) {
            let mut header = header.to_vec();
            header.resize(len, 0);
            let error = RedisCuckoo::from_header(&header).unwrap_err();
            assert_eq!(error.kind, RedisHeaderErrorKind::Length { found: len });
        }
        for (at, bytes, field) in [
            (8, &[0_u8; 8][..], "buckets"),
            (8, &[3, 0, 0, 0, 0, 0, 0, 0], "buckets"),
            (8, &[0, 0, 0, 0, 0, 0, 0, 1], "buckets"),
            (24, &[0; 8], "sub-filters"),
            (24, &[0, 0, 1, 0, 0, 0, 0, 0], "sub-filters"),
            (32, &[0, 0], "bucket size"),
            (32, &[0, 1], "bucket size"),
            (34, &[0, 0], "max iterations"),
            (36, &[3, 0], "expansion"),
            (36, &[255, 255], "expansion"),
        ] {
            let mut header = header;
            header[at..at + bytes.len()].copy_from_slice(bytes);
            let error = RedisCuckoo::from_header(&header).unwrap_err();
            assert_eq!((error.field, error.at), (field, at));
        }
        let mut header = header;
        header[24] = 2;
        header[36] = 0;
        assert_eq!(RedisCuckoo::from_header(&header).unwrap_err().field, "sub-filters");
        header[36..38].copy_from_slice(&(1_u16 << 15).to_le_bytes());
        header[24] = 9;
        assert_eq!(RedisCuckoo::from_header(&header).unwrap_err().field, "buckets", "overflow");
        header[24] = 3;
        header[9] = 0x80;
        let error = RedisCuckoo::from_header(&header).unwrap_err();
        assert!(matches!(error.kind, RedisHeaderErrorKind::Memory(_)), "{error:?}");
    }

    #[test]
    fn chunks_outside_the_filter_are_refused_as_by_the_server() {
        let options = RedisCuckooOptions { capacity: 32, ..Default::default() };
        let mut filter = filled(&options, 0..1);
        let before = filter.clone();
        for (position, len, error) in [
            (0, 1, RedisChunkError::Position),
            (-1, 1, RedisChunkError::Position),
            (i64::MIN, 1, RedisChunkError::Position),
            (1, 1, RedisChunkError::Position),
            (33, 0, RedisChunkError::Position),
            (34, 1, RedisChunkError::Outside),
            (i64::MAX, 1, RedisChunkError::Outside),
            (34, 33, RedisChunkError::TooLong),
            (35, 20, RedisChunkError::TooLong),
        ] {
            assert_eq!(filter.load_chunk(position, &vec![1; len]), Err(error), "{position} {len}");
            assert_eq!(filter, before);
        }
        assert_eq!(filter.chunk(9), filter.chunk(1).map(|(_, bytes)| (41, bytes)), "whole");
        for position in [0, -1, 33, i64::MAX, i64::MIN] {
            assert!(filter.chunk(position).is_none(), "{position}");
        }
        assert!(filled(&options, []).chunk(1).is_none(), "an empty filter has no chunks");
    }

    #[test]
    fn large_sub_filters_are_dumped_in_chunks_of_16_mib() {
        let options = RedisCuckooOptions { capacity: 1 << 25, ..Default::default() };
        let filter = filled(&options, 0..1000);
        let (next, bytes) = filter.chunk(1).unwrap();
        assert_eq!((next, bytes.len()), ((16 << 20) + 1, 16 << 20));
        assert_eq!(filter.chunk(9).unwrap().0, next + 8, "from inside");
        assert_eq!(reloaded(&filter), filter);
    }
}
