//! One connection to the upstream, and the body of an answer that comes over it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::body::GuardedBody;
use crate::proxy::request_body::{RequestBody, Upload};
use crate::proxy::upstream::Upstream;

/// The body of a request.
pub(super) type Body = GuardedBody<RequestBody>;

/// The stream of a connection, with or without TLS.
pub(super) type Stream = TokioIo<Either<TcpStream, Box<TlsStream<TcpStream>>>>;

/// A connection that has at most one request.
pub(super) struct UpstreamConnection {
    sender: SendRequest<Body>,
    /// `None` after its end.
    driver: Option<Connection<Stream, Body>>,
}

impl UpstreamConnection {
    pub(super) fn new(sender: SendRequest<Body>, driver: Connection<Stream, Body>) -> Self {
        Self { sender, driver: Some(driver) }
    }

    /// Moves what can be moved.
    fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(ended) = Pin::new(driver).poll(context)
        {
            // The request or the body of the answer reports the error.
            if let Err(error) = ended {
                tracing::debug!(%error, "connection to the upstream broken");
            }
            self.driver = None;
        }
    }

    /// Tests whether the connection is open and can take a request.
    pub(super) fn is_idle(&mut self, context: &mut Context<'_>) -> bool {
        self.drive(context);
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a request, and returns the answer when its head is complete.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: Request<Body>,
        upload: &Upload,
        pool: &Arc<Upstream>,
    ) -> Result<Response<UpstreamBody>, TrySendError<Request<Body>>> {
        let upgrades = request.headers().contains_key(UPGRADE);
        let mut answer = pin!(self.sender.try_send_request(request));
        if upgrades && let Some(driver) = self.driver.take() {
            // The stream outlives the exchange.
            tokio::spawn(driver.with_upgrades());
        }
        let answer = std::future::poll_fn(|context| {
            self.drive(context);
            answer.as_mut().poll(context)
        })
        .await?;
        if !upload.is_complete()
            && let Some(driver) = self.driver.take()
        {
            // A client may send the rest of its body before it reads the answer.
            tokio::spawn(driver);
        }
        let connection = self.driver.is_some().then_some(self);
        let pool = Arc::clone(pool);
        Ok(answer.map(|body| UpstreamBody {
            body,
            is_complete: false,
            connection,
            pool,
            broken: None,
        }))
    }
}

/// The body of an answer. After its end, the connection returns to the pool.
pub(super) struct UpstreamBody {
    body: Incoming,
    is_complete: bool,
    /// `None` if the connection has ended, or has a task of its own.
    connection: Option<Box<UpstreamConnection>>,
    pool: Arc<Upstream>,
    /// The error that the next call returns.
    broken: Option<hyper::Error>,
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
                // The client gets the frames before the error first: their sender does not flush
                // them after an error.
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
