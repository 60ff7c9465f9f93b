//! Inserts and looks up a batch of items.
//!
//! A lookup takes one round trip. For each shard, the lookup sends a command for each layer. An
//! insert takes one round trip if each shard has one layer, and this layer has space for all items.
//! If a shard has several layers or a full layer, an insert takes two round trips: the first round
//! trip tests all layers, and the second round trip inserts the absent items into the newest layer.
//! According to the counter that the client has read last, a layer never takes more items than
//! planned.
//!
//! The state words of the replies determine the next step:
//!
//! * If a shard has more layers than the operation has tested, the operation also tests the other
//!   layers. The operation keeps the number of tested layers itself, because the numbers in the view
//!   may change while the operation waits for replies.
//! * If a shard is missing or retired, or a newer generation exists, the operation reads the
//!   metadata again. If the generations have changed, the operation starts again with the new
//!   generations. If the generations are unchanged, the items of a missing shard get an error.
//! * If the newest layer is full, a script adds a layer, and the new layer takes the items that do
//!   not fit the full layer.

use std::collections::HashSet;
use std::ops::Range;

use crate::clock::Clock;
use crate::error::{RedisItemError, printable};
use crate::layouts::metadata::{GenerationRecord, Role};
use crate::layouts::view::{Kind, Update, Use, View};
use crate::operations::growth;
use crate::operations::probe::{Outcome, Probe, by_shard};
use crate::operations::sweep::corrections;
use crate::transport::exchange::Exchange;
use crate::transport::request::{NodeReply, NodeRequest, bytes};

/// The largest number of restarts of an operation.
const MAX_RESTARTS: u32 = 8;

/// An insert or a lookup of a batch. The results are in the order of the items. The result of an
/// insert is true if the item is new. The result of a lookup is true if the item may be in the
/// filter.
pub(crate) struct Batch<'v> {
    view: &'v mut View,
    kind: Kind,
    now: u64,
    hashes: &'v [u64],
    pass: Pass,
    /// The results of the pass before a restart: the identifier of the generation that the pass
    /// read, and whether each item was new.
    new_before: Option<(u32, Vec<bool>)>,
}

/// The state of a pass over the items. Each pass starts with an empty state.
#[derive(Default)]
struct Pass {
    uses: Vec<Use>,
    /// For each used generation and item: whether the generation contains the item, or contained
    /// the item before the insert.
    found: Vec<Vec<bool>>,
    errors: Vec<Option<RedisItemError>>,
    unwritten: Vec<Unwritten>,
    /// The shards that cannot grow, each with its generation and its number of layers. The newest
    /// layer of a shard that cannot grow takes all items.
    overfull: HashSet<(usize, u32, u8)>,
    must_reread: bool,
    /// The keys without a header, which inserts into missing shards created.
    created: Vec<Vec<u8>>,
}

/// Inserts into a shard that wait for the tests of all layers, or for another layer.
struct Unwritten {
    /// The index of the used generation.
    used: usize,
    shard: u32,
    items: Vec<u32>,
    /// The number of layers that this operation has tested for these items. The view may already
    /// contain a larger number, because all operations of a client share the numbers of the view.
    tested: u8,
}

impl<'v> Batch<'v> {
    /// Creates an operation on the items with these hashes. `now` is the time in milliseconds.
    pub(crate) fn new(view: &'v mut View, kind: Kind, hashes: &'v [u64], now: u64) -> Self {
        let pass = Pass::default();
        Self { view, kind, now, hashes, pass, new_before: None }
    }

    /// Runs the operation. If the generations change during the operation, the operation starts
    /// again.
    pub(crate) async fn run<X: Exchange>(
        mut self,
        exchange: &mut X,
    ) -> Vec<Result<bool, RedisItemError>> {
        for _ in 0..=MAX_RESTARTS {
            match self.pass(exchange).await {
                Ok(Update::Unchanged) => return self.results(),
                Ok(Update::Changed) => {}
                Err(error) => return vec![Err(error); self.hashes.len()],
            }
        }
        vec![Err(RedisItemError::Unsettled); self.hashes.len()]
    }

    /// Runs one pass over all items with the generations of the view.
    async fn pass<X: Exchange>(&mut self, exchange: &mut X) -> Result<Update, RedisItemError> {
        let mut probes = self.start()?;
        loop {
            if !probes.is_empty() {
                probes = self.probe(exchange, probes).await;
            } else if !self.pass.unwritten.is_empty() {
                probes = self.grow(exchange).await;
            } else if std::mem::take(&mut self.pass.must_reread) {
                return self.reread(exchange).await;
            } else {
                return Ok(Update::Unchanged);
            }
        }
    }

    /// Returns the probes of the first round trip of a pass.
    fn start(&mut self) -> Result<Vec<Probe>, RedisItemError> {
        let uses = self.view.uses(self.kind, self.now);
        let count = self.hashes.len();
        self.pass = Pass {
            found: vec![vec![false; count]; uses.len()],
            errors: vec![None; count],
            must_reread: self.view.is_outdated_at(self.now, &uses),
            uses,
            ..Pass::default()
        };
        if matches!(self.kind, Kind::Build(_)) && self.pass.uses.is_empty() {
            return Err(RedisItemError::NoRebuild { name: printable(self.view.name()) });
        }
        let mut probes = Vec::new();
        for (used, &Use { generation, writes, .. }) in self.pass.uses.iter().enumerate() {
            for (shard, items) in by_shard(self.view, generation, self.hashes, 0..count as u32) {
                let (layers, room) = self.view.generations[generation].layers_and_room(shard);
                if writes && layers == 1 && room.is_some_and(|room| room >= items.len() as i64) {
                    probes.extend(write(self.view, (generation, shard), layers, &items));
                    continue;
                }
                probes.extend(lookups(self.view, (generation, shard), 0..layers, &items));
                if writes {
                    self.pass.unwritten.push(Unwritten { used, shard, items, tested: layers });
                }
            }
        }
        Ok(probes)
    }

    /// Sends probes. Returns the probes that the replies require next.
    async fn probe<X: Exchange>(&mut self, exchange: &mut X, probes: Vec<Probe>) -> Vec<Probe> {
        let mut requests = match self.kind {
            Kind::Lookup => Vec::new(),
            Kind::Insert | Kind::Build(_) => corrections(self.view),
        };
        let corrections = requests.len();
        requests.extend(probes.iter().map(|probe| probe.request(self.view, self.hashes)));
        if self.view.metadata.window.is_some() {
            // The request for the server's time comes after the inserts. If a slice is not over at
            // the received time, the slice was not over during the inserts.
            requests.push(Clock::request(self.view.name()));
        }
        let mut replies = exchange.exchange(requests).await;
        // The batch ignores a failed correction: the counter stays too high.
        replies.drain(..corrections);
        self.learn_time(replies.get(probes.len()));
        let mut next = Vec::new();
        for (probe, reply) in probes.iter().zip(replies) {
            match probe.outcome(self.view, reply) {
                Ok(outcome) => {
                    self.learn(probe, &outcome);
                    next.extend(self.untested(probe));
                }
                Err(error) => self.fail(probe, &error),
            }
        }
        next.extend(self.writes());
        next
    }

    /// Returns the lookups of the items of a probe in the layers that the operation has not tested.
    /// Only the replies of layer 0 contain the present number of layers. Before an insert of
    /// unwritten items, [`writes`](Self::writes) returns these lookups.
    fn untested(&self, probe: &Probe) -> Vec<Probe> {
        let is_unwritten = !probe.is_write && self.pass.uses[self.used(probe)].writes;
        if probe.layer != 0 || is_unwritten {
            return Vec::new();
        }
        let layers = self.view.generations[probe.generation].layers(probe.shard);
        let shard = (probe.generation, probe.shard);
        lookups(self.view, shard, probe.tested..layers, &probe.items)
    }

    /// Updates the pass and the view from the reply to a probe.
    fn learn(&mut self, probe: &Probe, outcome: &Outcome) {
        let used = self.used(probe);
        let mut repeats = 0;
        for (i, &item) in probe.items.iter().enumerate() {
            if outcome.was_set(i) {
                self.pass.found[used][item as usize] = true;
                repeats += 1;
            }
        }
        self.pass.must_reread |= self.view.is_outdated_by(probe.generation, outcome.state);
        let generation = &self.view.generations[probe.generation];
        if probe.layer == 0 {
            generation.learn_layers(probe.shard, outcome.state.layers);
        }
        if probe.is_write {
            generation.add_repeats(probe.shard, probe.layer, repeats);
        }
        generation.learn_count(probe.shard, probe.layer, outcome.counter);
    }

    /// Stores the time of the server. Without a reply, keeps the previous time.
    fn learn_time(&mut self, reply: Option<&NodeReply>) {
        let clock = reply.map(|reply| Clock::decode(self.view.name(), reply.clone()));
        if let Some(Ok(clock)) = clock {
            self.view.learn_clock(clock);
        }
    }

    fn fail(&mut self, probe: &Probe, error: &RedisItemError) {
        if let RedisItemError::MissingShard { .. } = error {
            self.pass.must_reread = true;
            if probe.is_write {
                self.pass.created.push(probe.key(self.view));
            }
        }
        if !probe.is_write && error.is_unknown_command() {
            self.pass.must_reread |= self.view.has_bitfield_ro;
            self.view.learn_no_bitfield_ro();
        }
        for &item in &probe.items {
            self.pass.errors[item as usize] = Some(error.clone());
        }
    }

    /// Returns the inserts into shards whose layers are all tested, and lookups in the untested
    /// layers of the other shards. The items that wait for these lookups stay in `unwritten`. Items
    /// that do not fit the newest layer also stay in `unwritten`.
    fn writes(&mut self) -> Vec<Probe> {
        let mut probes = Vec::new();
        for unwritten in std::mem::take(&mut self.pass.unwritten) {
            let Unwritten { used, shard, mut items, tested } = unwritten;
            let (found, errors) = (&self.pass.found[used], &self.pass.errors);
            items.retain(|&item| !found[item as usize] && errors[item as usize].is_none());
            if items.is_empty() {
                continue;
            }
            let generation = self.pass.uses[used].generation;
            let (layers, room) = self.view.generations[generation].layers_and_room(shard);
            if tested < layers {
                probes.extend(lookups(self.view, (generation, shard), tested..layers, &items));
                self.pass.unwritten.push(Unwritten { used, shard, items, tested: layers });
                continue;
            }
            let room = match self.pass.overfull.contains(&(generation, shard, layers)) {
                true => usize::MAX,
                false => usize::try_from(room.unwrap_or(0)).unwrap_or(0),
            };
            let rest = items.split_off(room.min(items.len()));
            if !rest.is_empty() {
                let rest = self.without_repeats(used, &items, rest);
                self.pass.unwritten.push(Unwritten { used, shard, items: rest, tested });
            }
            probes.extend(write(self.view, (generation, shard), layers, &items));
        }
        probes
    }

    /// Removes from `rest` the items that are also in `before`, because these items are not new.
    fn without_repeats(&mut self, used: usize, before: &[u32], mut rest: Vec<u32>) -> Vec<u32> {
        let hash = |item: u32| self.hashes[item as usize];
        let before: HashSet<u64> = before.iter().map(|&item| hash(item)).collect();
        rest.retain(|&item| {
            let is_repeat = before.contains(&hash(item));
            self.pass.found[used][item as usize] |= is_repeat;
            !is_repeat
        });
        rest
    }

    fn used(&self, probe: &Probe) -> usize {
        let is_same = |used: &Use| used.generation == probe.generation;
        self.pass.uses.iter().position(is_same).expect("a pass probes what it uses")
    }

    /// Reads the metadata again, and tests whether the operation needs another pass.
    async fn reread<X: Exchange>(&mut self, exchange: &mut X) -> Result<Update, RedisItemError> {
        let name = self.view.name().to_vec();
        let mut requests = vec![NodeRequest::new("GET", name.clone())];
        requests.extend(self.pass.created.drain(..).map(growth::remove_remains));
        let reply = exchange.exchange(requests).await.remove(0);
        let has_lookups_to_repeat = self.pass.errors.iter().flatten().any(|error| {
            // If the server has no `BITFIELD_RO`, the next pass uses `BITFIELD`.
            error.is_unknown_command() && !self.view.has_bitfield_ro
        });
        let old = self.view.metadata.generations.clone();
        let update = self.view.update(bytes(&name, reply)?.as_deref())?;
        if update == Update::Unchanged && !has_lookups_to_repeat {
            return Ok(Update::Unchanged);
        }
        self.remember_new(&old);
        Ok(Update::Changed)
    }

    /// Keeps the results of the present insert pass. The next pass finds the items that the present
    /// pass inserted, so only the present pass can report that these items are new.
    fn remember_new(&mut self, old: &[GenerationRecord]) {
        let is_asked = |used: &&Use| used.reads && used.writes;
        let Some(asked) = self.pass.uses.iter().find(is_asked) else { return };
        let id = old[asked.generation].id;
        let is_new = (0..self.hashes.len())
            .map(|item| self.is_new(item) && self.pass.errors[item].is_none())
            .collect();
        self.new_before = Some((id, is_new));
    }

    fn is_new(&self, item: usize) -> bool {
        let mut reads = self.pass.uses.iter().zip(&self.pass.found).filter(|(used, _)| used.reads);
        !reads.any(|(_, found)| found[item]) || self.was_new(item)
    }

    fn was_new(&self, item: usize) -> bool {
        self.new_before.as_ref().is_some_and(|(id, is_new)| {
            let is_same =
                |record: &GenerationRecord| record.id == *id && record.role != Role::Building;
            is_new[item] && self.view.metadata.generations.iter().any(is_same)
        })
    }

    /// Adds layers for the items that do not fit the newest layers. Returns the inserts into the
    /// new layers.
    async fn grow<X: Exchange>(&mut self, exchange: &mut X) -> Vec<Probe> {
        let request = |unwritten: &Unwritten| {
            let generation = self.pass.uses[unwritten.used].generation;
            growth::add_layer(&self.view.generations[generation], unwritten.shard, unwritten.tested)
        };
        let requests = self.pass.unwritten.iter().map(request).collect();
        let replies = exchange.exchange(requests).await;
        for (unwritten, reply) in self.pass.unwritten.iter_mut().zip(replies) {
            let Unwritten { used, shard, tested, .. } = *unwritten;
            let number = self.pass.uses[used].generation;
            let generation = &self.view.generations[number];
            let error = match growth::layers(&generation.key(shard, 0), reply) {
                Ok((layers, counter)) => {
                    generation.learn_layers(shard, layers);
                    if layers == tested + 1 {
                        generation.learn_count(shard, tested, counter);
                        // A layer without items needs no lookup.
                        unwritten.tested += u8::from(counter == 0);
                    }
                    if layers <= tested {
                        self.pass.overfull.insert((number, shard, tested));
                    }
                    None
                }
                Err(error) => {
                    self.pass.overfull.insert((number, shard, tested));
                    Some(error)
                }
            };
            self.view.learn_growth(error);
        }
        self.writes()
    }

    fn results(&mut self) -> Vec<Result<bool, RedisItemError>> {
        let errors = std::mem::take(&mut self.pass.errors);
        let result = |(item, error): (usize, Option<RedisItemError>)| {
            let is_found = || self.pass.found.iter().any(|found| found[item]);
            match (self.kind, error) {
                (Kind::Lookup, _) if is_found() => Ok(true),
                (_, Some(error)) => Err(error),
                (Kind::Lookup, None) => Ok(false),
                (Kind::Insert | Kind::Build(_), None) => Ok(self.is_new(item)),
            }
        };
        errors.into_iter().enumerate().map(result).collect()
    }
}

/// Returns the lookups of items in some layers of a shard. `shard` is the generation and the shard.
/// The operation has already tested the layers before `layers`.
fn lookups(
    view: &View,
    (generation, shard): (usize, u32),
    layers: Range<u8>,
    items: &[u32],
) -> Vec<Probe> {
    let tested = layers.end;
    let first = Probe { generation, shard, layer: 0, items: vec![], is_write: false, tested };
    layers.flat_map(|layer| Probe { layer, ..first.clone() }.each(view, items)).collect()
}

/// Returns the inserts of items into the newest of `layers` layers. The operation has tested all
/// older layers.
fn write(
    view: &View,
    (generation, shard): (usize, u32),
    layers: u8,
    items: &[u32],
) -> impl Iterator<Item = Probe> + use<> {
    let (layer, tested) = (layers - 1, layers);
    Probe { generation, shard, layer, items: Vec::new(), is_write: true, tested }.each(view, items)
}

#[cfg(test)]
mod tests;
