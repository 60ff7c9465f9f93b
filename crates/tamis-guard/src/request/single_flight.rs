//! One request at a time for the same id, until the service has answered.
//!
//! A thousand requests at once for an id that the filter has by mistake would all reach the
//! database before the first 404 is in the negative cache. So the first request for an id has the
//! turn, and the others wait:
//!
//! ```text
//! first   ──▶ service ──▶ 404 ──▶ negative cache          first   ──▶ service ──▶ 200
//! second  ── waits ────────────── refused                 second  ── waits ──────▶ service ──▶
//! third   ── waits ────────────── refused                 third   ── waits ──────▶ service ──▶
//! ```
//!
//! * After the answer 404, the waiting requests are decided again: the negative cache refuses them.
//! * After any other answer, all of them go to the service at once. Answers are not shared, because
//!   they may depend on a cookie or a header.
//! * If the first request ends without an answer, such as when its client has gone, the next one
//!   has the turn.
//!
//! Requests for popular ids must not wait for each other. So an id whose last answer was a success
//! or a redirect is *proven*, and requests for it do not wait. The proven ids are in a table of a
//! fixed size, by their hashes. An id that another one displaced waits again for one answer.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How many proven ids a route remembers. The table has 128 KiB.
const PROVEN: usize = 1 << 14;

/// The turns of the requests of one route, and their numbers for the metrics.
///
/// It needs a runtime of tokio with a timer. Without one, a request that must wait panics.
#[derive(Debug)]
pub struct SingleFlight {
    max_wait: Duration,
    max_waiting: usize,
    hasher: RandomState,
    /// By the hashes of the ids. A flight ends with an answer, or with its last request.
    flights: Mutex<HashMap<u64, Flight>>,
    proven: Box<[AtomicU64]>,
    waited: AtomicU64,
    gave_up: AtomicU64,
}

/// The requests for one id of which the service has answered none.
#[derive(Debug)]
struct Flight {
    /// The request with the permit has the turn. An answer closes it.
    turn: Arc<Semaphore>,
    /// The request that has the turn, and those that wait.
    requests: usize,
}

/// A request that may go to the service.
#[derive(Debug)]
pub(crate) struct Turn<'s> {
    single: &'s SingleFlight,
    hash: u64,
    /// `None` if the others do not wait for this request. The permit is dropped first.
    _turn: Option<(OwnedSemaphorePermit, Membership<'s>)>,
}

/// A request is part of a flight until this is dropped.
#[derive(Debug)]
struct Membership<'s> {
    single: &'s SingleFlight,
    hash: u64,
    turn: Arc<Semaphore>,
}

impl Default for SingleFlight {
    /// Returns a limit of 5 seconds and 4096 requests.
    fn default() -> Self {
        Self::new(Duration::from_secs(5), 4096)
    }
}

impl SingleFlight {
    /// Creates the turns of a route. A request waits for `max_wait` at most, and at most
    /// `max_waiting` requests wait for one id. Further requests go to the service at once.
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

    /// Returns how many requests have waited.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    /// Returns how many requests went to the service without a turn, because they had waited for
    /// `max_wait`, or because `max_waiting` others waited.
    #[must_use]
    pub fn gave_up(&self) -> u64 {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// Returns for how many ids a request has the turn now.
    #[must_use]
    pub fn ids_in_flight(&self) -> usize {
        self.flights.lock().len()
    }

    /// Tests whether the last answer for an id was a success or a redirect.
    pub(crate) fn is_proven(&self, id: &[u8]) -> bool {
        let hash = self.hash(id);
        // Relaxed here and below: the values publish no other data.
        self.proven_slot(hash).load(Ordering::Relaxed) == hash
    }

    /// Records that the service answered 404 for an id, so that it is not proven any more.
    pub(crate) fn not_found(&self, id: &[u8]) {
        let hash = self.hash(id);
        // On an error, the slot has another id.
        let slot = self.proven_slot(hash);
        _ = slot.compare_exchange(hash, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Waits until a request for an id may go to the service. The caller then decides about the
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
            // The service has answered another request.
            Ok(Err(_)) => free,
            Err(_) => {
                self.gave_up.fetch_add(1, Ordering::Relaxed);
                free
            }
        }
    }

    fn hash(&self, id: &[u8]) -> u64 {
        // Zero is an empty entry of the table.
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
    /// Ends the wait of the other requests after an answer of the service. A 404 must be in the
    /// negative cache before.
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
        // After an answer, there may be another flight.
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

    /// Enters without a wait.
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
        // No request may wait, so this one goes too.
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
