//! The view that a client has of a generation: the layers and the counters of its shards.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::layouts::geometry::{LayerGeometry, MAX_LAYERS, RedisGrowth};
use crate::layouts::metadata::GenerationRecord;
use crate::layouts::shard_keys::{NameError, ShardKeys};
use crate::lock::locked;

/// The view that a client has of a generation. Clones share the counts of the shards.
#[derive(Clone, Debug)]
pub(crate) struct GenerationView {
    pub(crate) record: GenerationRecord,
    keys: ShardKeys,
    counts: Arc<Mutex<Counts>>,
}

/// The numbers of layers and the counters that a client has read from the shards of a generation.
#[derive(Debug)]
struct Counts {
    /// The number of layers of each shard, as last read by the client.
    layers: Vec<u8>,
    /// For each shard: how many more items the newest layer takes, or `None` if the client has not
    /// read the counter. The list is empty if the generation does not grow.
    room: Vec<Option<i64>>,
    /// For each shard and layer: the number of repeated items that inserts counted although the
    /// items were not new. The next insert subtracts the repeated items from the counter.
    repeats: HashMap<(u32, u8), i64>,
}

impl GenerationView {
    pub(crate) fn new(name: &[u8], record: GenerationRecord) -> Result<Self, NameError> {
        let shards = record.geometry.shards;
        let keys = ShardKeys::new(name, shards)?;
        let room = match record.growth {
            RedisGrowth::Fixed => Vec::new(),
            RedisGrowth::Doubling => vec![None; shards as usize],
        };
        let layers = vec![1; shards as usize];
        let counts = Counts { layers, room, repeats: HashMap::new() };
        Ok(Self { record, keys, counts: Arc::new(Mutex::new(counts)) })
    }

    /// Returns the same shards with changed metadata.
    pub(crate) fn with_record(&self, record: GenerationRecord) -> Self {
        Self { record, ..self.clone() }
    }

    pub(crate) fn key(&self, shard: u32, layer: u8) -> Vec<u8> {
        self.keys.key(shard, self.record.id, layer)
    }

    pub(crate) fn shards(&self) -> u32 {
        self.record.geometry.shards
    }

    pub(crate) fn layer(&self, layer: u8) -> LayerGeometry {
        self.record.geometry.layer(layer)
    }

    pub(crate) fn layers(&self, shard: u32) -> u8 {
        locked(&self.counts).layers[shard as usize]
    }

    /// Returns the largest possible number of layers of a shard.
    pub(crate) fn max_layers(&self) -> u8 {
        match self.record.growth {
            RedisGrowth::Fixed => 1,
            RedisGrowth::Doubling => MAX_LAYERS,
        }
    }

    /// Stores the number of layers of a shard. The number of layers never decreases, because
    /// clients never remove layers.
    pub(crate) fn learn_layers(&self, shard: u32, layers: u8) {
        let mut counts = locked(&self.counts);
        let known = &mut counts.layers[shard as usize];
        if layers > *known {
            *known = layers;
            counts.set_room(shard, None);
        }
    }

    /// Stores the counter of a layer.
    pub(crate) fn learn_count(&self, shard: u32, layer: u8, counter: i64) {
        let mut counts = locked(&self.counts);
        if layer + 1 == counts.layers[shard as usize] {
            let items = counter - counts.repeats.get(&(shard, layer)).unwrap_or(&0);
            let room = self.layer(layer).capacity.cast_signed() - items;
            counts.set_room(shard, Some(room));
        }
    }

    /// Stores the number of items that an insert counted although the items were not new.
    pub(crate) fn add_repeats(&self, shard: u32, layer: u8, repeats: i64) {
        if repeats != 0 {
            *locked(&self.counts).repeats.entry((shard, layer)).or_default() += repeats;
        }
    }

    /// Removes and returns the repeated items of each shard and layer. Of several operations, only
    /// one gets and subtracts a repeated item.
    pub(crate) fn take_repeats(&self) -> HashMap<(u32, u8), i64> {
        std::mem::take(&mut locked(&self.counts).repeats)
    }

    /// Returns the number of layers of a shard, and how many more items the newest of these layers
    /// takes. The second value is `None` if the client has not read the counter. Both values are of
    /// the same moment: two separate calls could return values of different layers.
    pub(crate) fn layers_and_room(&self, shard: u32) -> (u8, Option<i64>) {
        let counts = locked(&self.counts);
        let layers = counts.layers[shard as usize];
        let room = match counts.room.get(shard as usize) {
            Some(_) if layers >= MAX_LAYERS => Some(i64::MAX),
            Some(room) => *room,
            None => Some(i64::MAX),
        };
        (layers, room)
    }
}

impl Counts {
    fn set_room(&mut self, shard: u32, room: Option<i64>) {
        if let Some(known) = self.room.get_mut(shard as usize) {
            *known = room;
        }
    }
}
