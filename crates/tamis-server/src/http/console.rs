//! The state that all requests to the HTTP port share.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::http::history::History;
use crate::http::sampler::Sampler;
use crate::shared_state::SharedState;

/// The state that all requests share.
pub(super) struct Console {
    pub shared: Arc<SharedState>,
    pub address: SocketAddr,
    pub history: History,
    pub sampler: Sampler,
    /// The only permit to prepare a response. Responses to `/healthz` need no permit.
    pub turn: Arc<Semaphore>,
}

impl Console {
    pub fn new(shared: Arc<SharedState>, address: SocketAddr) -> Self {
        Self {
            shared,
            address,
            history: History::default(),
            sampler: Sampler::default(),
            turn: Arc::new(Semaphore::new(1)),
        }
    }
}
