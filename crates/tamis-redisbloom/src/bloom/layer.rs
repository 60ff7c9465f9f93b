//! One layer of a RedisBloom filter, with parameters and bits.

use tamis::{Bitmap, Bits as _, BitsMut as _, OutOfMemory};

use crate::double_hashing::{DoubleHashing, RedisHash, filter_ones};
use crate::error::RedisInsertError;
use crate::memory_limit::GrowthLimit;

/// The parameters of a layer of a [`RedisBloom`](crate::RedisBloom). A dump and the reply to
/// `BF.DEBUG` contain the parameters of each layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedisLayer {
    /// The length of the bit array, in bytes.
    pub bytes: u64,
    /// The length of the bit array, in bits: eight times `bytes`.
    pub bits: u64,
    /// The number of new items that the filter inserted while this layer was the newest layer.
    pub items: u64,
    /// The planned false positive rate of the layer.
    pub rate: f64,
    /// The planned number of bits per item: |ln rate| / (ln 2)².
    pub bits_per_item: f64,
    /// The number of probes per item: ⌈ln 2 × bits per item⌉.
    pub probes: u32,
    /// The number of items at which the layer is full.
    pub capacity: u64,
    /// The field is zero in filters of current servers. In filters of very old servers, the field
    /// is the binary logarithm of the number of used bits.
    pub log2_bits: u8,
}

impl RedisLayer {
    /// Plans a layer with the server's constants and floating-point arithmetic. Returns `None` if
    /// the layer would be too large.
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

    /// Tests whether the layer has less than half of the bits that a server plans for the layer's
    /// capacity and rate.
    pub(super) fn has_too_few_bits(&self) -> bool {
        Self::plan(self.capacity, self.rate).is_none_or(|plan| plan.bytes / 2 > self.bytes)
    }

    /// Returns the name of the first field with an impossible value. The possible values of a field
    /// depend on the previous fields.
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

/// The server's constants for ln 2 and (ln 2)². The constants are not the nearest floating-point
/// numbers.
#[expect(clippy::approx_constant, reason = "other digits would change sizes")]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;

/// The maximum number of bits of a layer, far more than any memory. In a layer of at most 2⁶² bits,
/// all sums of positions fit in an `i64`.
const MAX_BITS: f64 = (1_u64 << 62) as f64;

/// The number of probes for the smallest rate above zero. No server writes a header with more than
/// 1075 probes. An attacker could forge a header with more probes to make each lookup slow.
const MAX_PROBES: u32 = 1075;

/// A layer: the parameters and the bits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layer {
    // Invariants: `numbers.flaw()` returns `None`. `bits` has `numbers.bytes` bytes, rounded up to
    // whole words.
    numbers: RedisLayer,
    rule: DoubleHashing,
    bits: Bitmap,
}

impl Layer {
    /// Creates an empty layer.
    pub(super) fn new(capacity: u64, rate: f64) -> Result<Self, RedisInsertError> {
        Self::within(capacity, rate, GrowthLimit::default())
    }

    /// Creates an empty layer. Returns an error if the bits of the layer exceed `limit`.
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

    /// Returns the heap memory of the bits, in bytes.
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

    /// Sets the filter bits that `hash` selects. If at least one of the selected bits was not set,
    /// counts the item and returns true.
    #[inline]
    pub(super) fn insert(&mut self, hash: RedisHash) -> bool {
        let is_new = self.rule.insert(self.bits.words_mut(), hash);
        self.numbers.items += u64::from(is_new);
        is_new
    }

    /// Tests up to 64 hashes. Skips hash `i` unless bit `i` of `selected` is set. Bit `i` of the
    /// result is set if hash `i` is selected, and the layer may contain hash `i`.
    pub(super) fn contains_batch(&self, hashes: &[RedisHash], selected: u64) -> u64 {
        if self.numbers.bytes >= PREFETCH_FROM_BYTES {
            return self.rule.contains_batch(self.bits.words(), hashes, selected);
        }
        filter_ones(selected, |i| self.contains(hashes[i]))
    }

    /// Prefetches the memory of all probes of an item, unless the layer is small.
    #[inline]
    pub(super) fn prefetch(&self, hash: RedisHash) {
        if self.numbers.bytes >= PREFETCH_FROM_BYTES {
            self.rule.prefetch(self.bits.words(), hash);
        }
    }
}

/// The smallest size of a layer with prefetching, in bytes. Layers below this size fit in the L2
/// cache.
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
