//! A scaling Bloom filter of RedisBloom.

use tamis::Answers;
use tamis_redisbloom::RedisBloom;

use crate::change_error::ChangeError;
use crate::filter_info::{FilterInfo, ItemCount};
use crate::probe_rule::rate_std_error;
use crate::redisbloom::insert::{NO_MERGE, insert_each, most_growth_bytes};
use crate::stored_filter::StoredFilter;

impl StoredFilter for RedisBloom {
    const MERGE_REFUSAL: Option<&'static str> = Some(NO_MERGE);

    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        self.contains_each(keys, answers);
    }

    /// Inserts as `BF.MADD` does.
    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        self.limit_growth(most_growth_bytes(self.size_bytes()));
        insert_each(keys, answers, |keys, answer| self.insert_each(keys, answer))
    }

    fn info(&self) -> FilterInfo {
        let (mut bits, mut ones, mut all_miss, mut planned, mut variance) = (0, 0, 1.0, 0.0, 0.0);
        let (mut more, mut position) = (Vec::new(), 1);
        for layer in self.layers() {
            let (mut left, mut ones_of_layer) = (layer.bytes, 0);
            while let Some((next, chunk)) = (left > 0).then(|| self.chunk(position)).flatten() {
                ones_of_layer += count_ones(&chunk);
                left = left.saturating_sub(chunk.len() as u64);
                position = next;
            }
            // Very old filters round the number of bits to a power of two.
            let used = if layer.log2_bits == 0 { layer.bits } else { 1 << layer.log2_bits };
            let fill = (ones_of_layer as f64 / used as f64).min(1.0);
            let rate_of_layer = double_hashing_rate(fill, used, layer.probes);
            variance += (rate_of_layer * rate_std_error(fill, used, layer.probes)).powi(2);
            all_miss *= 1.0 - rate_of_layer;
            (bits, ones, planned) = (bits + used, ones + ones_of_layer, planned + layer.rate);
            let (items, capacity, probes, rate) =
                (layer.items, layer.capacity, layer.probes, layer.rate);
            more.push((
                "layer",
                format!(
                    "{items} of {capacity} items, {used} bits, {probes} probes, planned for {rate}"
                ),
            ));
        }
        let newest = *self.layers().next_back().expect("a filter has a layer");
        more.push(("expansion", self.expansion().map_or("none".into(), |times| times.to_string())));
        let rate = 1.0 - all_miss;
        let mut warnings = Vec::new();
        if newest.items > newest.capacity {
            let (items, capacity) = (newest.items, newest.capacity);
            warnings.push(format!(
                "the newest layer holds {items} items and was planned for {capacity}: its rate is \
                above the planned one"
            ));
        } else if !self.is_scaling() && newest.items == newest.capacity {
            warnings.push("full: refuses adds, and does not grow: reserve a larger one".into());
        }
        if self.hash_bits() == 32 {
            warnings.push(
                "its hashes have 32 bits, as in very old servers: among billions of items some \
                share a hash, whatever the rate"
                    .into(),
            );
        }
        if rate > 2.0 * planned {
            warnings.push(format!(
                "the false positive rate is {rate:.2e}, more than twice the planned one \
                ({planned:.2e}): reserve a larger filter"
            ));
        }
        let layers = match self.layers().len() {
            1 => "1 layer".into(),
            several => format!("{several} layers"),
        };
        FilterInfo {
            layout: format!("murmur2 x64 {}, RedisBloom, {layers}", self.hash_bits()),
            bits,
            probes: (self.layers().len() == 1).then_some(newest.probes),
            fill: ones as f64 / bits as f64,
            items: self.len() as f64,
            items_are: ItemCount::Distinct,
            rate_now: rate,
            rate_std_error: if rate > 0.0 { variance.sqrt() / rate } else { 0.0 },
            // The sum over all layers, because each layer can be wrong independently.
            rate_planned: Some(planned),
            details: more,
            warnings,
            ..FilterInfo::default()
        }
    }
}

/// Returns the false positive rate of probes at `a + i·b` modulo the number of bits. In small
/// layers these probes often repeat.
///
/// Let `r` be the number of bits divided by its greatest common divisor with `b`. The probes then
/// visit only `r` positions. φ(r) values of `b` have this `r`.
fn double_hashing_rate(fill: f64, bits: u64, probes: u32) -> f64 {
    let at_once = fill.powf(probes.into());
    let repeated =
        (1..probes.min(MAX_REPEATED)).filter(|&r| bits.is_multiple_of(r.into())).map(|r| {
            let coprime = (1..=r).filter(|&i| gcd(i, r) == 1).count();
            coprime as f64 / bits as f64 * (fill.powf(r.into()) - at_once)
        });
    at_once + repeated.sum::<f64>()
}

/// The largest number of visited positions that is considered. Larger sets of positions are seldom
/// all set by chance.
const MAX_REPEATED: u32 = 64;

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn count_ones(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}
