//! Scripts that change all layers of a shard together, which is possible because all keys of a
//! shard are in one slot of a cluster.

use crate::error::{RedisItemError, printable};
use crate::layouts::generation_view::GenerationView;
use crate::layouts::header::{State, header};
use crate::transport::request::{NodeReply, NodeRequest, integers};

/// Adds a layer, unless another client has added the layer. The keys are layer 0 and the new layer.
/// The arguments are the number of layers that the client has read, the last byte of the new
/// string, and the header of the new layer. The script replies with two numbers: the number of
/// layers, or 0 if layer 0 is missing; and the counter of the new layer.
///
/// The new layer gets the flags and the expiry of layer 0. The script creates the string of the
/// layer at its full length, so Redis allocates no spare memory.
pub(crate) const ADD_LAYER: &str = "\
local state = redis.call('GETRANGE', KEYS[1], 0, 7)
if #state < 8 or string.sub(state, 1, 2) ~= 'TM' then return {0, 0} end
local layers = string.byte(state, 4)
local known = tonumber(ARGV[1])
if layers == known + 1 then
  return {layers, redis.call('BITFIELD', KEYS[2], 'GET', 'i64', '64')[1]}
end
if layers ~= known then return {layers, 0} end
layers = layers + 1
redis.call('DEL', KEYS[2])
redis.call('SETRANGE', KEYS[2], ARGV[2], '\\0')
redis.call('SETRANGE', KEYS[2], 0, ARGV[3])
redis.call('SETRANGE', KEYS[2], 2, string.sub(state, 3, 3) .. string.char(layers))
local ttl = redis.call('PTTL', KEYS[1])
if ttl > 0 then redis.call('PEXPIRE', KEYS[2], ttl) end
redis.call('SETRANGE', KEYS[1], 3, string.char(layers))
return {layers, 0}";

/// Deletes a key without a header. If a shard is missing, an insert into the shard creates a key
/// without a header.
const REMOVE_REMAINS: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 1) ~= 'TM' then redis.call('DEL', KEYS[1]) end
return 0";

/// Returns the request that adds a layer to a shard with `layers` layers. After the request, other
/// clients may still insert into a layer that is older than the new layer. Lookups also find the
/// items in older layers, because lookups test all layers.
pub(crate) fn add_layer(generation: &GenerationView, shard: u32, layers: u8) -> NodeRequest {
    let layer = generation.layer(layers);
    let state = State { layers: layers + 1, ..State::new(generation.record.id) };
    let keys = [generation.key(shard, 0), generation.key(shard, layers)];
    let mut request = NodeRequest::script(ADD_LAYER, &keys);
    request.command.arg(layers).arg(layer.bytes() - 1).arg(&header(state, layer)[..]);
    request
}

/// Decodes the reply to [`add_layer`]. Returns the number of layers and a counter. The counter
/// belongs to the newest layer only if the shard has one layer more than the request states.
pub(crate) fn layers(key: &[u8], reply: NodeReply) -> Result<(u8, i64), RedisItemError> {
    let numbers = integers(key, reply)?;
    match (numbers.first().map(|&layers| u8::try_from(layers)), numbers.get(1)) {
        (Some(Ok(layers @ 1..)), Some(&counter)) => Ok((layers, counter)),
        _ => Err(RedisItemError::MissingShard { key: printable(key) }),
    }
}

/// Returns the request that deletes a key without a header.
pub(crate) fn remove_remains(key: Vec<u8>) -> NodeRequest {
    NodeRequest::script(REMOVE_REMAINS, &[key])
}
