//! The keys of a filter that a client builds.

use crate::error::RedisItemError;
use crate::layouts::metadata::GenerationRecord;
use crate::operations::generations::discard;
use crate::transport::blocking::Transport;
use crate::transport::exchange::{Blocking, complete};

/// The keys of a filter that a client builds: of a [draft](crate::RedisDraft) or of a
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

    /// Deletes the keys, unless they are those of a published filter. If they belong to a rebuild,
    /// ends the rebuild; the present filter stays.
    ///
    /// Call it only after all threads have stopped building the filter.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails. Some keys may be left; repeat the
    /// call.
    pub fn discard<T: Transport>(&self, transport: &mut T) -> Result<(), RedisItemError> {
        complete(discard(&mut Blocking(transport), &self.name, &self.record))
    }
}
