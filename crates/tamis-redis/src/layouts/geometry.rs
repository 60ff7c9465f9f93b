//! The positions of the bits of an item: the shards of a filter, and the layers of a shard.
//!
//! Each probe costs an operation of the server, but a bit costs only memory. A plan therefore uses
//! the smallest number of probes with which the filter takes at most 1.3 times the optimal number
//! of bits. At a rate of 1 %, a plan has three probes and 12.4 bits for each item. The optimum at a
//! rate of 1 % has seven probes and 9.6 bits for each item.

use crate::rates::{Spread, shard_rate};

/// The length of the header of a shard in bytes. The bits follow the header.
pub(crate) const HEADER_BYTES: u64 = 64;

/// The largest number of shards of a filter.
pub(crate) const MAX_SHARDS: u32 = 1 << 20;

/// The largest number of shards of all generations of a filter.
pub(crate) const MAX_ALL_SHARDS: u64 = 1 << 22;

/// The smallest size of a filter, in bytes, with at least [`MIN_SHARDS`] shards.
const SPREAD_BYTES: u64 = 4 << 20;

/// The smallest number of shards of a large filter. With 48 shards, the memory of three nodes of a
/// cluster differs by only some per cent.
const MIN_SHARDS: u64 = 48;

/// The largest number of bits of a layer after the first layer: 64 MiB.
const MAX_LAYER_BITS: u64 = 1 << 29;

/// The largest number of layers of a shard. If a shard has the largest number of layers, the newest
/// layer accepts all further items.
pub(crate) const MAX_LAYERS: u8 = 24;

/// How a filter behaves when the filter holds its planned number of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisGrowth {
    /// The filter accepts more items, and its false positive rate rises above the planned rate.
    Fixed,
    /// If a shard is full, the shard gets a new layer of twice the size of the previous layer, up
    /// to 64 MiB. The rate of the whole filter stays at or below the planned rate. The first layer
    /// with `Doubling` takes about a third more memory than the first layer with `Fixed`.
    Doubling,
}

/// The sizes that determine the positions of the bits of an item. All clients of a filter must
/// compute the same bit positions for an item. The metadata therefore stores the sizes of the first
/// layer, and integer arithmetic computes the sizes of each later layer from the sizes of the first
/// layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardGeometry {
    pub(crate) shards: u32,
    /// The number of bits of a shard in the first layer, without the header.
    pub(crate) bits: u64,
    pub(crate) probes: u32,
    /// The planned number of items of a shard in the first layer.
    pub(crate) capacity: u64,
}

/// The sizes of one layer of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayerGeometry {
    pub(crate) bits: u64,
    pub(crate) probes: u32,
    pub(crate) capacity: u64,
}

impl ShardGeometry {
    /// Plans the shards. Returns `None` if the filter needs too many shards.
    pub(crate) fn planned(
        items: u64,
        rate: f64,
        growth: RedisGrowth,
        max_bytes: u64,
    ) -> Option<Self> {
        let layer_rate = if growth == RedisGrowth::Doubling { rate / 2.0 } else { rate };
        let probes = fewest_probes(layer_rate);
        let capacity_of = |shards: u32| {
            let mean = items as f64 / f64::from(shards);
            match growth {
                // A shard must not grow while the filter holds at most the planned items. Some
                // shards get more items than the mean, so the capacity is above the mean.
                RedisGrowth::Doubling if shards > 1 => (mean + 4.0 * mean.sqrt()).ceil() as u64,
                _ => items.div_ceil(shards.into()),
            }
        };
        let size_of = |shards: u32| {
            let bits = match growth {
                RedisGrowth::Doubling => Spread::new(capacity_of(shards), 1),
                RedisGrowth::Fixed => Spread::new(items, shards),
            }
            .least_bits(layer_rate, probes);
            allocated(HEADER_BYTES + bits / 8)
        };
        let ideal = items as f64 * bits_per_item(layer_rate, probes) / 8.0;
        let alone = SPREAD_BYTES.min(max_bytes);
        let shards = if ideal < alone as f64 && size_of(1) <= alone {
            1
        } else {
            let least = (ideal / max_bytes as f64).ceil() as u64;
            let least = u32::try_from(least.max(MIN_SHARDS)).ok()?;
            // The allocator of the server rounds each allocation up to a fixed size. Some numbers
            // of shards waste less memory by rounding than other numbers of shards.
            let most = least.saturating_add(least.min(64)).min(MAX_SHARDS);
            (least..=most)
                .filter_map(|shards| {
                    let bytes = size_of(shards);
                    (bytes <= max_bytes).then_some((u64::from(shards) * bytes, shards))
                })
                .min()?
                .1
        };
        // The allocator rounds the size of a shard up, and the bits use the bytes that rounding
        // adds.
        let bits = 8 * (size_of(shards) - ALLOCATION_OVERHEAD - HEADER_BYTES);
        Some(Self { shards, bits, probes, capacity: capacity_of(shards) })
    }

    /// Returns the sizes of a layer. Each layer has one more probe and two more bits an item than
    /// the previous layer. The rate of a layer is therefore at most half the rate of the previous
    /// layer.
    pub(crate) fn layer(&self, layer: u8) -> LayerGeometry {
        let extra = 2 * u64::from(layer);
        let bits = |doublings: u8| (self.bits << doublings) + extra * (self.capacity << doublings);
        let doublings = (0..=layer.min(20)).rev().find(|&d| d == 0 || bits(d) <= MAX_LAYER_BITS);
        let doublings = doublings.expect("zero is in the range");
        LayerGeometry {
            bits: bits(doublings).next_multiple_of(8),
            probes: self.probes + u32::from(layer),
            capacity: self.capacity << doublings,
        }
    }

    /// Returns the shard of an item.
    #[inline]
    pub(crate) fn shard(&self, hash: u64) -> u32 {
        multiply_shift(hash, self.shards.into()) as u32
    }
}

impl LayerGeometry {
    /// Returns the length of the string of a layer in bytes, with the header.
    pub(crate) fn bytes(&self) -> u64 {
        HEADER_BYTES + self.bits / 8
    }

    /// Returns the bit offsets of an item in the string of its shard.
    #[inline]
    pub(crate) fn offsets(&self, hash: u64) -> impl Iterator<Item = u64> + use<> {
        let bits = self.bits;
        (1..=u64::from(self.probes)).map(move |i| {
            let word = split_mix(hash.wrapping_add(i.wrapping_mul(GOLDEN)));
            8 * HEADER_BYTES + multiply_shift(word, bits)
        })
    }

    /// Returns the false positive rate of a layer that holds `items` items.
    pub(crate) fn rate(&self, items: f64) -> f64 {
        shard_rate(items, self.bits, self.probes)
    }
}

/// 2⁶⁴ divided by the golden ratio: the step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of a word. Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators" (2014), §5.
const fn split_mix(state: u64) -> u64 {
    let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Maps a word to a number in `0..n`. Source: Lemire, "Fast Random Integer Generation in an
/// Interval" (2019).
const fn multiply_shift(word: u64, n: u64) -> u64 {
    ((word as u128 * n as u128) >> 64) as u64
}

/// Returns the number of bits for each item, for a filter with this rate and `probes` probes.
fn bits_per_item(rate: f64, probes: u32) -> f64 {
    let k = f64::from(probes);
    k / -(-rate.powf(1.0 / k)).ln_1p()
}

/// Returns the smallest number of probes with which a filter takes at most 1.3 times the optimal
/// number of bits.
fn fewest_probes(rate: f64) -> u32 {
    // At rates of 0.5 or higher, the optimum is at most one probe.
    if rate >= 0.5 {
        return 1;
    }
    let optimum = -rate.ln() / std::f64::consts::LN_2.powi(2);
    (1..).find(|&k| bits_per_item(rate, k) <= 1.3 * optimum).expect("the optimum is an integer off")
}

/// The number of bytes that Redis allocates in addition to the content of a string: a header and a
/// final zero byte.
const ALLOCATION_OVERHEAD: u64 = 10;

/// Returns the number of bytes that jemalloc, the allocator of Redis, allocates for a string
/// of `len` bytes. jemalloc has four sizes between two adjacent powers of two.
fn allocated(len: u64) -> u64 {
    let bytes = (len + ALLOCATION_OVERHEAD).max(128);
    bytes.next_multiple_of(1 << ((bytes - 1).ilog2() - 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::RedisPlan;

    const RATES: [f64; 11] = [0.99, 0.8, 0.6, 0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-6, 1e-9];

    #[test]
    fn a_rate_of_one_per_cent_takes_three_probes() {
        assert_eq!(fewest_probes(0.01), 3);
        assert!((bits_per_item(0.01, 3) - 12.36).abs() < 0.01);
    }

    #[test]
    fn every_plan_keeps_its_rate_and_its_memory() {
        for rate in RATES {
            for items in [0, 1, 1_000, 1_000_000, 30_000_000, 1_000_000_000] {
                let plan = RedisPlan::new(items, rate).unwrap();
                let geometry = plan.geometry;
                let spread = Spread::new(items.max(1), plan.shards());
                assert!(spread.rate(geometry.bits, plan.probes()) <= rate, "{items} {rate}");
                assert!(geometry.layer(0).bytes() <= 4 << 20, "{items} {rate}");
                // A filter with a single shard may waste up to a fifth of its allocation.
                if items >= 30_000_000 && plan.shards() > 1 {
                    let bits = 8.0 * plan.bytes() as f64 / items as f64;
                    let ideal = bits_per_item(rate, plan.probes());
                    assert!(bits < 1.06 * ideal, "{items} {rate}: {bits} {ideal}");
                    assert!(plan.shards() >= 48);
                }
            }
        }
    }

    #[test]
    fn a_hundred_million_items_take_less_than_1_6_bytes_each() {
        let plan = RedisPlan::new(100_000_000, 0.01).unwrap();
        let allocated = u64::from(plan.shards()) * allocated(plan.geometry.layer(0).bytes());
        assert!(allocated <= 160_000_000, "{allocated}");
    }

    #[test]
    fn the_rates_of_all_layers_together_stay_within_the_plan() {
        for rate in RATES {
            for items in [1_000, 1_000_000, 100_000_000] {
                let plan = RedisPlan::new(items, rate).unwrap().growing().unwrap();
                let mut sum = 0.0;
                for layer in 0..MAX_LAYERS {
                    let layer = plan.geometry.layer(layer);
                    sum += layer.rate(layer.capacity as f64);
                }
                assert!(sum <= rate, "{items} {rate}: {sum}");
            }
        }
    }

    #[test]
    fn layers_double_until_they_reach_64_mib() {
        let plan = RedisPlan::new(10_000_000, 0.01).unwrap().growing().unwrap();
        let sizes: Vec<u64> = (0..MAX_LAYERS).map(|i| plan.geometry.layer(i).capacity).collect();
        assert_eq!(sizes[1], 2 * sizes[0]);
        assert!((0..MAX_LAYERS).all(|i| plan.geometry.layer(i).bits <= MAX_LAYER_BITS));
    }

    #[test]
    fn offsets_stay_behind_the_header_and_in_the_string() {
        let layer = LayerGeometry { bits: 1000, probes: 20, capacity: 1 };
        for hash in 0..1000 {
            assert!(layer.offsets(hash).all(|offset| (512..1512).contains(&offset)));
        }
    }

    #[test]
    fn sizes_are_those_of_jemalloc() {
        assert_eq!([allocated(1526), allocated(1527), allocated(4 << 20)], [1536, 1792, 5 << 20]);
        assert_eq!(allocated((4 << 20) - 10), 4 << 20);
    }
}
