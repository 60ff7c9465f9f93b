//! The clock of a window, which is the clock of the server that stores the metadata.
//!
//! The wall clock of a client has no effect, because a wall clock may be wrong. A client reads the
//! time of the server, and adds the time that the client's monotonic clock has measured since the
//! read. A monotonic clock may stop while the machine sleeps. Each batch therefore reads the time
//! of the server again, after the commands on the shards.

use std::time::Instant;

use crate::error::RedisItemError;
use crate::transport::exchange::Exchange;
use crate::transport::request::{NodeReply, NodeRequest, value};

/// A time of the server, and the instant at which the client received the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The time of the server in milliseconds since 1970.
    millis: u64,
    received: Instant,
}

impl Clock {
    /// Returns the request for the time of the server that stores the metadata of a filter.
    pub(crate) fn request(name: &[u8]) -> NodeRequest {
        NodeRequest { key: name.to_vec(), command: redis::cmd("TIME"), is_repeatable: true }
    }

    /// Decodes the reply to [`request`](Self::request).
    pub(crate) fn decode(name: &[u8], reply: NodeReply) -> Result<Self, RedisItemError> {
        let (seconds, micros): (u64, u64) = redis::from_redis_value(value(name, reply)?)
            .map_err(|_| RedisItemError::unexpected(name, "is not a time"))?;
        let millis = seconds.saturating_mul(1000).saturating_add(micros / 1000);
        Ok(Self { millis, received: Instant::now() })
    }

    /// Reads the time of the server.
    pub(crate) async fn read<X: Exchange>(
        exchange: &mut X,
        name: &[u8],
    ) -> Result<Self, RedisItemError> {
        let reply = exchange.exchange(vec![Self::request(name)]).await.remove(0);
        Self::decode(name, reply)
    }

    /// Tests whether the client received this time before another time.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.received < other.received
    }

    /// Returns the present time of the server in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.millis.saturating_add(self.received.elapsed().as_millis() as u64)
    }
}
