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
    /// The addresses on which the proxy listens.
    pub listen: Vec<SocketAddr>,
    /// The URL of the upstream service: `http://host:port` or `https://host:port`. The proxy sends HTTP/1.1 to the
    /// upstream service.
    pub upstream: Uri,
    /// The certificate of the proxy. With `None`, the proxy serves plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The PEM file of the CA that has signed the certificate of the upstream service. With `None`, the proxy trusts
    /// the CAs of the operating system.
    pub upstream_ca: Option<PathBuf>,
    /// The time limit for connecting to the upstream service. After the limit, the client gets the status 504.
    pub connect_timeout: Duration,
    /// The time limit from the end of a request to the response head of the upstream service. After the limit, the
    /// client gets the status 504.
    pub response_timeout: Duration,
    /// The time limit for receiving a request head. After the limit, the proxy closes the connection.
    pub header_timeout: Duration,
    /// The maximum pause between two parts of a body. If a pause exceeds the limit, the proxy aborts the transfer.
    pub body_timeout: Duration,
    /// The time for which a client connection stays open between two requests.
    pub idle_timeout: Duration,
    /// The time for which an idle connection to the upstream service stays open. The value of `upstream_idle_timeout`
    /// should be lower than the idle limit of the upstream service.
    pub upstream_idle_timeout: Duration,
    /// The time limit for the requests in progress after a shutdown begins.
    pub shutdown_timeout: Duration,
    /// The maximum number of concurrent client connections. Further clients wait.
    pub max_connections: u32,
    /// The maximum size of an HTTP/1.1 message head in bytes. The minimum value of `max_head_bytes` is 8192 bytes. The
    /// maximum size of a message head also limits each buffer of a connection.
    pub max_head_bytes: usize,
    /// True if a trusted proxy in front of this proxy sets `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`
    /// and `Forwarded`. If the field is false, the proxy removes the forwarding headers that the client has sent.
    pub trust_forwarded: bool,
    /// True if the proxy emits an event of `tracing` for each request at level `info`. The event contains the route,
    /// the verdict, the status and the duration.
    pub logs_requests: bool,
    /// True if the proxy adds the header `X-Request-Id` to requests without this header. With this setting, each
    /// response contains the id of its request.
    pub gives_request_ids: bool,
}

/// The idle time after which the system probes the connection of a silent peer. A tunnel has no time limit except this
/// probe.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(60);

/// A certificate and its private key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The PEM file of the certificate, followed by the certificates of its issuers.
    pub certificate: PathBuf,
    /// The PEM file of the private key.
    pub key: PathBuf,
}

impl ProxyOptions {
    /// Returns the default settings for an upstream service. The proxy listens on a free port of 127.0.0.1.
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
