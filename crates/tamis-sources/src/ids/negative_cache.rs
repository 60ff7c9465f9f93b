//! Requests to which the upstream service responded with 404, although the filter contains their id.
//!
//! A request with a false positive of the filter passes once: the cache then refuses the request. An attacker may have
//! found a million ids that are false positives. The cache therefore stores many responses for a long time. An entry
//! takes 32 bytes, and at most 12 bytes in the index. The cache stores digests of 128 bits with secret keys. A filter
//! would take less memory, but the false positives of that filter would refuse ids that exist.
//!
//! # The request must be the same
//!
//! A 404 may depend on more than the id: on the spelling of the path, the query, the host, a cookie or a token.
//! Therefore a 404 counts only for a request with an equal [`RequestKey`]. If a 404 counted for all requests with the
//! id, one client could block an id for all clients. An example is the request `/products/7/`, if the upstream service
//! supports only `/products/7`.
//!
//! # A change of the id ends the refusals
//!
//! A row event of an id [removes](NegativeCache::remove) the entries of the id, because the upstream service may find
//! the id now. A new generation removes all entries. A response for a request from before the change may arrive after
//! the change, and must not be stored. Therefore each change writes its time to a counter. A request takes the times as
//! a [token](Passed) before the guard forwards the request. The cache stores the response only if the times are still
//! the same. Ids share counters, so that the memory is bounded. A shared counter may prevent the storage of a response,
//! and never causes a refusal.
//!
//! ```text
//! request  ── passed() ──▶ upstream: no row ──────────── 404 ──▶ insert(): the counter has changed, so no entry
//! row event                                  remove()
//! ```
//!
//! `remove` writes the counter before `remove` locks the shard. `insert` reads the counter while `insert` has the lock.
//! If `insert` has the lock first, `remove` removes the entry. If `remove` has the lock first, `insert` reads the new
//! time. In both orders, the cache has no entry of an earlier request for the id when `remove` returns.
//!
//! The guard may contain an id before the upstream service finds the id, because the service may read from a lagging
//! replica or cache. Therefore the cache does not store a 404 for an id that was changed recently.

mod clock;
mod request_key;
mod shard;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tamis::Hasher;

use crate::ids::negative_cache::clock::Clock;
pub use crate::ids::negative_cache::request_key::RequestKey;
use crate::ids::negative_cache::shard::{Entry, Shard};

/// The number of counters, which take 2 MiB. If two ids share a counter, a change of one id also blocks new entries for
/// the other id. If 10,000 ids were changed recently, the cache stores no 404 for 4 % of the other ids.
const COUNTERS: usize = 1 << 18;

/// The maximum number of shards. Threads that use different shards do not wait for each other.
const MAX_SHARDS: u64 = 64;

/// The minimum number of entries for which a shard is created.
const LEAST_ENTRIES: u64 = 1024;

/// A token for an id that passed. The guard creates the token before it forwards the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The time of the last change that wrote to the counter of the id.
    changed: u64,
    /// The time of the last publication of a generation.
    cleared: u64,
}

/// The requests to which the upstream service responded with 404.
#[derive(Debug)]
pub(crate) struct NegativeCache {
    /// The hash function of the ids. The key is secret, so that an attacker cannot choose ids with the same hash.
    hasher: Hasher,
    /// The shards. The cache is off if there is no shard.
    shards: Box<[RwLock<Shard>]>,
    /// The maximum number of entries of a shard.
    max_entries: usize,
    /// The time for which an entry stays, in nanoseconds.
    ttl: u64,
    /// The time after the change of an id during which the cache does not store a 404 for the id, in nanoseconds.
    recent: u64,
    clock: Clock,
    /// The time of the last change for each counter, in nanoseconds. The value 0 means no change. Each change of an id
    /// increases the time in the counter of the id.
    changed: Box<[AtomicU64]>,
    /// The time of the last publication of a generation, in nanoseconds.
    cleared: AtomicU64,
}

impl NegativeCache {
    /// Creates a cache for at most `requests` requests. Each entry stays for `ttl`. If `requests` is 0, the cache is
    /// off. The cache does not store a 404 within `recent` after the change of its id.
    ///
    /// # Panics
    ///
    /// Panics if the operating system returns no random bytes.
    pub(crate) fn new(requests: u64, ttl: Duration, recent: Duration) -> Self {
        Self::with_clock(requests, ttl, recent, Clock::start())
    }

    fn with_clock(requests: u64, ttl: Duration, recent: Duration, clock: Clock) -> Self {
        let mut key = [0; 16];
        getrandom::fill(&mut key).expect("the system has random bytes");
        let key = u128::from_le_bytes(key);
        // The positions in a shard have 32 bits.
        let requests = requests.min(MAX_SHARDS * u64::from(u32::MAX));
        let shards = (requests / LEAST_ENTRIES).clamp(u64::from(requests > 0), MAX_SHARDS);
        let counters = if requests > 0 { COUNTERS } else { 1 };
        Self {
            hasher: Hasher::keyed([key as u64, (key >> 64) as u64]),
            shards: (0..shards).map(|_| RwLock::default()).collect(),
            max_entries: requests.checked_div(shards).unwrap_or(0) as usize,
            ttl: nanos(ttl),
            recent: nanos(recent),
            clock,
            changed: (0..counters).map(|_| AtomicU64::new(0)).collect(),
            cleared: AtomicU64::new(0),
        }
    }

    /// Tests whether the upstream service responded with 404 to a request.
    pub(crate) fn contains(&self, id: &[u8], request: RequestKey) -> bool {
        let time =
            self.read_shard(id, |shard, id| shard.time_of(id as u64, request.digest_with(id)));
        time.is_some_and(|at| self.is_kept(at))
    }

    /// Tests whether the upstream service responded with 404 to any request for an id.
    pub(crate) fn contains_any(&self, id: &[u8]) -> bool {
        let time = self.read_shard(id, |shard, id| shard.last_time_of(id as u64));
        time.is_some_and(|at| self.is_kept(at))
    }

    /// Returns the token that [`insert`](Self::insert) needs later.
    pub(crate) fn passed(&self, id: &[u8]) -> Passed {
        self.token(self.hasher.hash128(id))
    }

    /// Records a 404 for a request. The cache ignores the 404 if the id was changed after [`passed`](Self::passed) was
    /// called, or recently before the call.
    pub(crate) fn insert(&self, id: &[u8], passed: Passed, request: RequestKey) {
        let id = self.hasher.hash128(id);
        let Some(shard) = self.shard(id) else { return };
        let now = self.clock.now();
        let is_old = |time: u64| time == 0 || now.saturating_sub(time) >= self.recent;
        if !is_old(passed.changed) || !is_old(passed.cleared) {
            return;
        }
        let mut shard = shard.write();
        // The module documentation explains why the token is compared under the lock.
        if self.token(id) == passed {
            let entry = Entry { digest: request.digest_with(id), id: id as u64, at: now };
            shard.insert(entry, self.max_entries, now.checked_sub(self.ttl));
        }
    }

    /// Removes an id, because a row of the id has changed. The upstream service may find the id now.
    pub(crate) fn remove(&self, id: &[u8]) {
        let id = self.hasher.hash128(id);
        self.note_time(self.counter(id));
        if let Some(shard) = self.shard(id) {
            shard.write().remove(id as u64);
        }
    }

    /// Removes the entries of an id. Unlike [`remove`](Self::remove), the method does not prevent new entries.
    pub(crate) fn forget(&self, id: &[u8]) {
        // Most ids have no entry, so the test takes the lock of a reader.
        if self.read_shard(id, |shard, id| shard.last_time_of(id as u64)).is_some() {
            let id = self.hasher.hash128(id);
            self.shard(id).expect("the id has an entry").write().remove(id as u64);
        }
    }

    /// Removes all ids, because any of these ids may exist now.
    pub(crate) fn clear(&self) {
        self.note_time(&self.cleared);
        for shard in &self.shards {
            shard.write().clear();
        }
    }

    /// Calls `read` with the shard and the hash of an id. Returns `None` if the cache is off.
    fn read_shard<R>(&self, id: &[u8], read: impl FnOnce(&Shard, u128) -> Option<R>) -> Option<R> {
        if self.shards.is_empty() {
            return None;
        }
        let id = self.hasher.hash128(id);
        read(&self.shard(id)?.read(), id)
    }

    // The lower 64 bits of the hash of an id are the hash in a shard. The counter and the shard use other bits.

    fn shard(&self, id: u128) -> Option<&RwLock<Shard>> {
        let number = (id >> 64) as u32 as usize;
        self.shards.get(number.checked_rem(self.shards.len())?)
    }

    fn counter(&self, id: u128) -> &AtomicU64 {
        &self.changed[(id >> 96) as usize % self.changed.len()]
    }

    fn token(&self, id: u128) -> Passed {
        Passed {
            changed: self.counter(id).load(Ordering::Acquire),
            cleared: self.cleared.load(Ordering::Acquire),
        }
    }

    fn note_time(&self, counter: &AtomicU64) {
        let now = self.clock.now();
        let later = |before: u64| Some(now.max(before.saturating_add(1)));
        _ = counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
    }

    fn is_kept(&self, at: u64) -> bool {
        self.clock.now().saturating_sub(at) < self.ttl
    }
}

/// Returns a duration in nanoseconds.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
