//! The view that a client has of a filter: the generations, and the layers of the shards of each
//! generation.
//!
//! The view of a client may be stale. Each reply contains the state word of its shard. The state
//! word shows a change of the filter: another layer, a newer generation, a retired shard, or a
//! missing shard.
//!
//! The operations of a client may run at the same time. Each operation works on its own [`View`], a
//! cheap copy, and keeps its generations until it reads the metadata again. An operation writes
//! each value that it reads to the state that all views of the client share.
//!
//! Replies may arrive in another order than the server has sent them. If the shared metadata
//! changes while an operation reads the metadata, the operation uses the metadata that it has read,
//! and does not change the shared metadata. Older metadata therefore seldom replaces newer metadata:
//! only if the metadata changed twice and ended as it was.
//! The shared metadata may be older than the metadata of the operation. This is as safe as a stale
//! view of another client.

use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use crate::clock::Clock;
use crate::error::{RedisItemError, printable};
use crate::layouts::generation_view::GenerationView;
use crate::layouts::header::State;
use crate::layouts::metadata::{GenerationRecord, Metadata, Role};
use crate::layouts::shard_keys::NameError;
use crate::lock::locked;
use crate::single_flight::SingleFlight;

/// The view that an operation has of a filter.
#[derive(Clone, Debug)]
pub(crate) struct View {
    name: Arc<[u8]>,
    shared: Arc<ClientState>,
    /// The values that this operation uses.
    known: Known,
}

/// The state that all views of a client share.
#[derive(Debug)]
struct ClientState {
    /// The values that the operations of the client have read last.
    known: Mutex<Known>,
    slices: SingleFlight<Result<(), RedisItemError>>,
}

/// The metadata and the server properties that a client has read.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) metadata: Arc<Metadata>,
    /// The number of changes of the shared metadata.
    version: u64,
    /// The generations of `metadata`, in the same order.
    pub(crate) generations: Arc<[GenerationView]>,
    /// Whether the server supports `BITFIELD_RO`, which Redis has since version 6.2.
    pub(crate) has_bitfield_ro: bool,
    /// The error of the last growth of a full shard, if the growth failed.
    pub(crate) growth_error: Option<RedisItemError>,
    /// The clock of a window. The field is `None` until the client has read the clock.
    pub(crate) clock: Option<Clock>,
}

/// The kind of an operation on items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    /// Inserts only into the generation with this identifier, whose rebuild this client started.
    Build(u32),
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
            .map(|record| GenerationView::new(name, record.clone()))
            .collect::<Result<_, _>>()?;
        let known = Known {
            metadata: Arc::new(metadata),
            version: 0,
            generations,
            has_bitfield_ro: true,
            growth_error: None,
            clock: None,
        };
        let shared = ClientState { known: Mutex::new(known.clone()), slices: SingleFlight::new() };
        Ok(Self { name: name.into(), shared: Arc::new(shared), known })
    }

    /// Returns a view for a new operation, with the values that all operations of the client have
    /// read.
    pub(crate) fn latest(&self) -> Self {
        let known = locked(&self.shared.known).clone();
        Self { name: Arc::clone(&self.name), shared: Arc::clone(&self.shared), known }
    }

    /// Runs the work that adds a slice, or waits for another operation of the client that adds a
    /// slice.
    pub(crate) async fn add_slice_once(
        &mut self,
        work: impl Future<Output = Result<(), RedisItemError>> + Send,
    ) -> Result<(), RedisItemError> {
        let result = self.shared.slices.run(work, std::future::pending).await;
        let shared = locked(&self.shared.known).clone();
        self.adopt(shared);
        result
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
        if metadata.hasher != self.metadata.hasher || metadata.window != self.metadata.window {
            return Err(RedisItemError::Replaced { name: name() });
        }
        let is_unchanged = metadata == *self.known.metadata;
        let mut shared = locked(&self.shared.known);
        let mut known = shared.clone();
        if metadata != *shared.metadata {
            let all = || shared.generations.iter().chain(self.generations.iter());
            let generation = |record: &GenerationRecord| {
                let is_same = |old: &&GenerationView| {
                    old.record.id == record.id && old.record.geometry == record.geometry
                };
                match all().find(is_same) {
                    Some(known) => known.with_record(record.clone()),
                    None => GenerationView::new(&self.name, record.clone())
                        .expect("the name was checked when the view was created"),
                }
            };
            known.generations = metadata.generations.iter().map(generation).collect();
            known.metadata = Arc::new(metadata);
            // If the version has changed since the operation last used the shared metadata, the
            // shared metadata may be newer than the metadata that the operation has read.
            if self.known.version == shared.version {
                known.version += 1;
                shared.clone_from(&known);
            }
        }
        drop(shared);
        self.adopt(known);
        Ok(if is_unchanged { Update::Unchanged } else { Update::Changed })
    }

    /// Replaces the values of this view. The view keeps its own clock, because the operation must
    /// compare times that the server sent after the requests of this operation. The server may have
    /// sent the shared time earlier.
    fn adopt(&mut self, known: Known) {
        self.known = Known { clock: self.known.clock.or(known.clock), ..known };
    }

    /// Stores a time of the server. Of two times, the time that was received last stays.
    pub(crate) fn learn_clock(&mut self, clock: Clock) {
        let shared = &mut locked(&self.shared.known).clock;
        if shared.is_none_or(|known| known.is_older_than(&clock)) {
            *shared = Some(clock);
        }
        self.known.clock = Some(clock);
    }

    /// Stores the result of the growth of a full shard.
    pub(crate) fn learn_growth(&mut self, error: Option<RedisItemError>) {
        locked(&self.shared.known).growth_error.clone_from(&error);
        self.known.growth_error = error;
    }

    /// Stores that the server does not support `BITFIELD_RO`.
    pub(crate) fn learn_no_bitfield_ro(&mut self) {
        locked(&self.shared.known).has_bitfield_ro = false;
        self.known.has_bitfield_ro = false;
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
        let of = |(generation, known): (usize, &GenerationView)| {
            let (reads, writes) = match known.record.role {
                Role::Building if kind == Kind::Build(known.record.id) => (true, true),
                _ if matches!(kind, Kind::Build(_)) => (false, false),
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

impl Deref for View {
    type Target = Known;

    fn deref(&self) -> &Known {
        &self.known
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
        let view = View::new(b"a", metadata(&[Role::Current, Role::Building])).unwrap();
        assert_eq!(used(&view, Kind::Lookup, 0), [(0, true, false)]);
        assert_eq!(used(&view, Kind::Insert, 0), [(0, true, true), (1, false, true)]);
        let id = view.metadata.generations[1].id;
        assert_eq!(used(&view, Kind::Build(id ^ 1), 0), [], "another client builds it");
        assert_eq!(used(&view, Kind::Build(id), 0), [(1, true, true)]);
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
    fn what_an_operation_reads_is_in_the_views_of_later_operations() {
        let mut new = metadata(&[Role::Current]);
        let view = View::new(b"a", new.clone()).unwrap();
        let (mut one, mut other) = (view.latest(), view.latest());
        other.generations[0].learn_layers(0, 2);
        new.generations.push(metadata(&[Role::Building]).generations.remove(0));
        assert_eq!(one.update(Some(new.encode().as_bytes())), Ok(Update::Changed));
        one.generations[1].add_repeats(0, 0, 5);
        one.learn_no_bitfield_ro();
        let latest = view.latest();
        assert_eq!((latest.generations[0].layers(0), latest.generations.len()), (2, 2));
        assert!(!latest.has_bitfield_ro);
        // An operation keeps its generations until it reads the metadata itself.
        assert_eq!((other.generations.len(), other.has_bitfield_ro), (1, true));
        assert_eq!(other.update(Some(new.encode().as_bytes())), Ok(Update::Changed));
        assert_eq!(other.generations[1].take_repeats(), [((0, 0), 5)].into());
        assert_eq!(one.generations[1].take_repeats(), [].into(), "another operation has them");
    }

    #[test]
    fn an_older_read_does_not_replace_newer_metadata() {
        let old = metadata(&[Role::Current]);
        let mut new = old.clone();
        new.generations.push(metadata(&[Role::Building]).generations.remove(0));
        let view = View::new(b"a", old.clone()).unwrap();
        let (mut late, mut early) = (view.latest(), view.latest());
        assert_eq!(early.update(Some(new.encode().as_bytes())), Ok(Update::Changed));
        early.generations[1].add_repeats(0, 0, 5);
        drop(early);
        // The server executed the read of `late` before the change, and the reply comes late.
        assert_eq!(late.update(Some(old.encode().as_bytes())), Ok(Update::Unchanged));
        assert_eq!((late.generations.len(), view.latest().generations.len()), (1, 2));
        // The next read of the same operation began later, so its result is newer.
        assert_eq!(late.update(Some(new.encode().as_bytes())), Ok(Update::Changed));
        assert_eq!(late.generations[1].take_repeats(), [((0, 0), 5)].into());
        assert_eq!(late.update(Some(old.encode().as_bytes())), Ok(Update::Changed));
        assert_eq!(view.latest().generations.len(), 1);
    }

    #[test]
    fn an_operation_keeps_its_clock_when_it_reads_the_metadata() {
        let clock = |millis: u64| {
            let part = |part: u64| redis::Value::BulkString(part.to_string().into_bytes());
            let time = redis::Value::Array([millis / 1000, 0].map(part).into());
            Clock::decode(b"a", Ok(time)).unwrap()
        };
        let metadata = metadata(&[Role::Current]);
        let mut view = View::new(b"a", metadata.clone()).unwrap();
        view.learn_clock(clock(9_000_000));
        // The server sent this time earlier, but the reply to another operation came later.
        view.latest().learn_clock(clock(1_000_000));
        view.update(Some(metadata.encode().as_bytes())).unwrap();
        assert!(view.clock.unwrap().now() >= 9_000_000);
        assert!(view.latest().clock.unwrap().now() < 9_000_000);
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
