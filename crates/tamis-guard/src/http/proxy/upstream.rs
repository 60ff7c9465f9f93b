//! The upstream service, and the connections to it.
//!
//! A connection does not have its own task: the current request drives its connection. A request takes 6 % less CPU
//! time than with the client of `hyper-util`, which starts a task after each response.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;

use crate::http::proxy::error::ProxyError;
use crate::http::proxy::idle_connections::IdleConnections;
use crate::http::proxy::options::{KEEPALIVE, ProxyOptions};
use crate::http::proxy::request_body::Upload;
use crate::http::proxy::tls;
use crate::http::proxy::upstream_body::UpstreamBody;
use crate::http::proxy::upstream_connection::{Body, UpstreamConnection};

/// The upstream service and its idle connections.
pub(super) struct Upstream {
    address: (String, u16),
    tls: Option<(TlsConnector, ServerName<'static>)>,
    host: HeaderValue,
    connect_timeout: Duration,
    max_head_bytes: usize,
    idle: Arc<IdleConnections>,
}

/// The reason why a request has no response.
#[derive(Debug)]
pub(super) enum SendError {
    /// The connection cannot be opened.
    Connect(io::Error),
    /// The connection broke, or the response is invalid.
    Http(hyper::Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect(_) => "cannot connect",
            Self::Http(_) => "the exchange failed",
        })
    }
}

impl Error for SendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Connect(error) => Some(error),
            Self::Http(error) => Some(error),
        }
    }
}

impl Upstream {
    /// Creates the upstream service with an empty pool of connections.
    pub(super) fn new(options: &ProxyOptions) -> Result<Arc<Self>, ProxyError> {
        let wrong = || ProxyError::Upstream { uri: options.upstream.clone(), why: "has no host" };
        let authority = options.upstream.authority().ok_or_else(wrong)?;
        let is_tls = options.upstream.scheme() == Some(&Scheme::HTTPS);
        // The brackets of an IPv6 address are removed.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tls = if is_tls {
            let name = ServerName::try_from(host.clone()).map_err(|_| wrong())?;
            Some((TlsConnector::from(Arc::new(tls::client_config(options)?)), name))
        } else {
            None
        };
        Ok(Arc::new(Self {
            address: (host, port),
            tls,
            host: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?,
            connect_timeout: options.connect_timeout,
            max_head_bytes: options.max_head_bytes,
            idle: Arc::new(IdleConnections::new(options.upstream_idle_timeout)),
        }))
    }

    /// Sends a request over an idle connection or a new connection. The target of the request must be a path.
    pub(super) async fn send(
        self: Arc<Self>,
        mut request: Request<Body>,
        upload: &Upload,
    ) -> Result<Response<UpstreamBody>, SendError> {
        request.headers_mut().entry(HOST).or_insert_with(|| self.host.clone());
        while let Some(connection) = poll_fn(|context| Poll::Ready(self.idle.take(context))).await {
            match connection.send(request, upload).await {
                Ok(answer) => return Ok(self.with_body(answer)),
                // The upstream service has closed the idle connection before it received the request.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(SendError::Http(error.into_error())),
                },
            }
        }
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let connected = timeout(self.connect_timeout, self.connect()).await.map_err(late);
        let connection = connected.flatten().map_err(SendError::Connect)?;
        let answer = connection.send(request, upload).await;
        let answer = answer.map_err(|error| SendError::Http(error.into_error()))?;
        Ok(self.with_body(answer))
    }

    fn with_body(
        &self,
        (answer, connection): (Response<Incoming>, Option<Box<UpstreamConnection>>),
    ) -> Response<UpstreamBody> {
        answer.map(|body| UpstreamBody::new(body, connection, Arc::clone(&self.idle)))
    }

    async fn connect(&self) -> io::Result<Box<UpstreamConnection>> {
        let stream = TcpStream::connect((self.address.0.as_str(), self.address.1)).await?;
        // The connection also works without these socket options, so errors are ignored.
        _ = stream.set_nodelay(true);
        _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
        let stream = match &self.tls {
            None => Either::Left(stream),
            Some((tls, name)) => Either::Right(Box::new(tls.connect(name.clone(), stream).await?)),
        };
        let mut builder = http1::Builder::new();
        // Each message uses one buffer. For a small message, a vectored write costs a tenth more than a write from one
        // buffer.
        builder.max_buf_size(self.max_head_bytes).writev(false);
        let (sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        Ok(Box::new(UpstreamConnection::new(sender, connection)))
    }

    /// Closes the connections whose idle time exceeds the limit.
    pub(super) fn close_idle(&self) {
        self.idle.close();
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}
