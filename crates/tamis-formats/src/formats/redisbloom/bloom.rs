//! A scaling Bloom filter of RedisBloom.

use tamis::{Answers, Modulus};
use tamis_redisbloom::{RedisBloom, RedisLayer};

use crate::encoding::words_of;
use crate::errors::ChangeError;
use crate::filters::{FilterInfo, ItemCount, StoredFilter};
use crate::formats::redisbloom::insert::{NO_MERGE, insert_each, most_growth_bytes};
use crate::rules::rates::progression::{Filled, MEASURED_BITS, rates_of};
use crate::rules::{EstimatedRate, Progression, Sums, chance};

impl StoredFilter for RedisBloom {
    const MERGE_REFUSAL: Option<&'static str> = Some(NO_MERGE);

    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        self.contains_each(keys, answers);
    }

    /// Inserts items as `BF.MADD` does.
    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        self.limit_growth(most_growth_bytes(self.size_bytes()));
        insert_each(keys, answers, |keys, answer| self.insert_each(keys, answer))
    }

    fn info(&self) -> FilterInfo {
        let bits_of_layers = read_layers(self);
        let fills: Vec<f64> = bits_of_layers.iter().map(LayerBits::fill).collect();
        let bits: u64 = bits_of_layers.iter().map(|it| it.used).sum();
        let ones: u64 = bits_of_layers.iter().map(|it| it.ones).sum();
        let mut more: Vec<_> = self.layers().map(|layer| ("layer", described(layer))).collect();
        let newest = *self.layers().next_back().expect("a filter has a layer");
        let first = self.layers().next().expect("a filter has a layer").rate;
        // The rate of the first layer of a scaling filter is half the rate of all layers together. The rate of the
        // second layer is a quarter of the rate of all layers together.
        let planned = if self.is_scaling() { 2.0 * first } else { first };
        more.push(("expansion", self.expansion().map_or("none".into(), |times| times.to_string())));
        let layers = filled(self, &fills);
        let mut std_errors: Vec<f64> =
            layers.iter().map(|it| chance(it.fill, it.rule.bits.bits(), it.rule.probes)).collect();
        let (computed, sampling_error) = rates_of(&layers, |i, layer| {
            let estimate = layer.rule.estimate_rate(&bits_of_layers[i].first_words, layer.fill);
            std_errors[i] = estimate.std_error;
            estimate.rate
        });
        let rates = computed.into_iter().zip(std_errors);
        let rates = rates.map(|(rate, std_error)| EstimatedRate { rate, std_error });
        let EstimatedRate { rate, std_error } = EstimatedRate::of_any(&rates.collect::<Vec<_>>());
        let std_error = std_error.hypot(sampling_error);
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
            rate_std_error: std_error,
            // The planned rate is the sum over all layers, because each layer can give a false positive independently.
            rate_planned: Some(planned),
            details: more,
            warnings: warnings(self, rate, planned),
            ..FilterInfo::default()
        }
    }
}

/// The counts of the bits of a layer, and the first words of the layer.
struct LayerBits {
    /// The number of bits that the probes can reach.
    used: u64,
    ones: u64,
    /// The words that the measurement of the rate reads.
    first_words: Vec<u64>,
}

impl LayerBits {
    fn fill(&self) -> f64 {
        (self.ones as f64 / self.used as f64).min(1.0)
    }
}

/// Reads the bits of each layer.
fn read_layers(filter: &RedisBloom) -> Vec<LayerBits> {
    let mut position = 1;
    let read = |layer: &RedisLayer| {
        let (mut left, mut ones, mut first_words) = (layer.bytes, 0, Vec::new());
        while let Some((next, chunk)) = (left > 0).then(|| filter.chunk(position)).flatten() {
            ones += count_ones(&chunk);
            first_words.extend(words_of(&chunk).take(MEASURED_WORDS - first_words.len()));
            left = left.saturating_sub(chunk.len() as u64);
            position = next;
        }
        LayerBits { used: used_bits(layer), ones, first_words }
    };
    filter.layers().map(read).collect()
}

fn described(layer: &RedisLayer) -> String {
    let RedisLayer { items, capacity, probes, rate, .. } = layer;
    let used = used_bits(layer);
    format!("{items} of {capacity} items, {used} bits, {probes} probes, planned for {rate}")
}

/// Returns the warnings about a filter with the present rate `rate`.
fn warnings(filter: &RedisBloom, rate: f64, planned: f64) -> Vec<String> {
    let newest = filter.layers().next_back().expect("a filter has a layer");
    let mut warnings = Vec::new();
    if newest.items > newest.capacity {
        let (items, capacity) = (newest.items, newest.capacity);
        warnings.push(format!(
            "the newest layer holds {items} items and was planned for {capacity}: its rate is \
            above the planned one"
        ));
    } else if !filter.is_scaling() && newest.items == newest.capacity {
        warnings.push("full: refuses adds, and does not grow: reserve a larger one".into());
    }
    if filter.hash_bits() == 32 {
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
    warnings
}

/// Computes the rate of a layer of a RedisBloom filter. `fill` is the share of set bits of the layer. Takes up to a few
/// milliseconds.
///
/// # Examples
///
/// ```
/// use tamis_formats::redisbloom_rate;
/// use tamis_redisbloom::{RedisBloom, RedisBloomOptions};
///
/// let options = RedisBloomOptions { capacity: 1_000, rate: 1e-6, ..RedisBloomOptions::default() };
/// let filter = RedisBloom::new(&options)?;
/// let layer = filter.layers().next().unwrap();
/// // In a layer of few bits, the probes of an item often repeat.
/// assert!(redisbloom_rate(&filter, layer, 0.5) > 3.0 * 0.5_f64.powi(layer.probes as i32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn redisbloom_rate(filter: &RedisBloom, layer: &RedisLayer, fill: f64) -> f64 {
    let used = used_bits(layer);
    let items = items_at(fill, used, layer.probes);
    progression(filter, used, layer.probes).map_or(1.0, |rule| rule.rate(fill, items))
}

/// Computes the rates of all layers of a RedisBloom filter. `fills` contains the share of set bits of each layer. If
/// the filter has more than 64 layers, the rates are estimated from some of the layers. Takes up to a few hundred
/// milliseconds.
///
/// # Examples
///
/// ```
/// use tamis_formats::{redisbloom_rate, redisbloom_rates};
/// use tamis_redisbloom::{RedisBloom, RedisBloomOptions};
///
/// let filter = RedisBloom::new(&RedisBloomOptions::default())?;
/// let layer = filter.layers().next().unwrap();
/// assert_eq!(redisbloom_rates(&filter, &[0.3]), [redisbloom_rate(&filter, layer, 0.3)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn redisbloom_rates(filter: &RedisBloom, fills: &[f64]) -> Vec<f64> {
    rates_of(&filled(filter, fills), |_, layer| layer.rate()).0
}

fn filled(filter: &RedisBloom, fills: &[f64]) -> Vec<Filled> {
    let of_layer = |(layer, &fill): (&RedisLayer, &f64)| {
        let used = used_bits(layer);
        // Every layer has at least one bit.
        let rule = progression(filter, used.max(1), layer.probes)?;
        Some(Filled { rule, fill, items: items_at(fill, used, layer.probes) })
    };
    filter.layers().zip(fills).filter_map(of_layer).collect()
}

/// Returns the number of items for which the share of set bits is `fill`.
fn items_at(fill: f64, bits: u64, probes: u32) -> f64 {
    -(-fill).ln_1p() * bits as f64 / f64::from(probes)
}

/// Returns the number of bits in use. Filters of very old RedisBloom releases round the number of bits to a power of
/// two.
fn used_bits(layer: &RedisLayer) -> u64 {
    if layer.log2_bits == 0 { layer.bits } else { 1 << layer.log2_bits }
}

fn progression(filter: &RedisBloom, bits: u64, probes: u32) -> Option<Progression> {
    // Sums of two 32-bit hashes do not overflow.
    let sums = if filter.hash_bits() == 32 { Sums::Exact } else { Sums::Wrapped(64) };
    Some(Progression { bits: Modulus::new(bits)?, probes, sums })
}

/// The largest number of words of a layer whose rate is measured.
const MEASURED_WORDS: usize = MEASURED_BITS.div_ceil(64) as usize;

fn count_ones(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}
