//! The body of a client request, with a time limit for each part.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::http::proxy::activity::Activity;

/// The progress of a request body. The forwarder uses the progress to find out whether the client or the upstream
/// service is slow.
#[derive(Debug)]
pub(super) struct Upload {
    start: Instant,
    /// The time of the last frame, in milliseconds since the start.
    moved: AtomicU64,
    awaits_client: AtomicBool,
    is_complete: AtomicBool,
}

impl Upload {
    /// Creates the progress of a body. `is_complete` is true for a request without a body.
    pub(super) fn new(is_complete: bool) -> Self {
        Self {
            start: Instant::now(),
            moved: AtomicU64::new(0),
            awaits_client: AtomicBool::new(false),
            is_complete: AtomicBool::new(is_complete),
        }
    }

    /// Tests whether the proxy has read the whole body.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    /// Returns the time since which the proxy waits only for the upstream service.
    pub(super) fn idle_since(&self) -> Instant {
        // Relaxed here and below: the values publish no other data.
        if self.awaits_client.load(Ordering::Relaxed) {
            return Instant::now();
        }
        self.start + Duration::from_millis(self.moved.load(Ordering::Relaxed))
    }

    fn record(&self, awaits_client: bool) {
        self.moved.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
        self.awaits_client.store(awaits_client, Ordering::Relaxed);
    }
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    is_complete: bool,
    activity: Arc<Activity>,
    upload: Arc<Upload>,
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    is_timing: bool,
}

/// The reason why the body of a request is incomplete.
#[derive(Debug)]
pub(super) enum RequestBodyError {
    /// The client paused for longer than the time limit.
    Slow,
    /// The client has disconnected, or its body is malformed.
    Broken(hyper::Error),
}

impl fmt::Display for RequestBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow => f.write_str("the client is too slow with its body"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RequestBodyError {}

impl RequestBody {
    pub(super) fn new(
        body: Incoming,
        activity: Arc<Activity>,
        upload: Arc<Upload>,
        limit: Duration,
    ) -> Self {
        let is_complete = body.is_end_stream();
        Self { body, is_complete, activity, upload, limit, timer: None, is_timing: false }
    }

    fn poll_limit(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_timing {
            self.is_timing = true;
            let at = Instant::now() + self.limit;
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(at),
                None => self.timer = Some(Box::pin(sleep_until(at))),
            }
        }
        let timer = self.timer.as_mut().expect("set above");
        timer.as_mut().poll(context)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            this.upload.record(true);
            let is_slow = this.poll_limit(context).is_ready();
            return if is_slow {
                Poll::Ready(Some(Err(RequestBodyError::Slow)))
            } else {
                Poll::Pending
            };
        };
        this.is_timing = false;
        this.upload.record(false);
        this.activity.moved();
        this.is_complete |= frame.is_none() || this.body.is_end_stream();
        if this.is_complete {
            this.upload.is_complete.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(RequestBodyError::Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if !self.is_complete && !self.body.is_end_stream() {
            self.activity.body_unread();
        }
    }
}
