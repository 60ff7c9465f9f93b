//! Requests to which the upstream service responded with 404, although the filter contains their id.
//!
//! A 404 may depend on more than the id: on the spelling of the path, the query, the host, a cookie or a token.
//! Therefore a 404 counts only for a request with an equal [`RequestKey`]. If a 404 counted for all requests with the
//! id, one client could block an id for all clients. An example is the request `/products/7/`, if the upstream service
//! supports only `/products/7`.
//!
//! The guard may contain an id before the upstream service finds the id, because the service may read from a lagging
//! replica or cache. Therefore the cache does not store a 404 for an id that was inserted recently. Each insert writes
//! its time to a counter. Ids share counters, so that the memory is bounded. A new generation may contain any new id,
//! so its publication counts as an insert of all ids.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use http::header::HeaderName;
use http::request::Parts;
use moka::sync::Cache;
use smallvec::SmallVec;

/// The number of counters. If two ids share a counter, an insert of one id also blocks new entries for the other id.
const COUNTERS: usize = 1 << 16;

/// The maximum number of requests that the cache stores for one id.
const MAX_KEYS: usize = 16;

/// Headers whose values differ between requests, but do not change whether the response is 404.
const IGNORED: [&str; 13] = [
    "age",
    "b3",
    "cache-control",
    "if-modified-since",
    "if-none-match",
    "pragma",
    "range",
    "referer",
    "traceparent",
    "tracestate",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-request-id",
];

/// The hash of all parts of a request on which the response may depend: the method, the target and the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKey(u64);

impl RequestKey {
    /// Returns the key of a request. Returns `None` if the method is neither GET nor HEAD, because the cache stores
    /// only responses to GET and HEAD.
    #[must_use]
    pub fn of(parts: &Parts) -> Option<Self> {
        // The hash key is secret, so that an attacker cannot choose two requests with the same hash.
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return None;
        }
        let mut hasher = HASHER.build_hasher();
        let mut write = |bytes: &[u8]| {
            hasher.write(bytes);
            // The byte 0xff never occurs in a request head, so it separates the parts unambiguously.
            hasher.write_u8(0xff);
        };
        write(parts.method.as_str().as_bytes());
        write(parts.uri.authority().map_or(&b""[..], |host| host.as_str().as_bytes()));
        write(parts.uri.path_and_query().map_or(&b""[..], |path| path.as_str().as_bytes()));
        for (name, value) in &parts.headers {
            if !is_ignored(name) {
                write(name.as_str().as_bytes());
                write(value.as_bytes());
            }
        }
        Some(Self(hasher.finish()))
    }
}

fn is_ignored(name: &HeaderName) -> bool {
    IGNORED.contains(&name.as_str())
}

/// A token for an id that passed. The guard creates the token before it forwards the request.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// The time of the last insert that wrote to the counter of the id.
    inserted: u64,
    /// The time of the last publication of a generation.
    cleared: u64,
}

/// The requests for one id, with the times of their responses. Most ids have one request.
type Keys = SmallVec<[(RequestKey, Instant); 1]>;

/// The requests to which the upstream service recently responded with 404, grouped by id.
#[derive(Debug)]
pub(crate) struct NegativeCache {
    /// The cache. The value is `None` if the cache is turned off.
    cache: Option<Cache<Box<[u8]>, Keys>>,
    ttl: Duration,
    /// The time after the insert of an id during which the cache does not store a 404 for the id.
    recent: Duration,
    created: Instant,
    /// The time of the last insert for each counter, in nanoseconds after `created`. The value 0 means no insert. Each
    /// insert of an id increases the time in the counter of the id.
    inserted: Box<[AtomicU64]>,
    /// The time of the last publication of a generation, in nanoseconds after `created`.
    cleared: AtomicU64,
}

impl NegativeCache {
    /// Creates a cache for at most `ids` ids. Each entry stays for `ttl`. If `ids` is 0, the cache is off. The cache
    /// does not store a 404 within `recent` after the insert of its id.
    pub(crate) fn new(ids: u64, ttl: Duration, recent: Duration) -> Self {
        let cache = || Cache::builder().max_capacity(ids).time_to_live(ttl).build();
        Self {
            cache: (ids > 0).then(cache),
            ttl,
            recent,
            created: Instant::now(),
            inserted: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            cleared: AtomicU64::new(0),
        }
    }

    /// Tests whether the upstream service responded with 404 to a request.
    pub(crate) fn contains(&self, id: &[u8], key: RequestKey) -> bool {
        let keys = self.cache.as_ref().and_then(|cache| cache.get(id));
        // The time to live of a cache entry starts at the last response for the id, so the closure below tests the time
        // of each request.
        let is_kept = |(other, at): &(RequestKey, Instant)| *other == key && self.is_kept(*at);
        keys.is_some_and(|keys| keys.iter().any(is_kept))
    }

    /// Tests whether the upstream service responded with 404 to any request for an id.
    pub(crate) fn contains_any(&self, id: &[u8]) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.contains_key(id))
    }

    /// Returns the token that [`insert`](Self::insert) needs later.
    pub(crate) fn passed(&self, id: &[u8]) -> Passed {
        Passed {
            inserted: self.counter(id).load(Ordering::Acquire),
            cleared: self.cleared.load(Ordering::Acquire),
        }
    }

    /// Records a 404 for a request. The cache ignores the 404 if the id was created after [`passed`](Self::passed) was
    /// called, or recently before the call.
    pub(crate) fn insert(&self, id: &[u8], passed: Passed, key: RequestKey) {
        let Some(cache) = &self.cache else { return };
        let is_unchanged = || {
            let Passed { inserted, cleared } = self.passed(id);
            inserted == passed.inserted && cleared == passed.cleared
        };
        let is_old = |time: u64| {
            let time = Duration::from_nanos(time);
            time.is_zero() || self.created.elapsed().saturating_sub(time) >= self.recent
        };
        if !is_unchanged() || !is_old(passed.inserted) || !is_old(passed.cleared) {
            return;
        }
        let mut keys = cache.get(id).unwrap_or_default();
        keys.retain(|(other, at)| *other != key && self.is_kept(*at));
        if keys.len() >= MAX_KEYS {
            return;
        }
        keys.push((key, Instant::now()));
        cache.insert(id.into(), keys);
        // If the id has changed between the call of `is_unchanged` and the insert into the cache, the change has not
        // removed the new entry.
        if !is_unchanged() {
            cache.invalidate(id);
        }
    }

    /// Removes an id, because the id exists now.
    pub(crate) fn remove(&self, id: &[u8]) {
        // The counter changes before the cache, so that the cache ignores a late 404 of the id.
        self.note_time(self.counter(id));
        if let Some(cache) = &self.cache {
            cache.invalidate(id);
        }
    }

    /// Removes all ids, because any of these ids may exist now.
    pub(crate) fn clear(&self) {
        // The counter changes before the cache, as in `remove`.
        self.note_time(&self.cleared);
        if let Some(cache) = &self.cache {
            cache.invalidate_all();
        }
    }

    fn note_time(&self, counter: &AtomicU64) {
        let now = u64::try_from(self.created.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let later = |before: u64| Some(now.max(before.saturating_add(1)));
        _ = counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
    }

    fn is_kept(&self, at: Instant) -> bool {
        at.elapsed() < self.ttl
    }

    fn counter(&self, id: &[u8]) -> &AtomicU64 {
        // The hash is FNV-1a. If an attacker creates many ids with one counter, the only effect is that the cache
        // stores no 404 for ids of this counter.
        let hash = id.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        &self.inserted[(hash >> 32) as usize % COUNTERS]
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn key(uri: &str, headers: &[(&str, &str)]) -> RequestKey {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        RequestKey::of(&request.body(()).unwrap().into_parts().0).unwrap()
    }

    #[test]
    fn only_the_same_request_has_the_same_key() {
        let plain = key("/products/7", &[("host", "a"), ("cookie", "user=1")]);
        assert_eq!(plain, key("/products/7", &[("host", "a"), ("cookie", "user=1")]));
        let traced = [("host", "a"), ("cookie", "user=1"), ("x-request-id", "5")];
        assert_eq!(plain, key("/products/7", &traced));
        for (uri, headers) in [
            ("/products/7/", &[("host", "a"), ("cookie", "user=1")][..]),
            ("/products/7?", &[("host", "a"), ("cookie", "user=1")]),
            ("/products/7", &[("host", "b"), ("cookie", "user=1")]),
            ("/products/7", &[("host", "a"), ("cookie", "user=2")]),
            ("/products/7", &[("host", "a"), ("token", "user=1")]),
            ("/products/7", &[("host", "a")]),
        ] {
            assert_ne!(plain, key(uri, headers), "{uri} {headers:?}");
        }
        let post = Request::builder().method("POST").uri("/products/7").body(()).unwrap();
        assert_eq!(RequestKey::of(&post.into_parts().0), None);
    }

    #[test]
    fn further_answers_do_not_lengthen_the_time_of_an_entry() {
        let ttl = Duration::from_millis(200);
        let cache = NegativeCache::new(10, ttl, Duration::ZERO);
        let first = key("/7", &[]);
        cache.insert(b"7", cache.passed(b"7"), first);
        let end = Instant::now() + ttl;
        let mut others = 0;
        while Instant::now() < end {
            others += 1;
            cache.insert(b"7", cache.passed(b"7"), key(&format!("/7?{others}"), &[]));
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!cache.contains(b"7", first));
    }

    #[test]
    fn an_id_that_was_created_meanwhile_is_not_kept() {
        let cache = NegativeCache::new(10, Duration::from_secs(60), Duration::ZERO);
        let (one, two) = (key("/1", &[]), key("/2", &[]));
        let passed = cache.passed(b"7");
        cache.insert(b"7", passed, one);
        assert!(cache.contains(b"7", one) && !cache.contains(b"7", two));
        cache.remove(b"7");
        cache.insert(b"7", passed, one);
        assert!(!cache.contains_any(b"7"));
        cache.insert(b"7", cache.passed(b"7"), two);
        assert!(cache.contains(b"7", two));
        cache.clear();
        assert!(!cache.contains_any(b"7"));
    }

    #[test]
    fn an_id_that_was_created_a_short_time_ago_is_not_kept() {
        let minute = Duration::from_secs(60);
        let cache = NegativeCache::new(10, minute, minute);
        let key = key("/7", &[]);
        cache.remove(b"7");
        for (id, is_kept) in [(b"7", false), (b"8", true)] {
            cache.insert(id, cache.passed(id), key);
            assert_eq!(cache.contains(id, key), is_kept);
        }
        cache.clear();
        cache.insert(b"8", cache.passed(b"8"), key);
        assert!(!cache.contains_any(b"8"));
    }
}
