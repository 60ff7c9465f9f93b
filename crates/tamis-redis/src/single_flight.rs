//! Runs work once for all callers that need its result at the same time.
//!
//! The first caller, the leader, runs the work. The callers that come before the work ends wait for
//! the leader and get a clone of its result, also if the result is an error. A server that does not
//! respond therefore delays all callers by one timeout, not each caller by the timeouts of all
//! callers before. If the future of the leader is dropped, one of the waiting callers runs its own
//! work.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use crate::lock::locked;

/// Work that at most one caller runs at a time.
#[derive(Debug)]
pub(crate) struct SingleFlight<T> {
    /// The flight of the present leader.
    present: Mutex<Option<Arc<Mutex<Flight<T>>>>>,
}

/// The work of one leader.
#[derive(Debug)]
struct Flight<T> {
    is_over: bool,
    /// The result, or `None` if the work has not ended or was dropped.
    result: Option<T>,
    waiting: Vec<Waker>,
}

/// Ends the flight when the leader drops this value.
struct Leader<'f, T> {
    present: &'f Mutex<Option<Arc<Mutex<Flight<T>>>>>,
    flight: Arc<Mutex<Flight<T>>>,
}

impl<T: Clone> SingleFlight<T> {
    pub(crate) fn new() -> Self {
        Self { present: Mutex::new(None) }
    }

    /// Runs the work, or waits for the work of another caller. Returns the result of the work.
    pub(crate) async fn run(&self, work: impl Future<Output = T> + Send) -> T {
        loop {
            match self.join() {
                Ok(leader) => {
                    let result = work.await;
                    locked(&leader.flight).result = Some(result.clone());
                    return result;
                }
                Err(flight) => {
                    if let Some(result) = landing(&flight).await {
                        return result;
                    }
                }
            }
        }
    }

    /// Makes the caller the leader, or returns the flight of the present leader.
    fn join(&self) -> Result<Leader<'_, T>, Arc<Mutex<Flight<T>>>> {
        let mut present = locked(&self.present);
        if let Some(flight) = &*present {
            return Err(Arc::clone(flight));
        }
        let flight = Flight { is_over: false, result: None, waiting: Vec::new() };
        let flight = Arc::new(Mutex::new(flight));
        *present = Some(Arc::clone(&flight));
        Ok(Leader { present: &self.present, flight })
    }
}

/// Waits for the end of a flight. Returns the result, or `None` if the leader was dropped.
async fn landing<T: Clone>(flight: &Mutex<Flight<T>>) -> Option<T> {
    poll_fn(|context| {
        let mut flight = locked(flight);
        if flight.is_over {
            return Poll::Ready(flight.result.clone());
        }
        if !flight.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            flight.waiting.push(context.waker().clone());
        }
        Poll::Pending
    })
    .await
}

impl<T> Drop for Leader<'_, T> {
    fn drop(&mut self) {
        *locked(self.present) = None;
        let waiting = {
            let mut flight = locked(&self.flight);
            flight.is_over = true;
            std::mem::take(&mut flight.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::Context;

    use tamis_testing::DEADLINE;

    use super::*;
    use crate::transport::exchange::complete;

    #[test]
    fn callers_at_the_same_time_share_one_run() {
        let flight = SingleFlight::new();
        let mut context = Context::from_waker(Waker::noop());
        let (release, released) = mpsc::channel::<()>();
        let mut leader = pin!(flight.run(async move {
            poll_fn(move |_| match released.try_recv() {
                Ok(()) => Poll::Ready(7),
                Err(_) => Poll::Pending,
            })
            .await
        }));
        assert!(leader.as_mut().poll(&mut context).is_pending());
        std::thread::scope(|scope| {
            let (ended, ends) = mpsc::channel();
            for _ in 0..8 {
                let (flight, ended) = (&flight, ended.clone());
                scope.spawn(move || {
                    ended.send(complete(flight.run(async { 8 }))).unwrap();
                });
            }
            let waiting =
                || locked(&flight.present).as_ref().map_or(0, |f| locked(f).waiting.len());
            tamis_testing::wait_until("all callers wait", || waiting() == 8);
            release.send(()).unwrap();
            assert_eq!(leader.as_mut().poll(&mut context), Poll::Ready(7));
            for _ in 0..8 {
                assert_eq!(ends.recv_timeout(DEADLINE), Ok(7), "a caller gets the shared result");
            }
        });
        assert_eq!(complete(flight.run(async { 9 })), 9, "the next caller runs its own work");
    }

    #[test]
    fn a_dropped_leader_hands_over_to_a_waiting_caller() {
        let flight = SingleFlight::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut leader = Box::pin(flight.run(std::future::pending::<u32>()));
        assert!(leader.as_mut().poll(&mut context).is_pending());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| complete(flight.run(async { 8 })));
            let is_waiting =
                || locked(&flight.present).as_ref().is_some_and(|f| !locked(f).waiting.is_empty());
            tamis_testing::wait_until("a caller waits", is_waiting);
            drop(leader);
            let ends = || waiting.is_finished();
            tamis_testing::wait_until("the waiting caller runs its work", ends);
            assert_eq!(waiting.join().unwrap(), 8);
        });
    }
}
