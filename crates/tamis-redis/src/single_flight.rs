//! Runs work once for all callers that need its result at the same time.
//!
//! The first caller, the leader, runs the work. Callers that arrive while the work runs wait for
//! the leader. Each waiting caller gets a clone of the result or of the error. If the server does
//! not respond, all callers therefore wait for one timeout.
//!
//! If the future of the leader is dropped, one of the waiting callers runs its own work. A caller
//! also stops waiting at its deadline: the future of the leader may exist although no program polls
//! the future. One of the callers whose deadline is over then runs its own work.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use crate::lock::locked;

/// Work that at most one caller runs at a time.
#[derive(Debug)]
pub(crate) struct SingleFlight<T> {
    /// The call of the running leader.
    running: Mutex<Option<Arc<Mutex<Call<T>>>>>,
}

/// The work of one leader.
#[derive(Debug)]
struct Call<T> {
    is_over: bool,
    /// The result, or `None` if the work has not ended or was dropped.
    result: Option<T>,
    waiting: Vec<Waker>,
}

/// Ends the call when the leader drops this value.
struct Leader<'f, T> {
    running: &'f Mutex<Option<Arc<Mutex<Call<T>>>>>,
    call: Arc<Mutex<Call<T>>>,
}

impl<T: Clone> SingleFlight<T> {
    pub(crate) fn new() -> Self {
        Self { running: Mutex::new(None) }
    }

    /// Runs the work, or waits for the work of another caller. Returns the result of the work.
    /// `deadline` returns a future that ends when the caller no longer waits for another caller.
    pub(crate) async fn run<D: Future<Output = ()> + Send>(
        &self,
        work: impl Future<Output = T> + Send,
        deadline: impl Fn() -> D + Send,
    ) -> T {
        loop {
            match self.join() {
                Ok(leader) => {
                    let result = work.await;
                    locked(&leader.call).result = Some(result.clone());
                    return result;
                }
                Err(call) => {
                    if let Some(result) = wait_for(&call, pin!(deadline())).await {
                        return result;
                    }
                    remove(&self.running, &call);
                }
            }
        }
    }

    /// Makes the caller the leader, or returns the call of the running leader.
    fn join(&self) -> Result<Leader<'_, T>, Arc<Mutex<Call<T>>>> {
        let mut running = locked(&self.running);
        if let Some(call) = &*running {
            return Err(Arc::clone(call));
        }
        let call = Call { is_over: false, result: None, waiting: Vec::new() };
        let call = Arc::new(Mutex::new(call));
        *running = Some(Arc::clone(&call));
        Ok(Leader { running: &self.running, call })
    }
}

/// Waits for the end of a call. Returns the result, or `None` if the leader was dropped or the
/// deadline is over.
async fn wait_for<T: Clone>(
    call: &Mutex<Call<T>>,
    mut deadline: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Option<T> {
    poll_fn(|context| {
        let mut call = locked(call);
        if call.is_over {
            return Poll::Ready(call.result.clone());
        }
        if !call.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            call.waiting.push(context.waker().clone());
        }
        drop(call);
        deadline.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Removes a call, so that the next caller runs its own work. The call of another leader stays.
fn remove<T>(running: &Mutex<Option<Arc<Mutex<Call<T>>>>>, call: &Arc<Mutex<Call<T>>>) {
    locked(running).take_if(|running| Arc::ptr_eq(running, call));
}

impl<T> Drop for Leader<'_, T> {
    fn drop(&mut self) {
        remove(self.running, &self.call);
        let waiting = {
            let mut call = locked(&self.call);
            call.is_over = true;
            std::mem::take(&mut call.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
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
        let mut leader = pin!(flight.run(
            async move {
                poll_fn(move |_| match released.try_recv() {
                    Ok(()) => Poll::Ready(7),
                    Err(_) => Poll::Pending,
                })
                .await
            },
            pending
        ));
        assert!(leader.as_mut().poll(&mut context).is_pending());
        std::thread::scope(|scope| {
            let (ended, ends) = mpsc::channel();
            for _ in 0..8 {
                let (flight, ended) = (&flight, ended.clone());
                scope.spawn(move || {
                    ended.send(complete(flight.run(async { 8 }, pending))).unwrap();
                });
            }
            let waiting =
                || locked(&flight.running).as_ref().map_or(0, |f| locked(f).waiting.len());
            tamis_testing::wait_until("all callers wait", || waiting() == 8);
            release.send(()).unwrap();
            assert_eq!(leader.as_mut().poll(&mut context), Poll::Ready(7));
            for _ in 0..8 {
                assert_eq!(ends.recv_timeout(DEADLINE), Ok(7), "a caller gets the shared result");
            }
        });
        assert_eq!(
            complete(flight.run(async { 9 }, pending)),
            9,
            "the next caller runs its own work"
        );
    }

    #[test]
    fn a_dropped_leader_hands_over_to_a_waiting_caller() {
        let flight = SingleFlight::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut leader = Box::pin(flight.run(pending::<u32>(), pending));
        assert!(leader.as_mut().poll(&mut context).is_pending());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| complete(flight.run(async { 8 }, pending)));
            let is_waiting =
                || locked(&flight.running).as_ref().is_some_and(|f| !locked(f).waiting.is_empty());
            tamis_testing::wait_until("a caller waits", is_waiting);
            drop(leader);
            let ends = || waiting.is_finished();
            tamis_testing::wait_until("the waiting caller runs its work", ends);
            assert_eq!(waiting.join().unwrap(), 8);
        });
    }

    #[test]
    fn a_caller_whose_deadline_is_over_runs_its_own_work() {
        let flight = SingleFlight::new();
        let mut context = Context::from_waker(Waker::noop());
        let is_released = std::sync::atomic::AtomicBool::new(false);
        let is_released = &is_released;
        let stopped = |result| async move {
            poll_fn(|_| match is_released.load(std::sync::atomic::Ordering::SeqCst) {
                true => Poll::Ready(result),
                false => Poll::Pending,
            })
            .await
        };
        let mut first = Box::pin(flight.run(stopped(7), pending));
        assert!(first.as_mut().poll(&mut context).is_pending());
        let mut second = Box::pin(flight.run(stopped(8), || ready(())));
        assert!(second.as_mut().poll(&mut context).is_pending(), "the second caller leads");
        let mut third = Box::pin(flight.run(async { 9 }, pending));
        assert!(third.as_mut().poll(&mut context).is_pending(), "the third caller waits");
        is_released.store(true, std::sync::atomic::Ordering::SeqCst);
        // The end of the first work does not end the second call.
        assert_eq!(first.as_mut().poll(&mut context), Poll::Ready(7));
        assert!(third.as_mut().poll(&mut context).is_pending());
        assert_eq!(second.as_mut().poll(&mut context), Poll::Ready(8));
        assert_eq!(third.as_mut().poll(&mut context), Poll::Ready(8));
    }
}
