//! The pool of idle connections to the upstream service.

use std::fmt;
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::proxy::upstream_connection::UpstreamConnection;

/// The idle connections.
pub(super) struct IdleConnections {
    timeout: Duration,
    /// The connections in the order of their last use. The most recently used connection is at the end.
    connections: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: Box<UpstreamConnection>,
    since: Instant,
}

impl IdleConnections {
    /// Creates a pool that keeps an idle connection for `timeout`.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, connections: Mutex::default() }
    }

    /// Removes an open idle connection from the pool, and returns it.
    pub(super) fn take(&self, context: &mut Context<'_>) -> Option<Box<UpstreamConnection>> {
        loop {
            let Idle { mut connection, since } = self.connections.lock().pop()?;
            if since.elapsed() < self.timeout && connection.is_idle(context) {
                return Some(connection);
            }
        }
    }

    /// Returns a connection to the pool for the next request.
    pub(super) fn put(&self, connection: Box<UpstreamConnection>) {
        self.connections.lock().push(Idle { connection, since: Instant::now() });
    }

    /// Closes the connections whose idle time exceeds the limit. The method also removes the connections that the
    /// upstream service has closed.
    pub(super) fn close(&self) {
        let mut context = Context::from_waker(Waker::noop());
        self.connections.lock().retain_mut(|idle| {
            idle.since.elapsed() < self.timeout && idle.connection.is_idle(&mut context)
        });
    }
}

impl fmt::Debug for IdleConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleConnections").finish_non_exhaustive()
    }
}
