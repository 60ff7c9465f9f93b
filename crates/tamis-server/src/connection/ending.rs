//! Ends a connection from another thread: `CLIENT KILL`, an eviction, or the end of the server.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// The request to end one connection.
///
/// A connection checks the request each time its task runs. Therefore the check reads one flag.
/// A `tokio::sync::Notify` would take a lock for each check.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    is_requested: AtomicBool,
    /// The waker of the connection's task.
    waker: Mutex<Option<Waker>>,
}

impl Ending {
    /// Requests the end of the connection, and wakes the task of the connection.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::SeqCst);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    /// Runs a future until the future is done or the end is requested. Returns `None` if the end
    /// is requested. Only one task may call this method.
    pub async fn run_until_requested<R>(&self, work: impl Future<Output = R>) -> Option<R> {
        let mut work = pin!(work);
        let mut registered: Option<Waker> = None;
        poll_fn(|context| {
            if registered.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
                registered = Some(context.waker().clone());
                *self.waker.lock() = registered.clone();
            }
            // Read the flag after the waker is registered: a later request wakes this task.
            if self.is_requested.load(Ordering::SeqCst) {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Arc;

    use super::*;
    use crate::test_server::block_on;

    #[test]
    fn work_runs_to_its_end_without_a_request() {
        let ending = Ending::default();
        assert_eq!(block_on(ending.run_until_requested(ready(7))), Some(7));
    }

    #[test]
    fn a_request_before_the_work_ends_the_work() {
        let ending = Ending::default();
        ending.request();
        assert_eq!(block_on(ending.run_until_requested(ready(7))), None);
    }

    #[test]
    fn a_request_of_another_thread_wakes_the_work() {
        let ending = Arc::new(Ending::default());
        let other = ending.clone();
        let requester = std::thread::spawn(move || {
            while other.waker.lock().is_none() {
                std::thread::yield_now();
            }
            other.request();
        });
        let ended = block_on(async {
            let work = ending.run_until_requested(pending::<()>());
            tokio::time::timeout(std::time::Duration::from_secs(60), work).await
        });
        assert_eq!(ended, Ok(None), "the request must wake the task");
        requester.join().unwrap();
    }
}
