//! Visits all keys of a filter, to read counters, set expiries and flags, and delete keys.

use crate::error::RedisItemError;
use crate::layouts::generation_view::GenerationView;
use crate::layouts::header::{COUNTER_OFFSET, HAS_NEXT_OFFSET, RETIRED_OFFSET, State};
use crate::layouts::view::View;
use crate::transport::exchange::{Exchange, send_all};
use crate::transport::request::{NodeReply, NodeRequest, integers, value};

/// The largest number of shards that a pipeline visits.
const SHARDS_AT_ONCE: usize = 1024;

/// A flag of the state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    Retired,
    HasNext,
}

impl Flag {
    fn offset(self) -> u64 {
        match self {
            Self::Retired => RETIRED_OFFSET,
            Self::HasNext => HAS_NEXT_OFFSET,
        }
    }
}

/// The action of a sweep on each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Reads the header.
    Read,
    /// Sets the expiry to a time in milliseconds since 1970, or removes the expiry. The keys of a
    /// slice expire at the given time or at the end of the slice, whichever is earlier.
    Expire(Option<u64>),
    /// Sets a flag.
    Mark(Flag),
}

/// A layer that a sweep has visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visited {
    pub(crate) generation: usize,
    pub(crate) shard: u32,
    pub(crate) layer: u8,
    /// The counter of items, or `None` if the key is missing.
    pub(crate) items: Option<i64>,
}

/// Visits all keys of some generations: first layer 0 of each shard, and then all other
/// layers. `generations` contains indexes of generations in the view.
///
/// A sweep must visit layer 0 of a shard before all other layers. If a client adds a layer after
/// the visit of layer 0, the new layer gets the flags and the expiry of layer 0. If a client added
/// a layer before the visit of layer 0, the visit of layer 0 reads the new number of layers, and
/// the sweep visits the new layer afterwards.
pub(crate) async fn sweep<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    visit: Visit,
    generations: impl IntoIterator<Item = usize>,
) -> Result<Vec<Visited>, RedisItemError> {
    let mut shards = Vec::new();
    for generation in generations {
        let all = 0..view.generations[generation].shards();
        shards.extend(all.map(|shard| (generation, shard, 0)));
    }
    let mut visited = Vec::new();
    for shards in shards.chunks(SHARDS_AT_ONCE) {
        let mut keys = shards.to_vec();
        while !keys.is_empty() {
            let requests = keys.iter().flat_map(|&key| requests(view, visit, key)).collect();
            let replies = exchange.exchange(requests).await;
            keys = evaluate(view, visit, keys, replies, &mut visited)?;
        }
    }
    Ok(visited)
}

/// A generation, a shard and a layer.
type Key = (usize, u32, u8);

/// Returns the requests for a key. The last request for a key reads the header.
fn requests(view: &View, visit: Visit, (generation, shard, layer): Key) -> Vec<NodeRequest> {
    let known = &view.generations[generation];
    let key = known.key(shard, layer);
    let name = match visit {
        Visit::Mark(..) => "BITFIELD",
        _ if !view.has_bitfield_ro => "BITFIELD",
        _ => "BITFIELD_RO",
    };
    let mut read = NodeRequest::new(name, key.clone());
    let command = &mut read.command;
    command.arg("GET").arg("i64").arg(0).arg("GET").arg("i64").arg(COUNTER_OFFSET);
    match visit {
        Visit::Read => vec![read],
        // The request that sets the expiry of layer 0 comes before the request that reads the
        // number of layers.
        Visit::Expire(at) => {
            let slice_end = view.slice_expiry(&known.record);
            vec![expiry(key, at.into_iter().chain(slice_end).min()), read]
        }
        Visit::Mark(flag) => {
            command.arg("SET").arg("u1").arg(flag.offset()).arg(1);
            vec![read]
        }
    }
}

/// Evaluates the replies for some keys. Returns the keys of the layers that the sweep visits next.
fn evaluate(
    view: &mut View,
    visit: Visit,
    keys: Vec<Key>,
    replies: Vec<NodeReply>,
    visited: &mut Vec<Visited>,
) -> Result<Vec<Key>, RedisItemError> {
    let mut replies = replies.into_iter();
    let mut next = || replies.next().expect("one reply for each request");
    let mut further = Vec::new();
    for &(generation, shard, layer) in &keys {
        let known = &view.generations[generation];
        let key = known.key(shard, layer);
        if let Visit::Expire(_) = visit {
            value(&key, next())?;
        }
        let header = match integers(&key, next()) {
            // The key holds the value of another program, so the shard is missing.
            Err(RedisItemError::WrongType { .. }) => Vec::new(),
            Err(error) if error.is_unknown_command() && view.has_bitfield_ro => {
                // If the server has no `BITFIELD_RO`, the sweep visits the keys again
                // with `BITFIELD`.
                view.learn_no_bitfield_ro();
                return Ok(keys);
            }
            header => header?,
        };
        let state = header.first().copied().and_then(State::decode);
        let items = state.and(header.get(1).copied());
        visited.push(Visited { generation, shard, layer, items });
        if let (Some(state), 0) = (state, layer) {
            known.learn_layers(shard, state.layers);
        }
        if layer == 0 {
            further.extend((1..known.layers(shard)).map(|layer| (generation, shard, layer)));
        }
    }
    Ok(further)
}

/// Returns the request that sets the expiry of a key to a time in milliseconds since 1970.
/// If `millis` is `None`, the request removes the expiry.
pub(crate) fn expiry(key: Vec<u8>, millis: Option<u64>) -> NodeRequest {
    let Some(millis) = millis else { return NodeRequest::new("PERSIST", key) };
    let mut request = NodeRequest::new("PEXPIREAT", key);
    request.command.arg(millis);
    request
}

/// Deletes the shards of a generation. A program can repeat a failed deletion, because one command
/// deletes all possible layers of a shard.
pub(crate) async fn unlink<X: Exchange>(
    exchange: &mut X,
    generation: &GenerationView,
) -> Result<(), RedisItemError> {
    let shards: Vec<u32> = (0..generation.shards()).collect();
    for shards in shards.chunks(SHARDS_AT_ONCE) {
        let request = |&shard: &u32| {
            let mut request = NodeRequest::new("UNLINK", generation.key(shard, 0));
            for layer in 1..generation.max_layers() {
                request.command.arg(generation.key(shard, layer));
            }
            request
        };
        send_all(exchange, shards.iter().map(request).collect()).await?;
    }
    Ok(())
}

/// Corrects the counters: subtracts the items that inserts counted although the items were not new.
pub(crate) async fn flush<X: Exchange>(
    exchange: &mut X,
    view: &View,
) -> Result<(), RedisItemError> {
    let requests = corrections(view);
    send_all(exchange, requests).await.map(|_| ())
}

/// Adds a number to the counter of an existing shard. The argument is the number.
pub(crate) const CORRECT: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 1) ~= 'TM' then return 0 end
return redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', 64, ARGV[1])[1]";

/// Returns the requests that correct the counters. Each request subtracts the items that inserts
/// counted although the items were not new. A transport must not send a correction twice, because
/// the second correction would subtract the items again.
pub(crate) fn corrections(view: &View) -> Vec<NodeRequest> {
    let mut requests = Vec::new();
    for generation in &*view.generations {
        for ((shard, layer), repeats) in generation.take_repeats() {
            let mut request = NodeRequest::script(CORRECT, &[generation.key(shard, layer)]);
            request.command.arg(-repeats);
            requests.push(NodeRequest { is_repeatable: false, ..request });
        }
    }
    requests
}
