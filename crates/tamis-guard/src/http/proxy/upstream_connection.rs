//! A connection to the upstream service.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use http::header::UPGRADE;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::http::proxy::request_body::{RequestBody, Upload};
use crate::request::body::GuardedBody;

/// The body of a request.
pub(super) type Body = GuardedBody<RequestBody>;

/// The stream of a connection, with or without TLS.
pub(super) type Stream = TokioIo<Either<TcpStream, Box<TlsStream<TcpStream>>>>;

/// A connection that handles at most one request at a time.
pub(super) struct UpstreamConnection {
    sender: SendRequest<Body>,
    /// The driver of the connection. The value is `None` after the end of the connection.
    driver: Option<Connection<Stream, Body>>,
}

impl UpstreamConnection {
    pub(super) fn new(sender: SendRequest<Body>, driver: Connection<Stream, Body>) -> Self {
        Self { sender, driver: Some(driver) }
    }

    /// Drives the connection: sends and receives the available bytes.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(ended) = Pin::new(driver).poll(context)
        {
            // The request or the response body reports the error.
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

    /// Sends a request. Returns the response when its head is complete, and the connection that the response body
    /// needs. The connection is `None` if it has ended or has its own task.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: Request<Body>,
        upload: &Upload,
    ) -> Result<(Response<Incoming>, Option<Box<Self>>), TrySendError<Request<Body>>> {
        let upgrades = request.headers().contains_key(UPGRADE);
        let mut answer = pin!(self.sender.try_send_request(request));
        if upgrades && let Some(driver) = self.driver.take() {
            // The upgraded stream outlives this method, so a separate task drives the connection.
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
            // A client may send the rest of its body before it reads the response, so a separate task drives the
            // connection.
            tokio::spawn(driver);
        }
        let connection = self.driver.is_some().then_some(self);
        Ok((answer, connection))
    }
}
