//! Requests the end of a connection from any thread: for `CLIENT KILL`, for an eviction, and when the
//! server stops.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// A request to end one connection. The task of the connection reads the flag each time the task
/// runs. `tokio::sync::Notify` would take a lock for each check.
#[derive(Debug, Default)]
pub(crate) struct EndRequest {
    is_sent: AtomicBool,
    /// The waker of the connection's task.
    waker: Mutex<Option<Waker>>,
}

impl EndRequest {
    /// Sends the request, and wakes the task of the connection.
    pub fn send(&self) {
        self.is_sent.store(true, Ordering::Relaxed);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    /// Runs `work` until `work` is done or the request is sent. If the request is sent, drops `work`
    /// and returns `None`. At most one task may call this method at a time.
    pub async fn run_until_sent<R>(&self, work: impl Future<Output = R>) -> Option<R> {
        let mut work = pin!(work);
        let mut registered: Option<Waker> = None;
        poll_fn(|context| {
            if registered.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
                registered = Some(context.waker().clone());
                *self.waker.lock() = registered.clone();
            }
            // The lock of `waker` orders the flag: a request before the registration is seen here,
            // and a later request finds the waker.
            if self.is_sent.load(Ordering::Relaxed) {
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
    use std::time::Duration;

    use tamis_testing::{join, wait_until};

    use super::*;
    use crate::test_server::block_on;

    #[test]
    fn work_runs_to_its_end_without_a_request() {
        let request = EndRequest::default();
        assert_eq!(block_on(request.run_until_sent(ready(7))), Some(7));
    }

    #[test]
    fn a_request_before_the_work_ends_the_work() {
        let request = EndRequest::default();
        request.send();
        assert_eq!(block_on(request.run_until_sent(ready(7))), None);
    }

    #[test]
    fn a_request_from_another_thread_wakes_the_task() {
        let request = Arc::new(EndRequest::default());
        let other = request.clone();
        let sender = std::thread::spawn(move || {
            wait_until("the task has registered its waker", || other.waker.lock().is_some());
            other.send();
        });
        let ended = block_on(async {
            let work = request.run_until_sent(pending::<()>());
            tokio::time::timeout(Duration::from_secs(60), work).await
        });
        assert_eq!(ended, Ok(None), "the request must wake the task");
        join("the sender", sender);
    }
}
