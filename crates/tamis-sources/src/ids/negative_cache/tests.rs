//! Tests of the negative cache against a list of all responses.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::request_key::tests::key;
use super::shard::MAX_REQUESTS;
use super::*;

const SECOND: u64 = 1_000_000_000;

/// Creates a cache whose time the test sets with [`advance`].
fn cache(requests: u64, ttl: u64, recent: u64) -> NegativeCache {
    let clock = Clock::Set(AtomicU64::new(SECOND));
    let [ttl, recent] = [ttl, recent].map(Duration::from_secs);
    NegativeCache::with_clock(requests, ttl, recent, clock)
}

fn advance(cache: &NegativeCache, seconds: u64) {
    advance_nanos(cache, seconds * SECOND);
}

fn advance_nanos(cache: &NegativeCache, nanos: u64) {
    let Clock::Set(now) = &cache.clock else { panic!("the clock is real") };
    now.fetch_add(nanos, Ordering::Relaxed);
}

/// Records a 404 for a request that passed at the same time.
fn answer_404(cache: &NegativeCache, id: &[u8], request: RequestKey) {
    cache.insert(id, cache.passed(id), request);
}

fn stored(cache: &NegativeCache) -> usize {
    cache.shards.iter().map(|shard| shard.read().len()).sum()
}

#[test]
fn an_id_that_was_changed_meanwhile_is_not_kept() {
    let cache = cache(10, 60, 0);
    let (one, two) = (key("/1", &[]), key("/2", &[]));
    let passed = cache.passed(b"7");
    cache.insert(b"7", passed, one);
    assert!(cache.contains(b"7", one) && !cache.contains(b"7", two));
    cache.remove(b"7");
    cache.insert(b"7", passed, one);
    assert!(!cache.contains_any(b"7"));
    answer_404(&cache, b"7", two);
    assert!(cache.contains(b"7", two));
    cache.clear();
    cache.insert(b"7", passed, one);
    assert!(!cache.contains_any(b"7"));
}

#[test]
fn an_id_that_was_changed_a_short_time_ago_is_not_kept() {
    let cache = cache(10, 60, 60);
    let key = key("/7", &[]);
    cache.remove(b"7");
    for (id, is_kept) in [(b"7", false), (b"8", true)] {
        answer_404(&cache, id, key);
        assert_eq!(cache.contains(id, key), is_kept);
    }
    cache.clear();
    for (seconds, is_kept) in [(59, false), (1, true)] {
        advance(&cache, seconds);
        answer_404(&cache, b"8", key);
        assert_eq!(cache.contains_any(b"8"), is_kept, "{seconds}");
    }
}

#[test]
fn a_forgotten_id_may_be_kept_again_at_once() {
    let cache = cache(10, 60, 60);
    let key = key("/7", &[]);
    let passed = cache.passed(b"7");
    cache.insert(b"7", passed, key);
    cache.forget(b"7");
    assert!(!cache.contains_any(b"7"));
    cache.insert(b"7", passed, key);
    assert!(cache.contains(b"7", key));
}

#[test]
fn two_ids_of_one_request_are_different_entries() {
    let cache = cache(10, 60, 0);
    // The guard may find the id in the body of a GET request, and the key does not contain the body.
    let key = key("/products", &[]);
    answer_404(&cache, b"7", key);
    assert!(cache.contains(b"7", key) && !cache.contains(b"8", key));
}

#[test]
fn a_cache_for_no_requests_is_off() {
    let cache = cache(0, 60, 0);
    let key = key("/7", &[]);
    answer_404(&cache, b"7", key);
    cache.remove(b"7");
    cache.forget(b"7");
    cache.clear();
    assert!(!cache.contains(b"7", key) && !cache.contains_any(b"7"));
}

#[test]
fn the_memory_is_bounded() {
    for requests in [1, 3, 1000, 5000, 70_000] {
        let cache = cache(requests, 60, 0);
        let key = key("/", &[]);
        for id in 0..2 * requests {
            answer_404(&cache, &id.to_le_bytes(), key);
        }
        let stored = stored(&cache) as u64;
        // The capacities of all shards are equal, and the ids fill each shard.
        assert!(stored <= requests && stored + cache.shards.len() as u64 > requests, "{stored}");
        let bytes: usize = cache.shards.iter().map(|shard| shard.read().allocated_bytes()).sum();
        // A small index has a minimum size.
        assert!(bytes <= 44 * requests as usize + 100, "{bytes} bytes for {requests}");
        cache.clear();
        let bytes: usize = cache.shards.iter().map(|shard| shard.read().allocated_bytes()).sum();
        assert_eq!(bytes, 0);
    }
}

/// An attacker repeats 150,000 requests, with a pause of 100 seconds between two rounds.
#[test]
fn each_request_of_a_large_attack_passes_once() {
    const IDS: u32 = 150_000;

    let cache = cache(1_000_000, 600, 60);
    let key = key("/products", &[]);
    for round in 0..5 {
        let mut passed = 0;
        for id in 0..IDS {
            let id = id.to_le_bytes();
            if !cache.contains(&id, key) {
                passed += 1;
                answer_404(&cache, &id, key);
            }
        }
        assert_eq!(passed, if round == 0 { IDS } else { 0 }, "{round}");
        advance(&cache, 100);
    }
}

/// A random generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // The constants are from Knuth, The Art of Computer Programming, volume 2, section 3.3.4.
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}

/// A request that passed and has no response yet.
#[derive(Clone, Copy)]
struct Waiting {
    id: usize,
    request: usize,
    passed: Passed,
    /// The number of the step at which the request passed.
    step: u64,
}

/// A response that the model stores.
#[derive(Clone, Copy, PartialEq)]
struct Response {
    id: usize,
    request: usize,
    at: u64,
}

/// The model of the cache: the time and the step of each change, and a list of all responses.
struct Model {
    /// True if the cache is large enough for all responses. If the cache may lose a response, the model stores all
    /// responses that the cache may store.
    is_exact: bool,
    ttl: u64,
    recent: u64,
    now: u64,
    step: u64,
    /// The time and the step of the last change of each id.
    changed: Vec<Option<(u64, u64)>>,
    responses: Vec<Response>,
}

impl Model {
    fn expire(&mut self) {
        let Self { ttl, now, .. } = *self;
        self.responses.retain(|it| now - it.at < ttl);
    }

    fn contains(&self, id: usize, request: usize) -> bool {
        self.responses.iter().any(|it| it.id == id && it.request == request)
    }

    fn insert(&mut self, Waiting { id, request, step, .. }: Waiting) {
        let is_allowed = self.changed[id]
            .is_none_or(|(at, changed)| changed < step && self.now - at >= self.recent);
        let count = self.responses.iter().filter(|it| it.id == id).count();
        let is_stored = count < MAX_REQUESTS && !self.contains(id, request);
        if is_allowed && (is_stored || !self.is_exact) {
            self.responses.push(Response { id, request, at: self.now });
        }
    }

    fn change(&mut self, id: usize) {
        self.changed[id] = Some((self.now, self.step));
        self.forget(id);
    }

    fn forget(&mut self, id: usize) {
        self.responses.retain(|it| it.id != id);
    }

    /// Compares the cache with the model for all ids and all requests. Returns the number of requests in the cache.
    fn check(&self, cache: &NegativeCache, keys: &[RequestKey], place: &str) -> usize {
        let mut count = 0;
        for id in 0..self.changed.len() {
            let text = [id as u8];
            for (request, &key) in keys.iter().enumerate() {
                let (real, expected) = (cache.contains(&text, key), self.contains(id, request));
                let is_right = if self.is_exact { real == expected } else { !real || expected };
                assert!(is_right, "{place}: id {id}, request {request}: {real}");
                count += usize::from(real);
            }
            let any = self.responses.iter().any(|it| it.id == id);
            assert!(!cache.contains_any(&text) || any, "{place}: id {id}");
        }
        count
    }
}

/// Runs random steps. `max` is the maximum number of requests in the cache. If `max` is less than the number of
/// different requests, the cache may contain fewer responses than the model, but never a response that the model does
/// not contain.
fn compare(seed: u64, max: u64) -> usize {
    const IDS: usize = 12;
    const REQUESTS: usize = 20;

    let mut random = Random(seed);
    let (ttl, recent) = (random.below(40), random.below(20));
    let cache = cache(max, ttl, recent);
    let counters = |id: usize| std::ptr::from_ref(cache.counter(cache.hasher.hash128(&[id as u8])));
    // Ids with a common counter would need a model of the counters.
    let has_own_counters = (0..IDS).map(counters).collect::<HashSet<_>>().len() == IDS;
    if !has_own_counters {
        return 0;
    }
    let keys: Vec<_> = (0..REQUESTS).map(|request| key(&format!("/{request}"), &[])).collect();
    let is_exact = max > 1000;
    let mut model = Model {
        is_exact,
        ttl: ttl * SECOND,
        recent: recent * SECOND,
        now: SECOND,
        step: 0,
        changed: vec![None; IDS],
        responses: Vec::new(),
    };
    let (mut waiting, mut refusals) = (Vec::<Waiting>::new(), 0);
    for step in 1..600 {
        model.step = step;
        // Two changes at the same time have different times in a counter.
        model.now += 1;
        advance_nanos(&cache, 1);
        model.expire();
        let id = random.below(IDS as u64) as usize;
        let text = [id as u8];
        match random.below(100) {
            0..40 => {
                let request = random.below(REQUESTS as u64) as usize;
                waiting.push(Waiting { id, request, passed: cache.passed(&text), step });
            }
            40..80 if !waiting.is_empty() => {
                let late = waiting.swap_remove(random.below(waiting.len() as u64) as usize);
                model.insert(late);
                cache.insert(&[late.id as u8], late.passed, keys[late.request]);
            }
            80..85 => {
                model.change(id);
                cache.remove(&text);
            }
            85..88 => {
                model.forget(id);
                cache.forget(&text);
            }
            88 => {
                (0..IDS).for_each(|id| model.change(id));
                cache.clear();
            }
            89.. => {
                let seconds = random.below(5);
                model.now += seconds * SECOND;
                model.expire();
                advance(&cache, seconds);
            }
            _ => {}
        }
        model.expire();
        refusals += model.check(&cache, &keys, &format!("seed {seed}, step {step}"));
        assert!(stored(&cache) as u64 <= max, "seed {seed}, step {step}");
    }
    refusals
}

#[test]
fn the_cache_agrees_with_a_list_of_all_responses_in_every_order() {
    let refusals: usize = (0..40).map(|seed| compare(seed, 100_000)).sum();
    assert!(refusals > 10_000, "{refusals}");
}

#[test]
fn a_cache_that_is_too_small_refuses_only_what_the_list_refuses() {
    let refusals: usize = (0..40).map(|seed| compare(seed, 1 + seed % 30)).sum();
    assert!(refusals > 1000, "{refusals}");
}

/// Waits until two threads have called this function `round` times. The threads continue within nanoseconds.
fn meet(arrived: &AtomicU64, round: u64) {
    arrived.fetch_add(1, Ordering::AcqRel);
    let (start, mut spins) = (Instant::now(), 0_u64);
    while arrived.load(Ordering::Acquire) < 2 * round {
        spins += 1;
        // On a busy machine, the other thread needs the core of this thread.
        if spins.is_multiple_of(1000) {
            assert!(start.elapsed() < Duration::from_secs(60), "the other thread does not arrive");
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// The upstream service looks up the row while another thread creates the row and reports the change.
#[test]
fn a_change_that_races_with_a_404_leaves_no_entry() {
    const ROUNDS: u64 = 100_000;

    let cache = cache(1000, 60, 0);
    let request = key("/", &[]);
    let (has_row, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 1..=ROUNDS {
                let id = round.to_le_bytes();
                meet(&arrived, 3 * round - 2);
                let passed = cache.passed(&id);
                if !has_row.load(Ordering::SeqCst) {
                    cache.insert(&id, passed, request);
                }
                meet(&arrived, 3 * round - 1);
                meet(&arrived, 3 * round);
            }
        });
        for round in 1..=ROUNDS {
            let id = round.to_le_bytes();
            meet(&arrived, 3 * round - 2);
            // The delays move the change to different places of the other thread.
            (0..round % 256).for_each(|_| std::hint::spin_loop());
            has_row.store(true, Ordering::SeqCst);
            match round % 16 {
                0 => cache.clear(),
                _ => cache.remove(&id),
            }
            assert!(!cache.contains(&id, request), "{round}");
            meet(&arrived, 3 * round - 1);
            assert!(!cache.contains_any(&id), "{round}: after the late response");
            has_row.store(false, Ordering::SeqCst);
            meet(&arrived, 3 * round);
        }
    });
}

/// The insert waits for the lock of the shard while the id changes.
#[test]
fn a_404_that_waits_for_its_shard_does_not_outlive_a_change() {
    let cache = cache(1000, 60, 0);
    let request = key("/", &[]);
    let id = cache.hasher.hash128(b"7");
    let mut shard = cache.shard(id).unwrap().write();
    std::thread::scope(|threads| {
        let passed = cache.passed(b"7");
        let cache = &cache;
        threads.spawn(move || cache.insert(b"7", passed, request));
        // If the thread has not reached the lock after this time, the test proves nothing, but does not fail.
        std::thread::sleep(Duration::from_millis(20));
        cache.note_time(cache.counter(id));
        shard.remove(id as u64);
        drop(shard);
    });
    assert!(!cache.contains_any(b"7"));
}
