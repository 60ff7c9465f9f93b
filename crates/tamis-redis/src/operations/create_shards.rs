//! Creates the keys of a generation.

use crate::error::RedisItemError;
use crate::layouts::header::{State, header};
use crate::layouts::view::Generation;
use crate::transport::request::{NodeReply, NodeRequest, Operation, Step, value};

/// Creates a shard, unless it exists: a repeated request must not reset flags and counters.
/// Arguments: the offset of the last byte, the header.
///
/// A string that is created at its full length takes no spare memory.
pub(crate) const CREATE_SHARD: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 1) == 'TM' then return 0 end
redis.call('SETRANGE', KEYS[1], ARGV[1], '\\0')
redis.call('SETRANGE', KEYS[1], 0, ARGV[2])
return 1";

/// How many shards a pipeline creates. The server clears up to 4 MiB for each.
const SHARDS_AT_ONCE: u32 = 32;

/// Creates the shards of a generation.
pub(crate) struct CreateShards {
    generation: Generation,
    expires_at: Option<u64>,
    sent: u32,
    is_waiting: bool,
}

impl CreateShards {
    /// Prepares the shards of a generation. With `expires_at`, a time in milliseconds since 1970,
    /// they expire then.
    pub(crate) fn new(generation: Generation, expires_at: Option<u64>) -> Self {
        Self { generation, expires_at, sent: 0, is_waiting: false }
    }

    fn requests(&self, shard: u32) -> impl Iterator<Item = NodeRequest> + use<> {
        let layer = self.generation.layer(0);
        let header = header(State::new(self.generation.record.id), layer);
        let key = self.generation.key(shard, 0);
        let mut create = NodeRequest::script(CREATE_SHARD, std::slice::from_ref(&key));
        create.command.arg(layer.bytes() - 1).arg(&header[..]);
        let expiry = self.expires_at.map(|at| expire_at(key, at));
        [create].into_iter().chain(expiry)
    }
}

impl Operation for CreateShards {
    type Output = Result<(), RedisItemError>;

    fn step(&mut self, replies: Vec<NodeReply>) -> Step<Self::Output> {
        if std::mem::take(&mut self.is_waiting)
            && let Some(error) = replies.into_iter().find_map(|reply| value(b"", reply).err())
        {
            return Step::Done(Err(error));
        }
        let next = self.sent..(self.sent + SHARDS_AT_ONCE).min(self.generation.shards());
        if next.is_empty() {
            return Step::Done(Ok(()));
        }
        self.sent = next.end;
        self.is_waiting = true;
        Step::Send(next.flat_map(|shard| self.requests(shard)).collect())
    }
}

/// Returns the request that lets a key expire at a time in milliseconds since 1970.
pub(crate) fn expire_at(key: Vec<u8>, millis: u64) -> NodeRequest {
    let mut request = NodeRequest::new("PEXPIREAT", key);
    request.command.arg(millis);
    request
}
