//! A reverse proxy behind a guard. The guard refuses requests for nonexistent ids, and the proxy forwards all other
//! requests to one upstream service.
//!
//! ```text
//! accept → TLS → hyper → admission → guard → forward → upstream
//! ```
//!
//! Admission rejects ambiguous requests and removes hop-by-hop headers. After the admission, the guard decides about
//! exactly the request head that the upstream service receives. Bodies are streamed in both directions.

mod activity;
mod admission;
mod answer;
mod client_stream;
mod connection;
mod context;
mod error;
mod forward;
mod forwarded;
mod hop_by_hop;
mod idle_connections;
mod options;
mod request_body;
mod request_id;
mod request_log;
mod response_body;
mod tls;
mod tunnel;
mod upstream;
mod upstream_body;
mod upstream_connection;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

pub use error::ProxyError;
pub use options::{ProxyOptions, TlsFiles};

use crate::http::proxy::context::{ConnectionContext, Phase, Shared};
use crate::http::proxy::request_id::RequestIds;
use crate::http::proxy::upstream::Upstream;
use crate::request::layer::GuardLayer;

/// The pause of an acceptor after an error, for example because of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A reverse proxy that listens, but does not serve requests yet.
///
/// # Examples
///
/// ```no_run
/// use tamis_guard::{GuardLayer, Proxy, ProxyOptions};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = ProxyOptions::new("http://127.0.0.1:8080".parse()?);
/// options.listen = vec!["0.0.0.0:80".parse()?];
/// let proxy = Proxy::bind(options, GuardLayer::new(Vec::new())).await?;
/// let handle = proxy.handle();
/// // The routes may change while the proxy runs.
/// handle.set_guard(GuardLayer::new(Vec::new()));
/// proxy.run(std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Proxy {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
}

/// A handle that changes a running proxy. All clones refer to the same proxy.
#[derive(Clone, Debug)]
pub struct ProxyHandle {
    shared: Arc<Shared>,
}

impl Proxy {
    /// Reads the TLS files, and listens on all addresses. The system replaces the port 0 by a free port.
    ///
    /// # Errors
    ///
    /// [`ProxyError`] if an option is invalid, a file cannot be used, or an address is in use.
    pub async fn bind(options: ProxyOptions, guard: GuardLayer) -> Result<Self, ProxyError> {
        options.check()?;
        let upstream = Upstream::new(&options)?;
        let tls = match &options.tls {
            Some(files) => Some(ArcSwap::new(tls::server_config(files)?)),
            None => None,
        };
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for &address in &options.listen {
            let fail = |error| ProxyError::Listen { address, error };
            let listener = TcpListener::bind(address).await.map_err(fail)?;
            addresses.push(listener.local_addr().map_err(fail)?);
            listeners.push(listener);
        }
        let shared = Arc::new(Shared {
            guard: ArcSwap::from_pointee(guard),
            upstream: ArcSwap::from(upstream),
            tls,
            request_ids: options.gives_request_ids.then(RequestIds::new),
            connections: Arc::new(Semaphore::new(options.max_connections as usize)),
            options,
        });
        Ok(Self { listeners, addresses, shared, phase: watch::Sender::new(Phase::Serving) })
    }

    /// Returns the addresses on which the proxy listens, in the order of the options.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns a handle that changes the running proxy.
    #[must_use]
    pub fn handle(&self) -> ProxyHandle {
        ProxyHandle { shared: Arc::clone(&self.shared) }
    }

    /// Serves requests until `shutdown` completes. After `shutdown` completes, the proxy accepts no more connections
    /// and finishes the requests in progress. After [`ProxyOptions::shutdown_timeout`], the proxy closes all open
    /// connections.
    ///
    /// Returns the number of connections that were still open after the shutdown timeout.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        let mut acceptors = JoinSet::new();
        for listener in self.listeners {
            acceptors.spawn(accept(listener, Arc::clone(&self.shared), self.phase.subscribe()));
        }
        let shared = Arc::clone(&self.shared);
        // Dropping the `JoinSet` ends the task.
        let mut closer = JoinSet::new();
        closer.spawn(async move {
            loop {
                sleep(shared.options.upstream_idle_timeout).await;
                shared.upstream.load().close_idle();
            }
        });
        shutdown.await;
        self.phase.send_replace(Phase::Draining);
        // The acceptors end here, so the listening sockets are closed.
        while acceptors.join_next().await.is_some() {}
        let connections = &self.shared.connections;
        let all = self.shared.options.max_connections;
        let drained = connections.acquire_many(all);
        if timeout(self.shared.options.shutdown_timeout, drained).await.is_ok() {
            return 0;
        }
        let cut = all as usize - connections.available_permits();
        self.phase.send_replace(Phase::Closed);
        _ = connections.acquire_many(all).await;
        cut
    }
}

impl ProxyHandle {
    /// Replaces the routes. Requests in progress continue with the old routes.
    pub fn set_guard(&self, guard: GuardLayer) {
        self.shared.guard.store(Arc::new(guard));
    }

    /// Reads all certificates and keys again. Only connections that are opened after the call use the reloaded
    /// certificates and keys.
    ///
    /// # Errors
    ///
    /// [`ProxyError`] if a file cannot be used. After an error, the proxy keeps its current certificates and keys.
    pub fn reload_tls(&self) -> Result<(), ProxyError> {
        let upstream = Upstream::new(&self.shared.options)?;
        if let (Some(tls), Some(files)) = (&self.shared.tls, &self.shared.options.tls) {
            tls.store(tls::server_config(files)?);
        }
        self.shared.upstream.store(upstream);
        Ok(())
    }
}

/// Accepts connections while the proxy serves. When the maximum number of connections is reached, new clients wait.
async fn accept(listener: TcpListener, shared: Arc<Shared>, phase: watch::Receiver<Phase>) {
    let mut stop = phase.clone();
    let stop = stop.wait_for(|&phase| phase != Phase::Serving);
    tokio::pin!(stop);
    loop {
        let next = async {
            let permit = Arc::clone(&shared.connections).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            _ = &mut stop => return,
            next = next => next,
        };
        let Ok(permit) = permit else { return };
        match accepted {
            Ok((stream, remote)) => {
                let shared = Arc::clone(&shared);
                let context = ConnectionContext::new(shared, remote, phase.clone(), permit);
                tokio::spawn(connection::serve(stream, context));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
