//! Operations on all keys of a filter: info, counters, expiry, flags, deletion.

use crate::error::RedisItemError;
use crate::layouts::header::{COUNTER_OFFSET, HAS_NEXT_OFFSET, RETIRED_OFFSET, State};
use crate::layouts::view::{Generation, Kind, View};
use crate::operations::create_shards::expire_at;
use crate::transport::exchange::{Exchange, perform};
use crate::transport::request::{NodeReply, NodeRequest, Operation, Step, integers, value};

/// How many shards a pipeline visits.
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

/// What a sweep does with each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Reads the header.
    Read,
    /// Sets or removes the expiry, a time in milliseconds since 1970. The keys of a slice expire
    /// with their slice, or earlier.
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

/// Visits all keys of some generations: the first layers, then the others.
///
/// The order matters. A layer that is added later takes the flags and the expiry of layer 0. A
/// layer that was added before is in the number of layers that the visit of layer 0 reads.
pub(crate) struct Sweep<'v> {
    view: &'v mut View,
    visit: Visit,
    /// Generation and shard, last first.
    shards: Vec<(usize, u32)>,
    waiting: Vec<(usize, u32, u8)>,
    visited: Vec<Visited>,
    /// Requests that follow when all keys are visited.
    last: Vec<NodeRequest>,
    is_last_sent: bool,
}

impl<'v> Sweep<'v> {
    /// Prepares a visit of the generations with these numbers in the view.
    pub(crate) fn new(
        view: &'v mut View,
        visit: Visit,
        generations: impl IntoIterator<Item = usize>,
    ) -> Self {
        let mut shards: Vec<_> = generations
            .into_iter()
            .flat_map(|generation| {
                let shards = view.generations[generation].shards();
                (0..shards).map(move |shard| (generation, shard))
            })
            .collect();
        shards.reverse();
        let (waiting, visited, last) = (Vec::new(), Vec::new(), Vec::new());
        Self { view, visit, shards, waiting, visited, last, is_last_sent: false }
    }

    /// Sets or removes the expiry of all keys. The metadata comes last.
    pub(crate) fn expire(view: &'v mut View, millis: Option<u64>) -> Self {
        let (all, name) = (0..view.generations.len(), view.name().to_vec());
        let last = match millis {
            Some(at) => expire_at(name, at),
            None => NodeRequest::new("PERSIST", name),
        };
        Self { last: vec![last], ..Self::new(view, Visit::Expire(millis), all) }
    }

    /// Reads the headers of the generations that lookups test, after the counters are corrected.
    pub(crate) fn of_lookups(view: &'v mut View, now: u64) -> Self {
        let used: Vec<_> =
            view.uses(Kind::Lookup, now).iter().map(|used| used.generation).collect();
        Self::new(view, Visit::Read, used)
    }

    /// Returns the requests for a key: one reads the header.
    fn requests(&self, (generation, shard, layer): (usize, u32, u8)) -> Vec<NodeRequest> {
        let known = &self.view.generations[generation];
        let key = known.key(shard, layer);
        let name = match self.visit {
            Visit::Mark(..) => "BITFIELD",
            _ if !self.view.has_bitfield_ro => "BITFIELD",
            _ => "BITFIELD_RO",
        };
        let mut read = NodeRequest::new(name, key.clone());
        let command = &mut read.command;
        command.arg("GET").arg("i64").arg(0).arg("GET").arg("i64").arg(COUNTER_OFFSET);
        match self.visit {
            Visit::Read => vec![read],
            // The expiry of layer 0 precedes the reading of the number of layers.
            Visit::Expire(at) => {
                let slice_end = self.view.slice_expiry(&known.record);
                let expiry = match at.into_iter().chain(slice_end).min() {
                    Some(at) => expire_at(key, at),
                    None => NodeRequest::new("PERSIST", key),
                };
                vec![expiry, read]
            }
            Visit::Mark(flag) => {
                command.arg("SET").arg("u1").arg(flag.offset()).arg(1);
                vec![read]
            }
        }
    }

    fn send(&mut self, keys: Vec<(usize, u32, u8)>) -> Step<Result<Vec<Visited>, RedisItemError>> {
        let requests = keys.iter().flat_map(|&key| self.requests(key)).collect();
        self.waiting = keys;
        Step::Send(requests)
    }

    /// Evaluates the replies. Returns the further layers.
    fn evaluate(
        &mut self,
        replies: Vec<NodeReply>,
    ) -> Result<Vec<(usize, u32, u8)>, RedisItemError> {
        let (at, each) = match self.visit {
            Visit::Read | Visit::Mark(..) => (0, 1),
            Visit::Expire(_) => (1, 2),
        };
        let mut replies = replies.into_iter();
        let mut further = Vec::new();
        let waiting = std::mem::take(&mut self.waiting);
        for &(generation, shard, layer) in &waiting {
            let key = self.view.generations[generation].key(shard, layer);
            let mut header = None;
            for (i, reply) in replies.by_ref().take(each).enumerate() {
                if i == at {
                    header = Some(match integers(&key, reply) {
                        // Another program's value: the shard is missing.
                        Err(RedisItemError::WrongType { .. }) => Vec::new(),
                        Err(error) if error.is_unknown_command() && self.view.has_bitfield_ro => {
                            // The server has no `BITFIELD_RO`: visits the keys again.
                            self.view.has_bitfield_ro = false;
                            return Ok(waiting);
                        }
                        header => header?,
                    });
                } else {
                    value(&key, reply)?;
                }
            }
            let header = header.expect("a visit reads the header");
            let state = header.first().copied().and_then(State::decode);
            let items = state.and(header.get(1).copied());
            self.visited.push(Visited { generation, shard, layer, items });
            let known = &mut self.view.generations[generation];
            if let (Some(state), 0) = (state, layer) {
                known.learn_layers(shard, state.layers);
            }
            if layer == 0 {
                further.extend((1..known.layers(shard)).map(|layer| (generation, shard, layer)));
            }
        }
        Ok(further)
    }
}

impl Operation for Sweep<'_> {
    type Output = Result<Vec<Visited>, RedisItemError>;

    fn step(&mut self, replies: Vec<NodeReply>) -> Step<Self::Output> {
        if self.is_last_sent {
            let error = replies.into_iter().find_map(|reply| value(b"", reply).err());
            return Step::Done(error.map_or_else(|| Ok(std::mem::take(&mut self.visited)), Err));
        }
        match self.evaluate(replies) {
            Err(error) => Step::Done(Err(error)),
            Ok(further) if !further.is_empty() => self.send(further),
            Ok(_) if self.shards.is_empty() && !self.last.is_empty() => {
                self.is_last_sent = true;
                Step::Send(std::mem::take(&mut self.last))
            }
            Ok(_) if self.shards.is_empty() => Step::Done(Ok(std::mem::take(&mut self.visited))),
            Ok(_) => {
                let rest = self.shards.len().saturating_sub(SHARDS_AT_ONCE);
                let next = self.shards.split_off(rest).into_iter().rev();
                self.send(next.map(|(generation, shard)| (generation, shard, 0)).collect())
            }
        }
    }
}

/// Sends requests, and returns the first error or all values.
pub(crate) struct SendAll(Option<Vec<NodeRequest>>);

impl SendAll {
    pub(crate) fn new(requests: Vec<NodeRequest>) -> Self {
        Self(Some(requests))
    }
}

impl Operation for SendAll {
    type Output = Result<Vec<redis::Value>, RedisItemError>;

    fn step(&mut self, replies: Vec<NodeReply>) -> Step<Self::Output> {
        match self.0.take() {
            Some(requests) if !requests.is_empty() => Step::Send(requests),
            _ => Step::Done(replies.into_iter().map(|reply| value(b"", reply)).collect()),
        }
    }
}

/// Deletes the shards of a generation. One command deletes all layers that a shard may have, so a
/// deletion that failed can be repeated.
pub(crate) async fn unlink<X: Exchange>(
    exchange: &mut X,
    generation: &Generation,
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
        perform(exchange, SendAll::new(shards.iter().map(request).collect())).await?;
    }
    Ok(())
}

/// Corrects the counters by the known repeats.
pub(crate) async fn flush<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
) -> Result<(), RedisItemError> {
    let requests = corrections(view);
    perform(exchange, SendAll::new(requests)).await.map(|_| ())
}

/// Corrects the counter of a shard that exists. Argument: the number to add.
pub(crate) const CORRECT: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 1) ~= 'TM' then return 0 end
return redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', 64, ARGV[1])[1]";

/// Returns the requests that correct the counters by the known repeats. A request that is sent twice
/// would subtract them twice.
pub(crate) fn corrections(view: &mut View) -> Vec<NodeRequest> {
    let mut requests = Vec::new();
    for generation in &mut view.generations {
        for ((shard, layer), repeats) in std::mem::take(&mut generation.repeats) {
            if repeats != 0 {
                let mut request = NodeRequest::script(CORRECT, &[generation.key(shard, layer)]);
                request.command.arg(-repeats);
                requests.push(NodeRequest { is_repeatable: false, ..request });
            }
        }
    }
    requests
}
