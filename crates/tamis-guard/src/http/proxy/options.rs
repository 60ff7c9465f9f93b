//! The settings of a proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;

use crate::http::proxy::error::ProxyError;

/// The settings of a [`Proxy`](crate::Proxy).
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// The program behind the guard: `http://host:port` or `https://host:port`. It is spoken to in
    /// HTTP/1.1.
    pub upstream: Uri,
    /// The certificate of the proxy. `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// A PEM file of the certificates that sign that of the upstream. `None` for those of the
    /// system.
    pub upstream_ca: Option<PathBuf>,
    /// How long a connection to the upstream may take. Then the client gets the status 504.
    pub connect_timeout: Duration,
    /// How long the upstream may take from the end of a request to the head of its answer. Then the
    /// client gets the status 504.
    pub response_timeout: Duration,
    /// How long a client may take for the head of a request. Then its connection is closed.
    pub header_timeout: Duration,
    /// The longest pause between two parts of a body. Then the transfer is broken off.
    pub body_timeout: Duration,
    /// How long a connection of a client stays open between two requests.
    pub idle_timeout: Duration,
    /// How long an unused connection to the upstream stays open. It should be shorter than the
    /// upstream's own limit.
    pub upstream_idle_timeout: Duration,
    /// How long requests may take after a shutdown begins.
    pub shutdown_timeout: Duration,
    /// The most connections of clients at once. Further clients wait.
    pub max_connections: u32,
    /// The largest head of a message in HTTP/1.1, in bytes. At least 8192. It also limits
    /// each buffer of a connection.
    pub max_head_bytes: usize,
    /// True if another proxy in front of this one sets `X-Forwarded-For`, `X-Forwarded-Proto`,
    /// `X-Forwarded-Host` and `Forwarded`. Otherwise the values of the client are removed.
    pub trust_forwarded: bool,
    /// True if each request is an event of `tracing` at level `info`, with its route, verdict,
    /// status and time.
    pub logs_requests: bool,
    /// True if a request without the header `X-Request-Id` gets one, and each answer has the one of
    /// its request.
    pub gives_request_ids: bool,
}

/// How long a silent peer is trusted before the system probes its connection. Tunnels have no
/// other limit.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(60);

/// A certificate and its private key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The PEM file of the certificate, followed by those that sign it.
    pub certificate: PathBuf,
    /// The PEM file of the private key.
    pub key: PathBuf,
}

impl ProxyOptions {
    /// Returns the usual settings for an upstream. The proxy listens on a free port of 127.0.0.1.
    #[must_use]
    pub fn new(upstream: Uri) -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            upstream,
            tls: None,
            upstream_ca: None,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
            upstream_idle_timeout: Duration::from_secs(20),
            shutdown_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            max_head_bytes: 64 << 10,
            trust_forwarded: false,
            logs_requests: false,
            gives_request_ids: false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ProxyError> {
        let wrong = |why| Err(ProxyError::Upstream { uri: self.upstream.clone(), why });
        if !matches!(self.upstream.scheme_str(), Some("http" | "https")) {
            return wrong("begins with neither http:// nor https://");
        }
        if self.upstream.authority().is_some_and(|it| it.as_str().contains('@')) {
            return wrong("has a user name");
        }
        if !matches!(self.upstream.path_and_query().map(PathAndQuery::as_str), None | Some("/")) {
            return wrong("has a path; the paths of requests are not changed");
        }
        if self.max_connections == 0 || self.max_head_bytes < 8192 {
            return Err(ProxyError::Limit);
        }
        Ok(())
    }
}
