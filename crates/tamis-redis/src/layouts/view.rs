//! The view that a client has of a filter: the generations, and the layers of the shards of each
//! generation.
//!
//! The view of a client may be stale. Each reply contains the state word of its shard. The state
//! word shows a change of the filter: another layer, a newer generation, a retired shard, or a
//! missing shard.

use std::collections::HashMap;
use std::sync::Arc;

use crate::clock::Clock;
use crate::error::{RedisItemError, printable};
use crate::layouts::geometry::{LayerGeometry, MAX_LAYERS, RedisGrowth};
use crate::layouts::header::State;
use crate::layouts::metadata::{GenerationRecord, Metadata, Role};
use crate::layouts::shard_keys::{NameError, ShardKeys};

/// The view that a client has of a filter.
#[derive(Clone, Debug)]
pub(crate) struct View {
    name: Arc<[u8]>,
    pub(crate) metadata: Metadata,
    /// The generations of `metadata`, in the same order.
    pub(crate) generations: Vec<Generation>,
    /// Whether the server supports `BITFIELD_RO`, which Redis has since version 6.2.
    pub(crate) has_bitfield_ro: bool,
    /// The error of the last growth of a full shard, if the growth failed.
    pub(crate) growth_error: Option<RedisItemError>,
    /// The generation whose rebuild this client started.
    pub(crate) rebuild: Option<u32>,
    /// The clock of a window. The field is `None` until the client has read the clock.
    pub(crate) clock: Option<Clock>,
}

/// The view that a client has of a generation.
#[derive(Clone, Debug)]
pub(crate) struct Generation {
    pub(crate) record: GenerationRecord,
    keys: ShardKeys,
    /// The number of layers of each shard, as last read by the client.
    layers: Vec<u8>,
    /// For each shard: how many more items the newest layer takes, or `None` if the client has not
    /// read the counter. The list is empty if the generation does not grow.
    room: Vec<Option<i64>>,
    /// For each shard and layer: the number of repeated items that inserts counted although the
    /// items were not new. The next insert subtracts the repeated items from the counter.
    pub(crate) repeats: HashMap<(u32, u8), i64>,
}

/// The kind of an operation on items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    /// Inserts only into the generation whose rebuild this client started.
    Build,
    Lookup,
}

/// How an operation uses a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) generation: usize,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// The result of reading the metadata again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// The generations have not changed.
    Unchanged,
    /// The generations have changed, so the operation starts again with the new generations.
    Changed,
}

impl View {
    /// Creates the view of a filter from its metadata.
    pub(crate) fn new(name: &[u8], metadata: Metadata) -> Result<Self, NameError> {
        let generations = metadata
            .generations
            .iter()
            .map(|record| Generation::new(name, record.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.into(),
            metadata,
            generations,
            has_bitfield_ro: true,
            growth_error: None,
            rebuild: None,
            clock: None,
        })
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Updates the view from the string at the metadata key.
    pub(crate) fn update(&mut self, bytes: Option<&[u8]>) -> Result<Update, RedisItemError> {
        let name = || printable(&self.name);
        let bytes = bytes.ok_or_else(|| RedisItemError::NoFilter { name: name() })?;
        let metadata = Metadata::decode(bytes)
            .map_err(|source| RedisItemError::Metadata { name: name(), source })?;
        if metadata == self.metadata {
            return Ok(Update::Unchanged);
        }
        if metadata.hasher != self.metadata.hasher || metadata.window != self.metadata.window {
            return Err(RedisItemError::Replaced { name: name() });
        }
        let mut known = std::mem::take(&mut self.generations);
        for record in &metadata.generations {
            let same = known.iter().position(|old| {
                old.record.id == record.id && old.record.geometry == record.geometry
            });
            let generation = match same {
                Some(i) => Generation { record: record.clone(), ..known.swap_remove(i) },
                None => Generation::new(&self.name, record.clone())
                    .expect("the name was checked when the view was created"),
            };
            self.generations.push(generation);
        }
        self.metadata = metadata;
        Ok(Update::Changed)
    }

    /// Returns the number of the slice at the time `now` in milliseconds. Returns zero if the
    /// filter is no window.
    pub(crate) fn slice_at(&self, now: u64) -> u64 {
        self.metadata.window.map_or(0, |window| now / window.slice_millis)
    }

    /// Returns the number and the expiry of the slice at the time `now`, if the metadata does not
    /// contain this slice.
    pub(crate) fn missing_slice(&self, now: u64) -> Option<(u64, u64)> {
        let span = self.metadata.window?;
        let number = self.slice_at(now);
        let is_missing = |record: &GenerationRecord| match record.role {
            Role::Slice(newest) => newest < number,
            _ => false,
        };
        self.metadata.generations.last().filter(|last| is_missing(last))?;
        Some((number, (number + self.lifetime()) * span.slice_millis))
    }

    /// Returns the time at which the keys of a slice expire, or `None` for a generation that is not
    /// a slice.
    pub(crate) fn slice_expiry(&self, record: &GenerationRecord) -> Option<u64> {
        match (record.role, self.metadata.window) {
            (Role::Slice(number), Some(span)) => {
                Some((number + self.lifetime()) * span.slice_millis)
            }
            _ => None,
        }
    }

    /// Tests whether the keys of a slice have expired.
    pub(crate) fn is_expired(&self, record: &GenerationRecord, now: u64) -> bool {
        match record.role {
            Role::Slice(number) => number + self.lifetime() <= self.slice_at(now),
            _ => false,
        }
    }

    /// Returns the lifetime of the keys of a slice, counted in slices from the start of the slice.
    /// The lifetime is one slice longer than the window, because the clocks of the nodes of a
    /// cluster differ slightly.
    fn lifetime(&self) -> u64 {
        1 + self.metadata.window.map_or(0, |window| u64::from(window.slices))
    }

    /// Returns the generations that an operation uses.
    pub(crate) fn uses(&self, kind: Kind, now: u64) -> Vec<Use> {
        let is_insert = kind == Kind::Insert;
        let slices = self.metadata.window.map_or(0, |window| u64::from(window.slices));
        let (slice, last) = (self.slice_at(now), self.generations.len() - 1);
        let of = |(generation, known): (usize, &Generation)| {
            let (reads, writes) = match known.record.role {
                Role::Building if kind == Kind::Build => {
                    let is_own = self.rebuild == Some(known.record.id);
                    (is_own, is_own)
                }
                _ if kind == Kind::Build => (false, false),
                Role::Current => (true, is_insert),
                Role::Building => (false, is_insert),
                Role::Slice(number) => (number + slices > slice, is_insert && generation == last),
            };
            (reads || writes).then_some(Use { generation, reads, writes })
        };
        self.generations.iter().enumerate().filter_map(of).collect()
    }

    /// Tests whether the metadata of a window may have changed although no reply shows the change.
    /// If an operation does not read the newest slice of the view, no reply can show that a newer
    /// slice exists.
    pub(crate) fn is_outdated_at(&self, now: u64, uses: &[Use]) -> bool {
        let last = self.generations.len() - 1;
        self.metadata.window.is_some()
            && self.missing_slice(now).is_some()
            && !uses.iter().any(|used| used.generation == last && used.reads)
    }

    /// Tests whether the state of a shard shows that the metadata may have changed.
    pub(crate) fn is_outdated_by(&self, generation: usize, state: State) -> bool {
        state.is_retired || (state.has_next && generation + 1 == self.generations.len())
    }
}

impl Generation {
    pub(crate) fn new(name: &[u8], record: GenerationRecord) -> Result<Self, NameError> {
        let shards = record.geometry.shards;
        let keys = ShardKeys::new(name, shards)?;
        let room = match record.growth {
            RedisGrowth::Fixed => Vec::new(),
            RedisGrowth::Doubling => vec![None; shards as usize],
        };
        let layers = vec![1; shards as usize];
        Ok(Self { record, keys, layers, room, repeats: HashMap::new() })
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
        self.layers[shard as usize]
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
    pub(crate) fn learn_layers(&mut self, shard: u32, layers: u8) {
        let known = &mut self.layers[shard as usize];
        if layers > *known {
            *known = layers;
            self.set_room(shard, None);
        }
    }

    /// Stores the counter of a layer.
    pub(crate) fn learn_count(&mut self, shard: u32, layer: u8, counter: i64) {
        if layer + 1 == self.layers(shard) {
            let items = counter - self.repeats.get(&(shard, layer)).unwrap_or(&0);
            let room = self.layer(layer).capacity.cast_signed() - items;
            self.set_room(shard, Some(room));
        }
    }

    fn set_room(&mut self, shard: u32, room: Option<i64>) {
        if let Some(known) = self.room.get_mut(shard as usize) {
            *known = room;
        }
    }

    /// Returns how many more items the newest layer of a shard takes. Returns `None` if the client
    /// has not read the counter.
    pub(crate) fn room(&self, shard: u32) -> Option<i64> {
        match self.room.get(shard as usize) {
            Some(_) if self.layers(shard) >= MAX_LAYERS => Some(i64::MAX),
            Some(room) => *room,
            None => Some(i64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{RedisPlan, RedisWindow};

    fn metadata(roles: &[Role]) -> Metadata {
        let plan = RedisPlan::new(1000, 0.01).unwrap();
        let mut metadata = Metadata::new(&plan, 0);
        metadata.generations =
            roles.iter().map(|&role| GenerationRecord::new(&plan, role)).collect();
        metadata
    }

    fn used(view: &View, kind: Kind, now: u64) -> Vec<(usize, bool, bool)> {
        let uses = view.uses(kind, now);
        uses.iter().map(|used| (used.generation, used.reads, used.writes)).collect()
    }

    #[test]
    fn a_generation_that_is_being_built_takes_inserts_and_no_lookups() {
        let mut view = View::new(b"a", metadata(&[Role::Current, Role::Building])).unwrap();
        assert_eq!(used(&view, Kind::Lookup, 0), [(0, true, false)]);
        assert_eq!(used(&view, Kind::Insert, 0), [(0, true, true), (1, false, true)]);
        assert_eq!(used(&view, Kind::Build, 0), [], "another client builds it");
        view.rebuild = Some(view.metadata.generations[1].id);
        assert_eq!(used(&view, Kind::Build, 0), [(1, true, true)]);
    }

    #[test]
    fn a_window_reads_the_live_slices_and_writes_the_newest() {
        let mut metadata = metadata(&[Role::Slice(7), Role::Slice(8), Role::Slice(9)]);
        metadata.window = Some(RedisWindow { slices: 2, slice_millis: 1000 });
        let view = View::new(b"a", metadata).unwrap();
        assert_eq!(used(&view, Kind::Lookup, 9_500), [(1, true, false), (2, true, false)]);
        assert_eq!(used(&view, Kind::Insert, 9_500), [(1, true, false), (2, true, true)]);
    }

    #[test]
    fn a_window_needs_a_slice_when_the_newest_is_over() {
        let mut metadata = metadata(&[Role::Slice(8)]);
        metadata.window = Some(RedisWindow { slices: 2, slice_millis: 1000 });
        let view = View::new(b"a", metadata).unwrap();
        let is_outdated = |now| view.is_outdated_at(now, &view.uses(Kind::Lookup, now));
        assert_eq!((view.missing_slice(8_999), is_outdated(8_999)), (None, false));
        assert_eq!((view.missing_slice(9_000), is_outdated(9_000)), (Some((9, 12_000)), false));
        assert!(is_outdated(10_000));
        let slice = &view.metadata.generations[0];
        assert!(!view.is_expired(slice, 10_999) && view.is_expired(slice, 11_000));
    }

    #[test]
    fn changed_metadata_keeps_what_is_known_about_old_generations() {
        let mut new = metadata(&[Role::Current]);
        let mut view = View::new(b"a", new.clone()).unwrap();
        view.generations[0].learn_layers(0, 3);
        assert_eq!(view.update(Some(new.encode().as_bytes())), Ok(Update::Unchanged));
        new.generations.push(metadata(&[Role::Building]).generations.remove(0));
        assert_eq!(view.update(Some(new.encode().as_bytes())), Ok(Update::Changed));
        assert_eq!((view.generations[0].layers(0), view.generations.len()), (3, 2));
    }

    #[test]
    fn lost_and_replaced_metadata_are_errors() {
        let mut new = metadata(&[Role::Current]);
        let mut view = View::new(b"a", new.clone()).unwrap();
        assert!(matches!(view.update(None), Err(RedisItemError::NoFilter { .. })));
        assert!(matches!(view.update(Some(b"text")), Err(RedisItemError::Metadata { .. })));
        new.hasher = tamis::Hasher::keyed([1, 2]);
        let text = new.encode();
        assert!(matches!(view.update(Some(text.as_bytes())), Err(RedisItemError::Replaced { .. })));
    }
}
