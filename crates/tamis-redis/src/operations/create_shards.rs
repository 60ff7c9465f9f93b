//! Creates the keys of a generation.

use crate::error::RedisItemError;
use crate::layouts::generation_view::GenerationView;
use crate::layouts::header::{State, header};
use crate::operations::sweep::{expiry, unlink};
use crate::transport::exchange::{Exchange, send_all};
use crate::transport::request::NodeRequest;

/// Creates a shard, unless the shard exists: a repeated request must not reset flags and counters.
/// The arguments are the offset of the last byte and the header.
///
/// The first `SETRANGE` creates the string at its full length, so Redis allocates no spare memory.
pub(crate) const CREATE_SHARD: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 1) == 'TM' then return 0 end
redis.call('SETRANGE', KEYS[1], ARGV[1], '\\0')
redis.call('SETRANGE', KEYS[1], 0, ARGV[2])
return 1";

/// The largest number of shards that a pipeline creates. The server clears up to 4 MiB for each
/// shard.
const SHARDS_AT_ONCE: usize = 32;

/// Creates the shards of a generation. If `expires_at` is given, the shards expire at `expires_at`,
/// in milliseconds since 1970. After an error, deletes the shards that were created.
pub(crate) async fn create_shards<X: Exchange>(
    exchange: &mut X,
    generation: &GenerationView,
    expires_at: Option<u64>,
) -> Result<(), RedisItemError> {
    let shards: Vec<u32> = (0..generation.shards()).collect();
    for shards in shards.chunks(SHARDS_AT_ONCE) {
        let requests = shards.iter().flat_map(|&shard| requests(generation, shard, expires_at));
        if let Err(error) = send_all(exchange, requests.collect()).await {
            // If the deletion of the shards also fails, the caller gets the error of the creation.
            unlink(exchange, generation).await.ok();
            return Err(error);
        }
    }
    Ok(())
}

fn requests(
    generation: &GenerationView,
    shard: u32,
    expires_at: Option<u64>,
) -> impl Iterator<Item = NodeRequest> + use<> {
    let layer = generation.layer(0);
    let header = header(State::new(generation.record.id), layer);
    let key = generation.key(shard, 0);
    let mut create = NodeRequest::script(CREATE_SHARD, std::slice::from_ref(&key));
    create.command.arg(layer.bytes() - 1).arg(&header[..]);
    let expiry = expires_at.map(|at| expiry(key, Some(at)));
    [create].into_iter().chain(expiry)
}
