//! The state that the connections of a proxy share, and the state of one connection.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::rustls::ServerConfig;

use crate::http::proxy::activity::Activity;
use crate::http::proxy::options::ProxyOptions;
use crate::http::proxy::request_id::RequestIds;
use crate::http::proxy::upstream::Upstream;
use crate::request::layer::GuardLayer;

/// The state that all connections of a proxy share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: ProxyOptions,
    pub(super) guard: ArcSwap<GuardLayer>,
    pub(super) upstream: ArcSwap<Upstream>,
    pub(super) tls: Option<ArcSwap<ServerConfig>>,
    /// The generator of request ids. The value is `None` if the proxy generates no request ids.
    pub(super) request_ids: Option<RequestIds>,
    /// One permit for each connection. A tunnel keeps the permit of its connection.
    pub(super) connections: Arc<Semaphore>,
}

/// The phase of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// The proxy accepts no new connections, and finishes the requests in progress.
    Draining,
    /// All connections are closed.
    Closed,
}

/// The state of a client connection, which its requests and its tunnel share.
#[derive(Debug)]
pub(super) struct ConnectionContext {
    pub(super) shared: Arc<Shared>,
    pub(super) remote: SocketAddr,
    pub(super) activity: Arc<Activity>,
    pub(super) phase: watch::Receiver<Phase>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionContext {
    pub(super) fn new(
        shared: Arc<Shared>,
        remote: SocketAddr,
        phase: watch::Receiver<Phase>,
        permit: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        let activity = Arc::new(Activity::new());
        Arc::new(Self { shared, remote, activity, phase, _permit: permit })
    }
}
