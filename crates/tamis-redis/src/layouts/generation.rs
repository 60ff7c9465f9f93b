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

    /// Deletes the keys of the generation, unless the keys belong to a published filter. If the
    /// keys belong to a rebuild, `discard` ends the rebuild, and the present filter stays.
    ///
    /// All threads must have stopped building the filter before the call of `discard`.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. After a failure, some keys may
    /// remain: repeat the call.
    pub fn discard<T: Transport>(&self, transport: &T) -> Result<(), RedisItemError> {
        complete(discard(&mut Blocking(transport), &self.name, &self.record))
    }
}
