//! A command on one layer of one shard. The command reads the state word, and reads or sets the
//! bits of items.
//!
//! ```text
//! lookup   BITFIELD_RO key GET i64 0  GET i64 64          GET u1 p  GET u1 q  …
//! insert   BITFIELD    key GET i64 0  INCRBY i64 64 n     SET u1 p 1  SET u1 q 1  …
//! ```
//!
//! `SET` replies with the old bit, so the client can compute whether each item was new. If an item
//! occurs twice in a command, only the first occurrence finds unset bits.

use crate::error::{RedisItemError, printable};
use crate::layouts::header::{COUNTER_OFFSET, State};
use crate::layouts::view::View;
use crate::transport::request::{NodeReply, NodeRequest, integers};

/// The largest number of probes in a command. While the server executes a command, the commands of
/// all other clients wait. A command with 384 probes takes about 0.15 ms. Commands with more than
/// 384 probes were not faster for an item.
const MAX_PROBES: usize = 384;

/// A command on one layer of one shard.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The index of the generation in the view.
    pub(crate) generation: usize,
    pub(crate) shard: u32,
    pub(crate) layer: u8,
    /// The indexes of the items in the batch.
    pub(crate) items: Vec<u32>,
    pub(crate) is_write: bool,
    /// The number of layers that the operation has tested for these items, or tests in the same
    /// round trip. The operation compares the reply with this number, and not with the number in
    /// the view: other operations of the client may change the view before the reply arrives.
    pub(crate) tested: u8,
}

/// The decoded reply to a probe.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    /// The counter of the layer. After an insert, the counter includes the inserted items.
    pub(crate) counter: i64,
    bits: Vec<i64>,
    probes: usize,
}

impl Outcome {
    /// Tests whether all bits of an item were set before the command. `i` is the index of the item
    /// in the command.
    pub(crate) fn was_set(&self, i: usize) -> bool {
        self.bits[i * self.probes..][..self.probes].iter().all(|&bit| bit == 1)
    }
}

impl Probe {
    /// Splits the items of a shard into commands of limited size.
    pub(crate) fn each(&self, view: &View, items: &[u32]) -> impl Iterator<Item = Self> + use<> {
        let probes = view.generations[self.generation].layer(self.layer).probes;
        let chunks: Vec<_> =
            items.chunks((MAX_PROBES / probes as usize).max(1)).map(<[u32]>::to_vec).collect();
        let Self { generation, shard, layer, is_write, tested, .. } = *self;
        let chunk = move |items| Self { generation, shard, layer, items, is_write, tested };
        chunks.into_iter().map(chunk)
    }

    pub(crate) fn key(&self, view: &View) -> Vec<u8> {
        view.generations[self.generation].key(self.shard, self.layer)
    }

    /// Creates the request of the probe.
    pub(crate) fn request(&self, view: &View, hashes: &[u64]) -> NodeRequest {
        let name = match self.is_write || !view.has_bitfield_ro {
            true => "BITFIELD",
            false => "BITFIELD_RO",
        };
        let generation = &view.generations[self.generation];
        let layer = generation.layer(self.layer);
        let bits = self.items.len() * layer.probes as usize;
        let key = generation.key(self.shard, self.layer);
        let mut request = NodeRequest::with_capacity(name, key, 16 + 4 * bits, 64 + 16 * bits);
        let command = &mut request.command;
        command.arg("GET").arg("i64").arg(0);
        if self.is_write {
            command.arg("INCRBY").arg("i64").arg(COUNTER_OFFSET).arg(self.items.len());
        } else {
            command.arg("GET").arg("i64").arg(COUNTER_OFFSET);
        }
        for &item in &self.items {
            for offset in layer.offsets(hashes[item as usize]) {
                if self.is_write {
                    command.arg("SET").arg("u1").arg(offset).arg(1);
                } else {
                    command.arg("GET").arg("u1").arg(offset);
                }
            }
        }
        request
    }

    /// Decodes the reply to the probe. Returns an error if the shard is missing.
    pub(crate) fn outcome(&self, view: &View, reply: NodeReply) -> Result<Outcome, RedisItemError> {
        let key = self.key(view);
        let mut bits = integers(&key, reply)?;
        let generation = &view.generations[self.generation];
        let probes = generation.layer(self.layer).probes as usize;
        if bits.len() != 2 + probes * self.items.len() {
            return Err(RedisItemError::unexpected(&key, "has a wrong number of values"));
        }
        let counter = bits[1];
        let state = State::decode(bits[0])
            .filter(|state| state.generation == generation.record.id)
            .ok_or_else(|| RedisItemError::MissingShard { key: printable(&key) })?;
        bits.drain(..2);
        Ok(Outcome { state, counter, bits, probes })
    }
}

/// Groups the indexes of items by the shards of their hashes.
pub(crate) fn by_shard(
    view: &View,
    generation: usize,
    hashes: &[u64],
    items: impl Iterator<Item = u32>,
) -> Vec<(u32, Vec<u32>)> {
    let geometry = view.generations[generation].record.geometry;
    if geometry.shards == 1 {
        let all: Vec<u32> = items.collect();
        return if all.is_empty() { Vec::new() } else { vec![(0, all)] };
    }
    let mut pairs: Vec<(u32, u32)> =
        items.map(|item| (geometry.shard(hashes[item as usize]), item)).collect();
    pairs.sort_unstable();
    pairs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|group| (group[0].0, group.iter().map(|&(_, item)| item).collect()))
        .collect()
}
