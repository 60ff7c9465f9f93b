//! Dumps and loads a scaling Bloom filter, like `BF.SCANDUMP` and `BF.LOADCHUNK`.
//!
//! The header contains little-endian numbers without padding:
//!
//! ```text
//! byte 0       8        12        16          20
//!      | items | layers | options | expansion | layer, 53 bytes | layer ... |
//!
//! layer 0       8      16      24     32              40       44         52
//!       | bytes | bits | items | rate | bits an item  | probes | capacity | log2 bits |
//!         u64     u64    u64     f64    f64             u32      u64        u8
//! ```
//!
//! The chunks of a dump follow the header. The chunks contain the bit arrays without gaps, oldest
//! layer first. The position of a chunk is the position of the byte after the chunk's last byte.
//! Positions start at 1.

use tamis::OutOfMemory;

use crate::bloom::layer::{Layer, RedisLayer};
use crate::bloom::{OPTION_FIXED, RedisBloom};
use crate::error::{RedisChunkError, RedisHeaderError, RedisHeaderErrorKind};
use crate::memory_limit::can_allocate;
use crate::not_compared::NotCompared;
use crate::parts;

impl RedisBloom {
    /// Returns the header of a dump. The header contains all fields of the filter except the bits.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEAD_BYTES + LAYER_BYTES * self.layers.len());
        header.extend(self.items.to_le_bytes());
        header.extend((self.layers.len() as u32).to_le_bytes());
        header.extend(self.options.to_le_bytes());
        header.extend(self.expansion.to_le_bytes());
        for layer in self.layers() {
            for number in [layer.bytes, layer.bits, layer.items] {
                header.extend(number.to_le_bytes());
            }
            header.extend(layer.rate.to_le_bytes());
            header.extend(layer.bits_per_item.to_le_bytes());
            header.extend(layer.probes.to_le_bytes());
            header.extend(layer.capacity.to_le_bytes());
            header.push(layer.log2_bits);
        }
        header
    }

    /// Creates a filter from the header of a dump, with all bits 0. The filter does not contain the
    /// items until the caller has [loaded](Self::load_chunk) all chunks.
    ///
    /// # Errors
    ///
    /// [`RedisHeaderError`] if no server can write this header, or if there is not enough memory.
    pub fn from_header(header: &[u8]) -> Result<Self, RedisHeaderError> {
        Self::from_header_within(header, u64::MAX)
    }

    /// Creates a filter from the header of a dump, like [`from_header`](Self::from_header), with a
    /// memory limit. All layers together may use at most `max_bytes`. Without a memory limit, a
    /// short header can request any amount of memory.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`from_header`](Self::from_header). If the filter would
    /// exceed `max_bytes`, the error kind is [`RedisHeaderErrorKind::Memory`].
    pub fn from_header_within(header: &[u8], max_bytes: u64) -> Result<Self, RedisHeaderError> {
        let found = header.len();
        let length = RedisHeaderError::new("layers", 8, RedisHeaderErrorKind::Length { found });
        let mut fields = parts::Fields::new(header);
        let (items, layers, options, expansion) = read_head(&mut fields).ok_or(length)?;
        let rest = (found - HEAD_BYTES) as u64;
        if rest != u64::from(layers) * LAYER_BYTES as u64 {
            return Err(length);
        }
        let impossible = RedisHeaderError::value;
        if layers == 0 {
            return Err(impossible("layers", 8));
        }
        if options >= OPTION_FIXED * 2 {
            return Err(impossible("options", 12));
        }
        // This loop checks all numbers of the header before the first allocation.
        let mut numbers = Vec::new();
        let (mut sum_items, mut sum_bytes) = (0_u64, 0_u64);
        for _ in 0..layers {
            let at = fields.at();
            let layer = read_layer(&mut fields).ok_or(length)?;
            if let Some(field) = layer.flaw() {
                return Err(impossible(field, at));
            }
            // The sum saturates, because inserts also saturate the item count of a filter.
            sum_items = sum_items.saturating_add(layer.items);
            // The limit of the sum keeps positions within an `i64`, because commands use signed
            // positions.
            sum_bytes = sum_bytes
                .checked_add(layer.bytes.next_multiple_of(8))
                .filter(|&sum| sum < i64::MAX as u64 / 8)
                .ok_or(impossible("bytes", at))?;
            numbers.push(layer);
        }
        if sum_items != items {
            return Err(impossible("items", 0));
        }
        let no_memory =
            |error| RedisHeaderError::new("bytes", HEAD_BYTES, RedisHeaderErrorKind::Memory(error));
        can_allocate(sum_bytes, max_bytes).map_err(no_memory)?;
        let layers: Result<Vec<Layer>, OutOfMemory> =
            numbers.into_iter().map(Layer::zeroed).collect();
        let (layers, growth_limit) = (layers.map_err(no_memory)?, NotCompared::default());
        Ok(Self { layers, items, options, expansion, growth_limit })
    }

    /// Returns the chunk at a position, and the position of the next chunk. Returns `None` after
    /// the last chunk, for position 0 and for a negative position.
    ///
    /// The first position is 1. A chunk has at most 16 MiB and contains bytes of only one layer.
    #[must_use]
    pub fn chunk(&self, position: i64) -> Option<(i64, Vec<u8>)> {
        let start = u64::try_from(position).ok()?.checked_sub(1)?;
        let (i, at) = parts::find(self.layers().map(|layer| layer.bytes), start)?;
        let layer = &self.layers[i];
        let len = (layer.numbers().bytes - at).min(parts::MAX_CHUNK_BYTES);
        Some((position + len as i64, parts::copy_out(layer.words(), at, len)))
    }

    /// Loads a chunk that [`chunk`](Self::chunk) returned. `position` is the position that `chunk`
    /// returned together with the bytes: the position after the last byte of the chunk.
    ///
    /// This method does not change the item counts, which come from the header.
    ///
    /// # Errors
    ///
    /// [`RedisChunkError`] if the bytes are not within one layer. After an error, the filter is
    /// unchanged.
    pub fn load_chunk(&mut self, position: i64, bytes: &[u8]) -> Result<(), RedisChunkError> {
        let len = bytes.len() as u64;
        let start = u64::try_from(position)
            .ok()
            .filter(|&position| position > 0)
            .and_then(|position| position.checked_sub(len))
            .ok_or(RedisChunkError::Position)?;
        let start = start.checked_sub(1).ok_or(RedisChunkError::Outside)?;
        let (i, at) = parts::find(self.layers().map(|layer| layer.bytes), start)
            .ok_or(RedisChunkError::Outside)?;
        let layer = &mut self.layers[i];
        if len > layer.numbers().bytes - at {
            return Err(RedisChunkError::TooLong);
        }
        parts::copy_in(layer.words_mut(), at, bytes);
        Ok(())
    }

    /// Returns the total length of all bit arrays, in bytes.
    pub(super) fn len_bytes(&self) -> u64 {
        self.layers().map(|layer| layer.bytes).sum()
    }
}

fn read_head(fields: &mut parts::Fields<'_>) -> Option<(u64, u32, u32, u32)> {
    let items = u64::from_le_bytes(fields.take()?);
    let [layers, options, expansion] =
        [fields.take()?, fields.take()?, fields.take()?].map(u32::from_le_bytes);
    Some((items, layers, options, expansion))
}

fn read_layer(fields: &mut parts::Fields<'_>) -> Option<RedisLayer> {
    Some(RedisLayer {
        bytes: u64::from_le_bytes(fields.take()?),
        bits: u64::from_le_bytes(fields.take()?),
        items: u64::from_le_bytes(fields.take()?),
        rate: f64::from_le_bytes(fields.take()?),
        bits_per_item: f64::from_le_bytes(fields.take()?),
        probes: u32::from_le_bytes(fields.take()?),
        capacity: u64::from_le_bytes(fields.take()?),
        log2_bits: u8::from_le_bytes(fields.take()?),
    })
}

const HEAD_BYTES: usize = 20;
const LAYER_BYTES: usize = 53;
