//! A layer of a RedisBloom filter: its parameters and its bits.

use tamis::{Bitmap, Bits as _, BitsMut as _, OutOfMemory};

use crate::double_hashing::{DoubleHashing, RedisHash, filter_ones};
use crate::error::RedisInsertError;
use crate::memory_limit::GrowthLimit;

/// The parameters of a layer of a [`RedisBloom`](crate::RedisBloom), as `BF.DEBUG` and dumps
/// contain them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedisLayer {
    /// Bytes of the bit array.
    pub bytes: u64,
    /// Bits of the bit array: eight times the bytes.
    pub bits: u64,
    /// The number of items that were counted as new while this layer was the newest.
    pub items: u64,
    /// The false positive rate that the layer is planned for.
    pub rate: f64,
    /// Bits for each item of the capacity: |ln rate| / (ln 2)².
    pub bits_per_item: f64,
    /// Probes of an item: ⌈ln 2 × bits per item⌉.
    pub probes: u32,
    /// Items until the layer is full.
    pub capacity: u64,
    /// Zero. In filters of very old servers, the logarithm of the number of bits in use.
    pub log2_bits: u8,
}

impl RedisLayer {
    /// Plans a layer, in doubles and with the server's constants. Returns `None` if it is too
    /// large.
    fn plan(capacity: u64, rate: f64) -> Option<Self> {
        let bits_per_item = rate.ln().abs() / LN_2_SQUARED;
        let bits = capacity as f64 * bits_per_item;
        if bits >= MAX_BITS {
            return None;
        }
        let bytes = 8 * (bits as u64).max(1).div_ceil(64);
        let probes = (LN_2 * bits_per_item).ceil() as u32;
        let (bits, items, log2_bits) = (8 * bytes, 0, 0);
        Some(Self { bytes, bits, items, rate, bits_per_item, probes, capacity, log2_bits })
    }

    /// Returns true if the layer has less than half of the bits that a server plans for its
    /// capacity and rate.
    pub(super) fn has_too_few_bits(&self) -> bool {
        Self::plan(self.capacity, self.rate).is_none_or(|plan| plan.bytes / 2 > self.bytes)
    }

    /// Returns the name of the first field that has an impossible value. The fields before it
    /// determine which values are possible.
    pub(super) fn flaw(&self) -> Option<&'static str> {
        let probes = (LN_2 * self.bits_per_item).ceil();
        if !(self.rate > 0.0 && self.rate < 1.0) {
            Some("rate")
        } else if self.bits == 0 || self.bytes.checked_mul(8) != Some(self.bits) {
            Some("bits")
        } else if self.log2_bits > 63 || self.log2_bits != 0 && self.bits >> self.log2_bits == 0 {
            Some("log2_bits")
        } else if f64::from(self.probes) != probes || self.probes > MAX_PROBES {
            Some("probes")
        } else {
            None
        }
    }
}

/// The server's (ln 2)² and ln 2, which are not the nearest doubles.
#[expect(clippy::approx_constant, reason = "other digits would change sizes")]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;

/// The largest number of bits of a layer, which is far more than fits in memory. Below this limit,
/// all sums of positions fit in an `i64`.
const MAX_BITS: f64 = (1_u64 << 62) as f64;

/// The number of probes for the smallest rate above zero. A header with more probes was forged to
/// make each lookup slow.
const MAX_PROBES: u32 = 1075;

/// A layer with its bits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layer {
    // Invariant: `flaw()` finds none, and `bits` holds `numbers.bytes` bytes, rounded up to words.
    numbers: RedisLayer,
    rule: DoubleHashing,
    bits: Bitmap,
}

impl Layer {
    /// Creates an empty layer.
    pub(super) fn new(capacity: u64, rate: f64) -> Result<Self, RedisInsertError> {
        Self::within(capacity, rate, GrowthLimit::default())
    }

    /// Creates an empty layer, if its bits are within a limit.
    pub(super) fn within(
        capacity: u64,
        rate: f64,
        limit: GrowthLimit,
    ) -> Result<Self, RedisInsertError> {
        if rate == 0.0 {
            return Err(RedisInsertError::Rate);
        }
        let numbers = RedisLayer::plan(capacity, rate).ok_or(RedisInsertError::TooLarge)?;
        limit.check(numbers.bytes)?;
        Self::zeroed(numbers).map_err(RedisInsertError::Memory)
    }

    /// Creates a layer from valid parameters, with all bits 0.
    pub(super) fn zeroed(numbers: RedisLayer) -> Result<Self, OutOfMemory> {
        let modulus = match numbers.log2_bits {
            0 => numbers.bits,
            log2 => 1 << log2,
        };
        let bits = Bitmap::zeroed(numbers.bits)?;
        Ok(Self { numbers, rule: DoubleHashing::new(modulus, numbers.probes), bits })
    }

    pub(super) fn numbers(&self) -> &RedisLayer {
        &self.numbers
    }

    /// Returns the memory of the bits, in bytes.
    pub(super) fn heap_bytes(&self) -> u64 {
        self.bits.heap_bytes()
    }

    pub(super) fn words(&self) -> &[u64] {
        self.bits.words()
    }

    /// Removes all items.
    pub(super) fn clear(&mut self) {
        self.bits.words_mut().fill(0);
        self.numbers.items = 0;
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        self.bits.words_mut()
    }

    pub(super) fn is_full(&self) -> bool {
        self.numbers.items >= self.numbers.capacity
    }

    #[inline]
    pub(super) fn contains(&self, hash: RedisHash) -> bool {
        self.rule.contains(self.bits.words(), hash)
    }

    /// Sets the bits of `hash`. If one of them was not set, counts the item and returns true.
    #[inline]
    pub(super) fn insert(&mut self, hash: RedisHash) -> bool {
        let is_new = self.rule.insert(self.bits.words_mut(), hash);
        self.numbers.items += u64::from(is_new);
        is_new
    }

    /// Tests up to 64 hashes. Tests only hash `i` for which bit `i` of `selected` is set. Bit `i`
    /// of the result is set if hash `i` was selected and may be present.
    pub(super) fn contains_batch(&self, hashes: &[RedisHash], selected: u64) -> u64 {
        if self.numbers.bytes >= PREFETCH_FROM_BYTES {
            return self.rule.contains_batch(self.bits.words(), hashes, selected);
        }
        filter_ones(selected, |i| self.contains(hashes[i]))
    }

    /// Prefetches the memory of an item, unless the layer is small.
    #[inline]
    pub(super) fn prefetch(&self, hash: RedisHash) {
        if self.numbers.bytes >= PREFETCH_FROM_BYTES {
            self.rule.prefetch(self.bits.words(), hash);
        }
    }
}

/// Smaller layers fit in the L2 cache.
const PREFETCH_FROM_BYTES: u64 = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_sized_as_by_the_server() {
        let layer = RedisLayer::plan(100, 0.005).unwrap();
        assert_eq!((layer.probes, layer.bytes, layer.bits), (8, 144, 1152));
        let layer = RedisLayer::plan(100, 0.01).unwrap();
        assert_eq!((layer.probes, layer.bytes), (7, 120));
        assert_eq!(RedisLayer::plan(1, 5e-301).unwrap().probes, 998);
        assert_eq!(RedisLayer::plan(0, 0.5).unwrap().bytes, 8, "never empty");
        assert_eq!(RedisLayer::plan(1, 5e-324).unwrap().probes, MAX_PROBES);
    }

    #[test]
    fn absurd_layers_are_refused() {
        assert_eq!(Layer::new(10, 0.0), Err(RedisInsertError::Rate));
        assert_eq!(Layer::new(u64::MAX, 0.01), Err(RedisInsertError::TooLarge));
        assert!(matches!(Layer::new(1 << 55, 0.01), Err(RedisInsertError::Memory(_))));
    }

    #[test]
    fn each_flaw_is_named() {
        let good = RedisLayer::plan(100, 0.005).unwrap();
        assert_eq!(good.flaw(), None);
        for (flawed, field) in [
            (RedisLayer { rate: 0.0, ..good }, "rate"),
            (RedisLayer { rate: 1.0, ..good }, "rate"),
            (RedisLayer { rate: f64::NAN, ..good }, "rate"),
            (RedisLayer { bits: 0, bytes: 0, ..good }, "bits"),
            (RedisLayer { bits: 1151, ..good }, "bits"),
            (RedisLayer { bytes: 1 << 61 | 144, ..good }, "bits"),
            (RedisLayer { log2_bits: 64, ..good }, "log2_bits"),
            (RedisLayer { log2_bits: 11, ..good }, "log2_bits"),
            (RedisLayer { probes: 9, ..good }, "probes"),
            (RedisLayer { bits_per_item: f64::NAN, ..good }, "probes"),
            (RedisLayer { bits_per_item: 2000.0, probes: 1387, ..good }, "probes"),
        ] {
            assert_eq!(flawed.flaw(), Some(field), "{flawed:?}");
        }
        assert_eq!(RedisLayer { log2_bits: 10, ..good }.flaw(), None);
    }
}
