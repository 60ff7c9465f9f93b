//! Information about a filter: items, rates, sizes and missing keys.

use crate::error::RedisItemError;
use crate::layouts::view::{Kind, View};
use crate::operations::slices::read_clock;
use crate::operations::sweep::{Visit, Visited, flush, sweep};
use crate::transport::exchange::Exchange;

/// Information about a filter on plain Redis bitmaps.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RedisFilterInfo {
    /// The planned number of items, or the planned number of items of all slices for a window.
    pub items_planned: u64,
    /// The planned false positive rate, or the sum of the planned rates of all slices for a window.
    pub rate_planned: f64,
    /// The number of distinct inserted items. The number of items is too high if a client stops
    /// without [`flush`](crate::RedisFilter::flush), because the client does not subtract its last
    /// repeated items.
    pub items: u64,
    /// The present false positive rate, computed from the number of items.
    pub rate: f64,
    /// The number of shards.
    pub shards: u32,
    /// The number of probes for each item in the first layer.
    pub probes: u32,
    /// The largest number of layers of a shard: 1 if no shard has grown.
    pub layers: u8,
    /// The number of bytes of all strings.
    pub bytes: u64,
    /// The missing keys. The items in the missing keys are lost.
    pub missing: Vec<String>,
    /// The error of the last growth, if the growth of a full shard failed.
    pub growth_error: Option<RedisItemError>,
}

/// Returns the information about a filter.
pub(crate) async fn info<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
) -> Result<RedisFilterInfo, RedisItemError> {
    // If `flush` fails, the counters are too high, but the information is still useful.
    _ = flush(exchange, view).await;
    let now = read_clock(exchange, view).await?;
    let used: Vec<_> = view.uses(Kind::Lookup, now).iter().map(|used| used.generation).collect();
    let visited = sweep(exchange, view, Visit::Read, used).await?;
    Ok(RedisFilterInfo::new(view, &visited))
}

impl RedisFilterInfo {
    /// Summarizes the visited layers.
    fn new(view: &View, visited: &[Visited]) -> Self {
        let mut info = Self { growth_error: view.growth_error.clone(), ..Self::default() };
        // `clean` has, for each generation and shard, the probability that no layer has a false
        // positive.
        let mut clean: Vec<Vec<f64>> = view
            .generations
            .iter()
            .map(|generation| vec![1.0; generation.shards() as usize])
            .collect();
        for &Visited { generation, shard, layer, items } in visited {
            let known = &view.generations[generation];
            let geometry = known.layer(layer);
            info.layers = info.layers.max(layer + 1);
            let Some(items) = items else {
                info.missing.push(String::from_utf8_lossy(&known.key(shard, layer)).into_owned());
                continue;
            };
            let items = items.max(0).cast_unsigned();
            info.items += items;
            info.bytes += geometry.bytes();
            clean[generation][shard as usize] *= 1.0 - geometry.rate(items as f64);
        }
        let slices = view.metadata.window.map_or(1, |window| window.slices);
        let mut clean_of_all = 1.0;
        let mut used: Vec<usize> = visited.iter().map(|visited| visited.generation).collect();
        used.dedup();
        for generation in used {
            let known = &view.generations[generation];
            let sum: f64 = clean[generation].iter().sum();
            clean_of_all *= sum / f64::from(known.shards());
            info.items_planned = known.record.items.saturating_mul(slices.into());
            info.rate_planned = (known.record.rate * f64::from(slices)).min(1.0);
            info.shards += known.shards();
            info.probes = known.record.geometry.probes;
        }
        info.rate = 1.0 - clean_of_all;
        info
    }
}
