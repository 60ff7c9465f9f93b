//! A blocking client for one HTTP server.
//!
//! The client limits the size of the response head and the duration of each step. The client neither follows redirects
//! nor uses a proxy, so a token reaches only the configured server.

mod error;

use std::fmt;
use std::future::Future;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tamis_sources::tls;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;

pub use error::HttpClientError;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The maximum time without a byte of the body.
const BODY_LIMIT: Duration = Duration::from_secs(10);
/// The maximum size of a response head in bytes.
const MAX_HEAD: usize = 64 << 10;
/// The time between two tests of the stop flag.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// A client for one HTTP server. The client keeps one connection.
pub struct HttpClient {
    /// The runtime. The value is `None` only while the client is dropped.
    runtime: Option<Runtime>,
    address: (String, u16),
    host: HeaderValue,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    connection: Option<SendRequest<Empty<Bytes>>>,
    is_stopped: Arc<AtomicBool>,
}

impl HttpClient {
    /// Creates a client for the server in a URL. The function does not connect. For `https`, the client trusts the
    /// certificates in the PEM file `ca`, or with `None` the certificates of the operating system.
    ///
    /// # Errors
    ///
    /// [`HttpClientError`] if the URL has no host, or the certificates cannot be read.
    pub fn new(url: &Uri, ca: Option<&Path>) -> Result<Self, HttpClientError> {
        let wrong = HttpClientError::Url;
        let is_tls = match url.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(wrong("begins with neither http:// nor https://")),
        };
        let authority = url.authority().ok_or(wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has a user name; give a token instead"));
        }
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        if authority.port_u16().is_none() && !matches!(port, "" | ":") {
            return Err(wrong("has a port that is not a number up to 65535"));
        }
        // The brackets of an IPv6 address are removed.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = if is_tls {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| wrong("has a host that no certificate names"))?;
            let config = tls::client_config(ca);
            let config = config.map_err(|it| HttpClientError::Certificates(it.to_string()))?;
            Some((TlsConnector::from(Arc::new(config)), name))
        } else {
            None
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            runtime: Some(runtime.map_err(HttpClientError::Connect)?),
            address: (host, authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 })),
            host: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("has no host"))?,
            tls,
            connection: None,
            is_stopped: Arc::default(),
        })
    }

    /// Returns a client that stops each step soon after the flag `is_stopped` becomes true.
    #[must_use]
    pub fn with_stop(mut self, is_stopped: Arc<AtomicBool>) -> Self {
        self.is_stopped = is_stopped;
        self
    }

    /// Sends a GET request for a path. Returns the response when its head is complete. `limit` is the time limit for
    /// the head.
    ///
    /// # Errors
    ///
    /// [`HttpClientError`] if the exchange fails. After an error, the next request opens a new connection.
    pub fn get(
        &mut self,
        path: &str,
        headers: &HeaderMap,
        limit: Duration,
    ) -> Result<HttpAnswer<'_>, HttpClientError> {
        let was_open = self.connection.is_some();
        let answer = match self.exchange(path, headers, limit) {
            // The server has closed the idle connection, so the client tries once more on a new connection.
            Err(HttpClientError::Http(_)) if was_open => self.exchange(path, headers, limit)?,
            answer => answer?,
        };
        let (head, body) = answer.into_parts();
        Ok(HttpAnswer { client: self, head, body: Some(body), chunk: Bytes::new() })
    }

    fn exchange(
        &mut self,
        path: &str,
        headers: &HeaderMap,
        limit: Duration,
    ) -> Result<Response<Incoming>, HttpClientError> {
        let mut request = Request::get(path).body(Empty::new());
        if let Ok(request) = &mut request {
            request.headers_mut().clone_from(headers);
            request.headers_mut().insert(HOST, self.host.clone());
        }
        let request = request.map_err(|_| HttpClientError::Url("has a path that is not valid"))?;
        let idle = self.connection.take().filter(SendRequest::is_ready);
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.wait(CONNECT_LIMIT, self.connect()).flatten()?,
        };
        let answer = self.wait(limit, connection.send_request(request))??;
        self.connection = Some(connection);
        Ok(answer)
    }

    async fn connect(&self) -> Result<SendRequest<Empty<Bytes>>, HttpClientError> {
        let stream = TcpStream::connect((self.address.0.as_str(), self.address.1)).await;
        let stream = stream.map_err(HttpClientError::Connect)?;
        // The connection also works without `TCP_NODELAY`, so an error is ignored.
        _ = stream.set_nodelay(true);
        let stream = match &self.tls {
            None => Either::Left(stream),
            Some((tls, name)) => {
                let stream = tls.connect(name.clone(), stream).await;
                Either::Right(stream.map_err(HttpClientError::Connect)?)
            }
        };
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await?;
        // The task runs only while the client waits on the runtime.
        tokio::spawn(driver);
        Ok(sender)
    }

    /// Waits for the result of `future`, for at most `limit`.
    fn wait<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, HttpClientError> {
        let stopped = async {
            // Acquire: pairs with the release in the thread that stops the client.
            while !self.is_stopped.load(Ordering::Acquire) {
                sleep(STOP_INTERVAL).await;
            }
        };
        let runtime = self.runtime.as_ref().expect("it exists until the drop");
        runtime.block_on(async {
            tokio::select! {
                biased;
                result = timeout(limit, future) => result.map_err(|_| HttpClientError::Late),
                () = stopped => Err(HttpClientError::Stopped),
            }
        })
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for HttpClient {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The background shutdown does not wait for a running name lookup.
            runtime.shutdown_background();
        }
    }
}

/// The response to a request. The body is read on demand.
#[derive(Debug)]
pub struct HttpAnswer<'c> {
    client: &'c mut HttpClient,
    head: http::response::Parts,
    /// The body. The value is `None` after the end of the body.
    body: Option<Incoming>,
    chunk: Bytes,
}

impl HttpAnswer<'_> {
    /// Returns the status and the headers.
    #[must_use]
    pub fn head(&self) -> &http::response::Parts {
        &self.head
    }

    /// Returns the length of the body in bytes. Returns `None` if the server does not state the length.
    #[must_use]
    pub fn len_bytes(&self) -> Option<u64> {
        self.body.as_ref().map_or(Some(0), |body| body.size_hint().exact())
    }
}

impl Read for HttpAnswer<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            let Some(body) = &mut self.body else { return Ok(0) };
            match self.client.wait(BODY_LIMIT, body.frame()) {
                Ok(Some(Ok(frame))) => self.chunk = frame.into_data().unwrap_or_default(),
                Ok(None) => self.body = None,
                Ok(Some(Err(error))) => {
                    return Err(io::Error::other(HttpClientError::Http(error)));
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        let len = bytes.len().min(self.chunk.len());
        self.chunk.copy_to_slice(&mut bytes[..len]);
        Ok(len)
    }
}

impl Drop for HttpAnswer<'_> {
    fn drop(&mut self) {
        if self.body.as_ref().is_some_and(|body| !body.is_end_stream()) {
            // The unread rest of the body would precede the next response, so the connection is closed.
            self.client.connection = None;
        }
    }
}
