//! The pool of connections to the upstream that no request uses.

use std::fmt;
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::proxy::upstream_connection::UpstreamConnection;

/// The connections that no request uses.
pub(super) struct IdleConnections {
    timeout: Duration,
    /// The connection that was used last is at the end.
    connections: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: Box<UpstreamConnection>,
    since: Instant,
}

impl IdleConnections {
    /// Creates a pool that keeps a connection so long.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, connections: Mutex::default() }
    }

    /// Takes an idle connection that is open.
    pub(super) fn take(&self, context: &mut Context<'_>) -> Option<Box<UpstreamConnection>> {
        loop {
            let Idle { mut connection, since } = self.connections.lock().pop()?;
            if since.elapsed() < self.timeout && connection.is_idle(context) {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection for the next request.
    pub(super) fn put(&self, connection: Box<UpstreamConnection>) {
        self.connections.lock().push(Idle { connection, since: Instant::now() });
    }

    /// Closes the connections that nobody has used for a while, and those that the upstream has
    /// closed.
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
