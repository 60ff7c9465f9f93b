//! Tracks the activity of a client connection, and decides when to close the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::http::proxy::options::ProxyOptions;

/// The activity of a connection. The stream, the bodies and the watcher of the connection share the activity.
///
/// All atomic accesses are relaxed, because they publish no other data. A slightly outdated time only delays the end of
/// a connection.
#[derive(Debug)]
pub(super) struct Activity {
    start: Instant,
    /// The number of requests without a response head.
    waiting: AtomicUsize,
    /// The number of responses whose body is being sent.
    streaming: AtomicUsize,
    /// The time of the last transferred bytes or frames, in milliseconds since the start.
    moved: AtomicU64,
    /// The time at which a request head began, in milliseconds since the start, plus one. The value 0 means that no
    /// head is being received.
    head: AtomicU64,
    is_http2: AtomicBool,
    is_body_unread: AtomicBool,
}

/// The next action for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The connection stays open at least until this time.
    At(Instant),
    /// The connection is closed gracefully, because no request is in progress.
    Idle,
    /// The connection is closed immediately, because the client or the upstream service is too slow.
    Slow,
}

impl Activity {
    /// Creates the activity of a new connection. The head of its first request begins now.
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            waiting: AtomicUsize::new(0),
            streaming: AtomicUsize::new(0),
            moved: AtomicU64::new(0),
            head: AtomicU64::new(1),
            is_http2: AtomicBool::new(false),
            is_body_unread: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// Records that the client has sent bytes.
    pub(super) fn received(&self) {
        let requests =
            self.waiting.load(Ordering::Relaxed) + self.streaming.load(Ordering::Relaxed);
        if requests == 0 && self.head.load(Ordering::Relaxed) == 0 {
            self.head.store(self.now() + 1, Ordering::Relaxed);
        }
    }

    /// Records that a part of a response was transferred.
    pub(super) fn moved(&self) {
        self.moved.store(self.now(), Ordering::Relaxed);
    }

    /// Records that the proxy did not read the whole body of a request.
    pub(super) fn body_unread(&self) {
        self.is_body_unread.store(true, Ordering::Relaxed);
    }

    /// Tests whether the client may still send a body that the proxy does not read.
    pub(super) fn is_body_unread(&self) -> bool {
        self.is_body_unread.load(Ordering::Relaxed)
    }

    /// Records that a request head is complete.
    pub(super) fn begin(self: &Arc<Self>, is_http2: bool) -> InProgress {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        self.is_http2.store(is_http2, Ordering::Relaxed);
        InProgress { activity: Arc::clone(self), is_streaming: false }
    }

    /// Returns the action for the connection now, or the time of the next check.
    pub(super) fn due(&self, options: &ProxyOptions) -> Due {
        // A request head may begin at any time, so the watcher checks the connection at least once per `pause`.
        let pause = options.header_timeout.min(options.body_timeout).min(options.idle_timeout);
        let next = Instant::now() + pause.max(Duration::from_millis(1));
        let after = |millis: u64, limit: Duration, due: Due| {
            let at = self.start + Duration::from_millis(millis) + limit;
            if at <= Instant::now() { due } else { Due::At(at.min(next)) }
        };
        let moved = self.moved.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Relaxed);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            // The request body and the forwarder have their own time limits.
            Due::At(next)
        } else if self.streaming.load(Ordering::Relaxed) > 0 {
            after(moved, options.body_timeout, Due::Slow)
        } else if head > 0 && !self.is_http2.load(Ordering::Relaxed) {
            after(head - 1, options.header_timeout, Due::Slow)
        } else {
            after(moved, options.idle_timeout, Due::Idle)
        }
    }
}

/// A request whose response is not complete.
#[derive(Debug)]
pub(super) struct InProgress {
    activity: Arc<Activity>,
    is_streaming: bool,
}

impl InProgress {
    /// Records that the response head is complete.
    pub(super) fn streams(&mut self) {
        self.activity.moved();
        self.activity.streaming.fetch_add(1, Ordering::Relaxed);
        self.activity.waiting.fetch_sub(1, Ordering::Relaxed);
        self.is_streaming = true;
    }

    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.activity.moved();
        let counter =
            if self.is_streaming { &self.activity.streaming } else { &self.activity.waiting };
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ProxyOptions {
        let second = Duration::from_secs;
        ProxyOptions {
            header_timeout: second(1),
            body_timeout: second(2),
            idle_timeout: second(10),
            ..ProxyOptions::new("http://localhost".parse().unwrap())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_part_of_a_request_has_its_limit() {
        let (activity, options) = (Arc::new(Activity::new()), options());
        let pass = |millis| tokio::time::advance(Duration::from_millis(millis));
        pass(999).await;
        assert!(matches!(activity.due(&options), Due::At(_)));
        pass(1).await;
        assert_eq!(activity.due(&options), Due::Slow);
        // While the upstream service works, no action is due.
        let mut request = activity.begin(false);
        pass(60_000).await;
        assert!(matches!(activity.due(&options), Due::At(_)));
        request.streams();
        pass(1_999).await;
        assert!(matches!(activity.due(&options), Due::At(_)));
        activity.moved();
        pass(2_000).await;
        assert_eq!(activity.due(&options), Due::Slow);
        drop(request);
        pass(9_000).await;
        assert!(matches!(activity.due(&options), Due::At(_)));
        activity.received();
        pass(1_000).await;
        assert_eq!(activity.due(&options), Due::Slow);
        drop(activity.begin(false));
        pass(10_000).await;
        assert_eq!(activity.due(&options), Due::Idle);
    }
}
