//! The keys of a filter that a client is building.

use crate::error::RedisItemError;
use crate::layouts::metadata::GenerationRecord;
use crate::operations::generations::discard;
use crate::transport::blocking::Transport;
use crate::transport::exchange::{Blocking, complete};

/// The keys of a filter that a client is building: a [draft](crate::RedisDraft) or a
/// [rebuild](crate::RedisFilter::rebuild_as).
#[derive(Clone, Debug)]
pub struct RedisGeneration {
    name: Vec<u8>,
    pub(crate) record: GenerationRecord,
}

impl RedisGeneration {
    pub(crate) fn new(name: &[u8], record: GenerationRecord) -> Self {
        Self { name: name.to_vec(), record }
    }

    /// Deletes the keys, unless the keys belong to a published filter. If the keys belong to a
    /// rebuild, this method ends the rebuild, and the present filter stays.
    ///
    /// Before this call, all threads must have stopped building the filter.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. Some keys may remain. Repeat the
    /// call after a failure.
    pub fn discard<T: Transport>(&self, transport: &mut T) -> Result<(), RedisItemError> {
        complete(discard(&mut Blocking(transport), &self.name, &self.record))
    }
}
