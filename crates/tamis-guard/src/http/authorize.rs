//! Answers the question of another proxy whether a request may pass.
//!
//! ```text
//! client ──▶ nginx ──▶ program ──▶ cache ──▶ database
//!              │  ▲
//!     question │  │ 200 or a refusal
//!              ▼  │
//!             guard
//! ```
//!
//! The other proxy describes the request of the client in its question ([`OtherProxy`]). The guard reads the described
//! request, and decides with the same routes as for its own proxy.

mod original_request;
mod other_proxy;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::HeaderValue;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tamis_sources::Verdict;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) use other_proxy::OtherProxy;

use crate::http::answer::{Answer, text};
use crate::http::authorize::original_request::{BadQuestion, read_original};
use crate::http::proxy::ProxyError;
use crate::http::server::{HttpServer, ServerLimits};
use crate::request::authorize::Authorization;
use crate::request::layer::GuardLayer;
use crate::request::refusal::REASON_HEADER;

/// The time for which an unused connection stays open. The limit is longer than the limits of the other proxies (the
/// limit of Envoy is one hour), so that the guard does not close a connection at the moment of a question.
const IDLE_LIMIT: Duration = Duration::from_secs(3900);
/// The time limit for the questions in progress after the shutdown begins.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);
/// The maximum length of the unread rest of a body that the guard reads and discards, in bytes.
const DISCARD_BYTES: usize = 16 << 20;
/// The time limit for the unread rest of a body.
const DISCARD_LIMIT: Duration = Duration::from_secs(10);
/// The pause between two warnings about the configuration of the other proxy.
const WARNING_PAUSE: Duration = Duration::from_secs(10);

/// The settings of an [`Authorizer`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AuthorizeOptions {
    /// The addresses on which the guard listens.
    pub(crate) listen: Vec<SocketAddr>,
    /// The proxy that asks the questions.
    pub(crate) proxy: OtherProxy,
    /// The maximum number of concurrent connections on each address. Further connections wait.
    pub(crate) max_connections: u32,
    /// The maximum size of the head of a question in bytes.
    pub(crate) max_head_bytes: usize,
}

/// A server for the questions of another proxy. The server listens, but does not serve requests yet.
#[derive(Debug)]
pub(crate) struct Authorizer {
    servers: Vec<HttpServer>,
    shared: Arc<Shared>,
}

/// The state that all connections of an authorizer share.
#[derive(Debug)]
struct Shared {
    proxy: OtherProxy,
    guard: ArcSwap<GuardLayer>,
    /// The time of the last warning about the configuration of the other proxy.
    warned: Mutex<Option<Instant>>,
}

/// A handle that changes a running [`Authorizer`]. All clones refer to the same authorizer.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizerHandle(Arc<Shared>);

impl AuthorizerHandle {
    /// Replaces the routes.
    pub(crate) fn set_guard(&self, guard: GuardLayer) {
        self.0.guard.store(Arc::new(guard));
    }
}

impl Authorizer {
    /// Listens on all addresses.
    ///
    /// # Errors
    ///
    /// [`ProxyError::Listen`] if an address cannot be bound.
    pub(crate) async fn bind(options: &AuthorizeOptions) -> Result<Self, ProxyError> {
        let limits = ServerLimits {
            connections: options.max_connections as usize,
            head_bytes: options.max_head_bytes,
            head_time: IDLE_LIMIT,
            shutdown_time: SHUTDOWN_LIMIT,
        };
        let mut servers = Vec::new();
        for &address in &options.listen {
            let fail = |error| ProxyError::Listen { address, error };
            let server = HttpServer::bind(address).await.map_err(fail)?;
            servers.push(server.with_limits(limits));
        }
        let guard = ArcSwap::from_pointee(GuardLayer::new(Vec::new()));
        let shared = Shared { proxy: options.proxy, guard, warned: Mutex::new(None) };
        Ok(Self { servers, shared: Arc::new(shared) })
    }

    /// Returns the addresses on which the authorizer listens, in the order of the options.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.servers.iter().map(HttpServer::address)
    }

    /// Returns a handle that changes the running authorizer.
    pub(crate) fn handle(&self) -> AuthorizerHandle {
        AuthorizerHandle(Arc::clone(&self.shared))
    }

    /// Answers questions until the sender of `stopped` is dropped. Then finishes the answers in progress.
    pub(crate) async fn run(self, stopped: watch::Receiver<()>) {
        let mut servers = JoinSet::new();
        for server in self.servers {
            let shared = Arc::clone(&self.shared);
            let answer = move |question| answer(question, Arc::clone(&shared));
            let mut stopped = stopped.clone();
            let shutdown = async move { _ = stopped.changed().await };
            servers.spawn(server.run_until(shutdown, answer));
        }
        while servers.join_next().await.is_some() {}
    }
}

/// Answers a question.
async fn answer(question: Request<Incoming>, shared: Arc<Shared>) -> Answer {
    let (mut parts, mut body) = question.into_parts();
    let answer = decide(&mut parts, &mut body, &shared).await;
    discard(body).await;
    answer
}

/// Returns the answer to a question, without reading the whole body.
async fn decide(parts: &mut Parts, body: &mut Incoming, shared: &Shared) -> Answer {
    match read_original(parts, shared.proxy) {
        Ok(()) => {}
        Err(BadQuestion::Request) => return shared.proxy.refusal(bad_request()),
        Err(BadQuestion::Proxy(message)) => {
            shared.warn(&message);
            return text(StatusCode::INTERNAL_SERVER_ERROR, format!("{message}\n"));
        }
    }
    let guard = shared.guard.load_full();
    match guard.authorize(parts, body).await {
        Authorization::Pass(verdict) => permission(verdict),
        Authorization::Refuse(refusal) => shared.proxy.refusal(refusal),
    }
}

/// Reads the rest of a body. If the guard closed a connection with unread bytes, the other proxy could lose the answer,
/// and pass the request as if the guard were down.
async fn discard(mut body: Incoming) {
    let mut left = DISCARD_BYTES;
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            if length > left {
                return;
            }
            left -= length;
        }
    };
    _ = timeout(DISCARD_LIMIT, rest).await;
}

impl Shared {
    /// Logs that the other proxy is configured wrongly, at most once in [`WARNING_PAUSE`].
    fn warn(&self, message: &str) {
        let now = Instant::now();
        let mut warned = self.warned.lock();
        if warned.is_none_or(|last| now.duration_since(last) >= WARNING_PAUSE) {
            *warned = Some(now);
            tracing::warn!("{message}");
        }
    }
}

/// Returns the permission for a request. The header has the reason, so that the log of the other proxy can show the
/// reason.
fn permission(verdict: Option<Verdict>) -> Answer {
    let mut response = Response::new(Full::default());
    if let Some(verdict) = verdict {
        let reason = match verdict {
            Verdict::Pass(reason) => reason.name(),
            Verdict::Refuse(reason) => reason.name(),
        };
        response.headers_mut().insert(REASON_HEADER, HeaderValue::from_static(reason));
    }
    response
}

/// Returns the response to a client whose request has an invalid target or an invalid method.
fn bad_request() -> Answer {
    text(StatusCode::BAD_REQUEST, "the request is not valid\n")
}
