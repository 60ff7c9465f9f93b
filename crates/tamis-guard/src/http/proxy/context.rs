//! What the connections of a proxy share, and what one connection has.

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

/// What all connections of a proxy use.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: ProxyOptions,
    pub(super) guard: ArcSwap<GuardLayer>,
    pub(super) upstream: ArcSwap<Upstream>,
    pub(super) tls: Option<ArcSwap<ServerConfig>>,
    /// `None` if requests without an id get none.
    pub(super) request_ids: Option<RequestIds>,
    /// One permit for each connection. A tunnel keeps that of its connection.
    pub(super) connections: Arc<Semaphore>,
}

/// How far the shutdown of a proxy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// No new connections. Requests are finished.
    Draining,
    /// Everything is closed.
    Closed,
}

/// A connection of a client. Its requests and its tunnel share it.
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
