//! The header of a shard: the first 64 bytes of the string of the shard.
//!
//! ```text
//! byte  0 "TM"          magic
//!       2 0001 ..rn     version; r: retired, n: a newer generation exists or is being built
//!       3 layers        the number of layers of the shard; only layer 0 is authoritative
//!       4 generation    big-endian, as in the key
//!       8 counter       items that were added to this layer, big-endian
//!      16 capacity      items that this layer is planned for
//!      24 bits          of this layer
//!      32 probes        of this layer
//!      40 zero
//! ```
//!
//! Bytes 0 to 7 are the state word. Every command on the bits of a shard also reads the state word.
//! If a key does not exist, Redis returns zeros, and the state word lacks the magic number. A
//! client therefore distinguishes a lost shard from an empty shard.

use crate::layouts::geometry::{HEADER_BYTES, LayerGeometry};

/// The bit offset of the counter.
pub(crate) const COUNTER_OFFSET: u64 = 64;

/// The bit offset of the flag `r`: the generation is retired.
pub(crate) const RETIRED_OFFSET: u64 = 22;

/// The bit offset of the flag `n`: a newer generation exists or is being built.
pub(crate) const HAS_NEXT_OFFSET: u64 = 23;

const MAGIC: u64 = 0x544d;
const VERSION: u64 = 1;

/// The state word of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) is_retired: bool,
    pub(crate) has_next: bool,
    pub(crate) layers: u8,
    pub(crate) generation: u32,
}

impl State {
    /// Returns the state of a shard with only one layer.
    pub(crate) const fn new(generation: u32) -> Self {
        Self { is_retired: false, has_next: false, layers: 1, generation }
    }

    /// Decodes the reply to `GET i64 0`. Returns `None` if the word is not the state word of a
    /// shard.
    pub(crate) fn decode(word: i64) -> Option<Self> {
        let word = word.cast_unsigned();
        let layers = (word >> 32) as u8;
        (word >> 48 == MAGIC && word >> 44 & 0xf == VERSION && layers > 0).then_some(Self {
            is_retired: word >> 41 & 1 == 1,
            has_next: word >> 40 & 1 == 1,
            layers,
            generation: word as u32,
        })
    }

    fn encode(self) -> u64 {
        let flags = u64::from(self.is_retired) << 1 | u64::from(self.has_next);
        MAGIC << 48
            | VERSION << 44
            | flags << 40
            | u64::from(self.layers) << 32
            | u64::from(self.generation)
    }
}

/// Returns the header of a new layer.
pub(crate) fn header(state: State, layer: LayerGeometry) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    let words = [state.encode(), 0, layer.capacity, layer.bits, layer.probes.into()];
    for (bytes, word) in header.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_be_bytes();
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYER: LayerGeometry = LayerGeometry { bits: 1000, probes: 3, capacity: 80 };

    #[test]
    fn a_state_is_decoded_from_its_header() {
        for (is_retired, has_next) in [(false, false), (true, false), (false, true)] {
            let state = State { is_retired, has_next, layers: 5, generation: 0xdead_beef };
            let header = header(state, LAYER);
            let word = i64::from_be_bytes(header[..8].try_into().unwrap());
            assert_eq!(State::decode(word), Some(state));
            let bit = |offset: u64| header[offset as usize / 8] >> (7 - offset % 8) & 1 == 1;
            assert_eq!((bit(RETIRED_OFFSET), bit(HAS_NEXT_OFFSET)), (is_retired, has_next));
        }
    }

    #[test]
    fn zeros_and_foreign_words_are_no_state() {
        for word in [0, -1, i64::MAX, 0x544d_1000_0000_0001, 0x544d_2001_0000_0001] {
            assert_eq!(State::decode(word), None, "{word:x}");
        }
    }
}
