//! Sends one request per id to the upstream service at a time, until the service responds.
//!
//! Assume that a thousand concurrent requests contain an id that is a false positive of the filter. Without this
//! module, all requests would reach the database before the negative cache contains the first 404. With this module,
//! the first request for an id gets the turn, and all other requests for the id wait:
//!
//! ```text
//! first   ──▶ service ──▶ 404 ──▶ negative cache          first   ──▶ service ──▶ 200
//! second  ── waits ────────────── refused                 second  ── waits ──────▶ service ──▶
//! third   ── waits ────────────── refused                 third   ── waits ──────▶ service ──▶
//! ```
//!
//! * After a 404 response, the guard decides again about the waiting requests. At the second decision, the negative
//!   cache refuses the waiting requests.
//! * After any response except a 404, all waiting requests go to the upstream service immediately. Requests do not
//!   share a response, because a response may depend on a cookie or a header.
//! * If the first request ends without a response, the next request gets the turn. A request ends without a response if
//!   the client disconnects.
//!
//! Requests for popular ids must not wait for each other. An id is *proven* if its last response was a success or a
//! redirect, and requests for a proven id do not wait. A table of fixed size contains the hashes of the proven ids. If
//! another id has displaced an id from the table, requests for the displaced id wait for one response again.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The maximum number of proven ids per route. The table takes 128 KiB.
const PROVEN: usize = 1 << 14;

/// The turns of the requests of one route, with counters for the metrics.
///
/// Waiting requires a tokio runtime with a timer. Without a tokio runtime, a request that must wait panics.
#[derive(Debug)]
pub struct SingleFlight {
    max_wait: Duration,
    max_waiting: usize,
    hasher: RandomState,
    /// The flights by the hash of their id. A flight ends with a response, or when its last request ends.
    flights: Mutex<HashMap<u64, Flight>>,
    proven: Box<[AtomicU64]>,
    waited: AtomicU64,
    gave_up: AtomicU64,
}

/// The concurrent requests for one id, before the first response of the upstream service.
#[derive(Debug)]
struct Flight {
    /// The request that holds the permit has the turn. A response closes the semaphore.
    turn: Arc<Semaphore>,
    /// The number of requests in the flight, including the request that has the turn.
    requests: usize,
}

/// A request that may go to the upstream service.
#[derive(Debug)]
pub(crate) struct Turn<'s> {
    single: &'s SingleFlight,
    hash: u64,
    /// The permit of the turn, and the membership in the flight. The value is `None` if other requests do not wait for
    /// this request. The permit is dropped before the membership.
    _turn: Option<(OwnedSemaphorePermit, Membership<'s>)>,
}

/// The membership of a request in a flight. Dropping the `Membership` ends the membership.
#[derive(Debug)]
struct Membership<'s> {
    single: &'s SingleFlight,
    hash: u64,
    turn: Arc<Semaphore>,
}

impl Default for SingleFlight {
    /// Creates the turns of a route with a limit of 5 seconds and 4096 waiting requests.
    fn default() -> Self {
        Self::new(Duration::from_secs(5), 4096)
    }
}

impl SingleFlight {
    /// Creates the turns of a route. A request waits for at most `max_wait`. At most `max_waiting` requests wait for
    /// one id. If `max_waiting` requests wait for an id, further requests for the id go to the upstream service
    /// immediately.
    #[must_use]
    pub fn new(max_wait: Duration, max_waiting: usize) -> Self {
        Self {
            max_wait,
            max_waiting,
            hasher: RandomState::new(),
            flights: Mutex::default(),
            proven: (0..PROVEN).map(|_| AtomicU64::new(0)).collect(),
            waited: AtomicU64::new(0),
            gave_up: AtomicU64::new(0),
        }
    }

    /// Returns the number of requests that have waited.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that went to the upstream service without a turn. A request goes to the upstream
    /// service without a turn after a wait of `max_wait`, or if `max_waiting` other requests for the id are waiting.
    #[must_use]
    pub fn gave_up(&self) -> u64 {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// Returns the number of ids for which a request currently has the turn.
    #[must_use]
    pub fn ids_in_flight(&self) -> usize {
        self.flights.lock().len()
    }

    /// Tests whether the last response for an id was a success or a redirect.
    pub(crate) fn is_proven(&self, id: &[u8]) -> bool {
        let hash = self.hash(id);
        // Relaxed here and below: the values publish no other data.
        self.proven_slot(hash).load(Ordering::Relaxed) == hash
    }

    /// Records that the upstream service responded with 404 for an id. After the call, the id is not proven.
    pub(crate) fn not_found(&self, id: &[u8]) {
        let hash = self.hash(id);
        // An error means that the slot contains another id.
        let slot = self.proven_slot(hash);
        _ = slot.compare_exchange(hash, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Waits until a request for an id may go to the upstream service. After the wait, the caller must decide about the
    /// request again.
    pub(crate) async fn enter(&self, id: &[u8]) -> Turn<'_> {
        let hash = self.hash(id);
        let free = Turn { single: self, hash, _turn: None };
        if self.is_proven(id) {
            return free;
        }
        let Some(member) = self.join(hash) else {
            self.gave_up.fetch_add(1, Ordering::Relaxed);
            return free;
        };
        let turn = Arc::clone(&member.turn);
        if let Ok(permit) = Arc::clone(&turn).try_acquire_owned() {
            return Turn { _turn: Some((permit, member)), ..free };
        }
        self.waited.fetch_add(1, Ordering::Relaxed);
        match timeout(self.max_wait, turn.acquire_owned()).await {
            Ok(Ok(permit)) => Turn { _turn: Some((permit, member)), ..free },
            // The upstream service has responded to another request for the id.
            Ok(Err(_)) => free,
            Err(_) => {
                self.gave_up.fetch_add(1, Ordering::Relaxed);
                free
            }
        }
    }

    fn hash(&self, id: &[u8]) -> u64 {
        // Zero marks an empty slot of the table, so the hash must not be zero.
        self.hasher.hash_one(id) | 1
    }

    fn join(&self, hash: u64) -> Option<Membership<'_>> {
        let mut flights = self.flights.lock();
        let new = || Flight { turn: Arc::new(Semaphore::new(1)), requests: 0 };
        let flight = flights.entry(hash).or_insert_with(new);
        if flight.requests > self.max_waiting {
            return None;
        }
        flight.requests += 1;
        Some(Membership { single: self, hash, turn: Arc::clone(&flight.turn) })
    }

    fn proven_slot(&self, hash: u64) -> &AtomicU64 {
        &self.proven[(hash >> 32) as usize % PROVEN]
    }
}

impl Turn<'_> {
    /// Ends the wait of all other requests for the id after a response of the upstream service. The caller must store a
    /// 404 in the negative cache before this call.
    pub(crate) fn answered(self, status: StatusCode) {
        if status.is_success() || status.is_redirection() {
            self.single.proven_slot(self.hash).store(self.hash, Ordering::Relaxed);
        }
        let flight = self.single.flights.lock().remove(&self.hash);
        if let Some(flight) = flight {
            flight.turn.close();
        }
    }
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        let mut flights = self.single.flights.lock();
        // After a response, the map may contain a newer flight for the same id.
        let Some(flight) = flights.get_mut(&self.hash) else { return };
        if Arc::ptr_eq(&flight.turn, &self.turn) {
            flight.requests -= 1;
            if flight.requests == 0 {
                flights.remove(&self.hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters without waiting.
    fn enter(single: &SingleFlight) -> Turn<'_> {
        let mut entered = std::pin::pin!(single.enter(b"7"));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match entered.as_mut().poll(&mut context) {
            std::task::Poll::Ready(turn) => turn,
            std::task::Poll::Pending => panic!("the request waits"),
        }
    }

    #[test]
    fn a_late_end_of_a_request_does_not_end_the_flight_of_others() {
        let single = SingleFlight::new(Duration::from_secs(5), 0);
        let first = enter(&single);
        // `max_waiting` is 0, so the second request does not wait.
        let second = enter(&single);
        assert_eq!((single.ids_in_flight(), single.gave_up()), (1, 1));
        second.answered(StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(single.ids_in_flight(), 0);
        let third = enter(&single);
        drop(first);
        assert_eq!((single.ids_in_flight(), single.gave_up()), (1, 1));
        drop(third);
        assert_eq!(single.ids_in_flight(), 0);
    }

    #[test]
    fn an_id_is_proven_by_a_success_until_a_404() {
        let single = SingleFlight::default();
        for (status, proves) in [(500, false), (404, false), (200, true), (403, true), (304, true)]
        {
            enter(&single).answered(StatusCode::from_u16(status).unwrap());
            assert_eq!(single.is_proven(b"7"), proves, "{status}");
            assert!(!single.is_proven(b"8"));
        }
        single.not_found(b"8");
        assert!(single.is_proven(b"7"));
        single.not_found(b"7");
        assert!(!single.is_proven(b"7"));
    }
}
