//! The body of a response from the upstream service.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use crate::http::proxy::idle_connections::IdleConnections;
use crate::http::proxy::upstream_connection::UpstreamConnection;

/// The body of a response. At the end of the body, the connection returns to the pool.
pub(super) struct UpstreamBody {
    body: Incoming,
    is_complete: bool,
    /// The connection. The value is `None` if the connection has ended or has its own task.
    connection: Option<Box<UpstreamConnection>>,
    pool: Arc<IdleConnections>,
    /// The error that the next call returns.
    broken: Option<hyper::Error>,
}

impl UpstreamBody {
    pub(super) fn new(
        body: Incoming,
        connection: Option<Box<UpstreamConnection>>,
        pool: Arc<IdleConnections>,
    ) -> Self {
        Self { body, is_complete: false, connection, pool, broken: None }
    }
}

impl http_body::Body for UpstreamBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if let Some(error) = this.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let mut frame = Pin::new(&mut this.body).poll_frame(context);
        if frame.is_pending()
            && let Some(connection) = &mut this.connection
        {
            connection.drive(context);
            frame = Pin::new(&mut this.body).poll_frame(context);
        }
        match frame {
            Poll::Ready(Some(Err(error))) => {
                // The error is delayed, because the server does not flush earlier frames after an error. The delay
                // ensures that the client gets the earlier frames before the error.
                this.broken = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            frame => {
                this.is_complete |= matches!(frame, Poll::Ready(None));
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        if (self.is_complete || self.body.is_end_stream())
            && let Some(mut connection) = self.connection.take()
            && connection.is_idle(&mut Context::from_waker(Waker::noop()))
        {
            self.pool.put(connection);
        }
    }
}

impl std::fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamBody").field("body", &self.body).finish_non_exhaustive()
    }
}
