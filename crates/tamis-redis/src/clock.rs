//! The clock of a window: that of the server that has the metadata.
//!
//! The wall clock of a client may be late or fast, so it has no effect. A client reads the time of
//! the server, and adds what its monotonic clock has counted since. A monotonic clock may stop
//! while the machine sleeps. So each batch reads the time again, after its commands on the shards.

use std::time::Instant;

use crate::error::RedisItemError;
use crate::transport::exchange::Exchange;
use crate::transport::request::{NodeReply, NodeRequest, value};

/// A time of the server, and when the client received it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// In milliseconds since 1970.
    millis: u64,
    received: Instant,
}

impl Clock {
    /// Returns the request for the time of the server that has the metadata of a filter.
    pub(crate) fn request(name: &[u8]) -> NodeRequest {
        NodeRequest { key: name.to_vec(), command: redis::cmd("TIME"), is_repeatable: true }
    }

    /// Decodes the reply.
    pub(crate) fn decode(name: &[u8], reply: NodeReply) -> Result<Self, RedisItemError> {
        let (seconds, micros): (u64, u64) = redis::from_redis_value(value(name, reply)?)
            .map_err(|_| RedisItemError::unexpected(name, "is not a time"))?;
        let millis = seconds.saturating_mul(1000).saturating_add(micros / 1000);
        Ok(Self { millis, received: Instant::now() })
    }

    /// Asks the server for its time.
    pub(crate) async fn read<X: Exchange>(
        exchange: &mut X,
        name: &[u8],
    ) -> Result<Self, RedisItemError> {
        let reply = exchange.exchange(vec![Self::request(name)]).await.remove(0);
        Self::decode(name, reply)
    }

    /// Returns the present time of the server in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.millis.saturating_add(self.received.elapsed().as_millis() as u64)
    }
}
