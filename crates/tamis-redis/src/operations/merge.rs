//! Merges a filter into another filter on the same server or on another server.
//!
//! For each shard, the client copies the bits to a temporary key in the slot of the target shard.
//! After the copy, a script adds the bits of the temporary key to the target shard in one step.
//!
//! The first copy command writes a mark to the first byte of the temporary key. If the temporary
//! key expires during the copy, the next copy command creates the key again without a mark. A
//! missing mark therefore shows the script that the copy is incomplete. The script removes the
//! mark, and all other bytes of the temporary header are zero, so the header of the target shard
//! does not change.

use std::fmt;
use std::sync::Arc;

use crate::error::{Difference, RedisItemError, printable};
use crate::layouts::geometry::HEADER_BYTES;
use crate::layouts::metadata::{Role, random_id};
use crate::layouts::view::View;
use crate::operations::generations::read;
use crate::operations::growth;
use crate::operations::sweep::{Visit, sweep};
use crate::transport::exchange::{Exchange, send_all};
use crate::transport::request::{NodeRequest, bytes, integer};

/// Adds the bits of a temporary key to a shard. The keys are the shard and the temporary key. The
/// argument is the number of items. The script replies with 1 after a merge, with 0 if the shard is
/// missing, and with 2 if the temporary key is missing or incomplete.
const MERGE: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 1) ~= 'TM' then return 0 end
if redis.call('GETRANGE', KEYS[2], 0, 0) ~= '+' then return 2 end
local ttl = redis.call('PTTL', KEYS[1])
redis.call('SETRANGE', KEYS[2], 0, '\\0')
redis.call('BITOP', 'OR', KEYS[1], KEYS[1], KEYS[2])
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', 64, ARGV[1])
redis.call('DEL', KEYS[2])
return 1";

/// The first byte of a complete temporary key.
const MARK: u8 = b'+';

/// The largest number of bytes that a command copies.
const CHUNK_BYTES: u64 = 256 << 10;

/// The largest number of attempts to copy a shard. An attempt fails if the temporary key is missing
/// or incomplete.
const MAX_ATTEMPTS: u32 = 3;

/// The time in milliseconds after which an abandoned temporary key expires.
const LIFETIME_MILLIS: u64 = 600_000;

/// The reason why filters were not merged. After a failed merge, some shards may already be merged.
/// A program can repeat a failed merge safely.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisMergeError {
    /// The filters differ in parameters that determine the positions of the bits of an item.
    Differs(Vec<Difference>),
    /// One of the filters is a window or is being rebuilt.
    Busy {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// The server or the connection failed, or a shard is missing.
    Redis(RedisItemError),
}

impl fmt::Display for RedisMergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(differences) => {
                write!(f, "the filters differ: {}", Difference::list(differences))
            }
            Self::Busy { name } => write!(
                f,
                "the filter {name:?} is a window or is being rebuilt: merge it after the rebuild"
            ),
            Self::Redis(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisMergeError {}

impl From<RedisItemError> for RedisMergeError {
    fn from(error: RedisItemError) -> Self {
        Self::Redis(error)
    }
}

/// Adds all items of the filter `from` to the filter `to`.
pub(crate) async fn merge<X: Exchange, Y: Exchange>(
    to: (&mut X, &mut View),
    from: (&mut Y, &mut View),
) -> Result<(), RedisMergeError> {
    let ((to, target), (from, source)) = (to, from);
    read(to, target).await?;
    read(from, source).await?;
    check(target, source)?;
    // The sweep over the target and the sweep over the source read the number of layers of each
    // shard.
    sweep(to, target, Visit::Read, [0]).await?;
    let visited = sweep(from, source, Visit::Read, [0]).await?;
    for visited in visited {
        let (shard, layer) = (visited.shard, visited.layer);
        let key = source.generations[0].key(shard, layer);
        let Some(items) = visited.items else {
            return Err(RedisItemError::MissingShard { key: printable(&key) }.into());
        };
        let mut known = target.generations[0].layers(shard);
        while known <= layer {
            let request = growth::add_layer(&target.generations[0], shard, known);
            let reply = to.exchange(vec![request]).await.remove(0);
            let (layers, counter) = growth::layers(&key, reply)?;
            if layers <= known {
                // The server lost a layer that the client has read. Each further attempt would get
                // the same reply.
                let key = target.generations[0].key(shard, known - 1);
                return Err(RedisItemError::MissingShard { key: printable(&key) }.into());
            }
            target.generations[0].learn_layers(shard, layers);
            if layers == known + 1 {
                target.generations[0].learn_count(shard, known, counter);
            }
            known = layers;
        }
        let len = target.generations[0].layer(layer).bytes();
        let is_merged = merge_shard(to, target, (shard, layer), from, &key, len, items).await?;
        if !is_merged {
            check_unchanged(to, target).await?;
            let key = target.generations[0].key(shard, layer);
            return Err(RedisItemError::MissingShard { key: printable(&key) }.into());
        }
    }
    // If a rebuild started during the merge, the new generation contains only a part of the merged
    // items.
    check_unchanged(to, target).await
}

/// Reads the metadata again, and returns an error if the metadata has changed.
async fn check_unchanged<X: Exchange>(
    to: &mut X,
    target: &mut View,
) -> Result<(), RedisMergeError> {
    let known = Arc::clone(&target.metadata);
    read(to, target).await?;
    if target.metadata == known {
        return Ok(());
    }
    Err(RedisMergeError::Busy { name: printable(target.name()) })
}

fn check(target: &View, source: &View) -> Result<(), RedisMergeError> {
    for view in [target, source] {
        match &view.metadata.generations[..] {
            [only] if only.role == Role::Current => {}
            _ => return Err(RedisMergeError::Busy { name: printable(view.name()) }),
        }
    }
    let (to, from) = (&target.metadata, &source.metadata);
    let (to_first, from_first) = (&to.generations[0], &from.generations[0]);
    let differences = Difference::all([
        Difference::of("hash", &to.hasher, &from.hasher),
        Difference::of("growth", &to_first.growth, &from_first.growth),
        Difference::of("shards and bits", &to_first.geometry, &from_first.geometry),
    ]);
    if differences.is_empty() { Ok(()) } else { Err(RedisMergeError::Differs(differences)) }
}

/// Adds the bits of one layer of a shard to the target. Returns false if the shard of the target is
/// missing.
async fn merge_shard<X: Exchange, Y: Exchange>(
    to: &mut X,
    target: &View,
    (shard, layer): (u32, u8),
    from: &mut Y,
    source_key: &[u8],
    len: u64,
    items: i64,
) -> Result<bool, RedisItemError> {
    let key = target.generations[0].key(shard, layer);
    let mut temporary = key.clone();
    temporary.extend_from_slice(format!("+{:08x}", random_id()).as_bytes());
    for _ in 0..MAX_ATTEMPTS {
        copy(to, &temporary, from, source_key, len).await?;
        let mut request = NodeRequest::script(MERGE, &[key.clone(), temporary.clone()]);
        request.command.arg(items.max(0));
        let reply = to.exchange(vec![request]).await.remove(0);
        match integer(&key, reply)? {
            1 => return Ok(true),
            // The temporary key may also be missing because the previous attempt succeeded and the
            // reply of this attempt was lost. A second merge sets the same bits as the first merge.
            2 => {}
            _ => {
                send_all(to, vec![NodeRequest::new("UNLINK", temporary)]).await?;
                return Ok(false);
            }
        }
    }
    Err(RedisItemError::Unsettled)
}

/// Copies the bits of a shard to a temporary key, without the header.
async fn copy<X: Exchange, Y: Exchange>(
    to: &mut X,
    temporary: &[u8],
    from: &mut Y,
    source_key: &[u8],
    len: u64,
) -> Result<(), RedisItemError> {
    let mut at = HEADER_BYTES;
    while at < len {
        let end = len.min(at + CHUNK_BYTES);
        let mut get = NodeRequest::new("GETRANGE", source_key.to_vec());
        get.command.arg(at).arg(end - 1);
        let reply = from.exchange(vec![get]).await.remove(0);
        let mut part = bytes(source_key, reply)?.unwrap_or_default();
        if part.len() as u64 != end - at {
            return Err(RedisItemError::MissingShard { key: printable(source_key) });
        }
        let mut start = at;
        if at == HEADER_BYTES {
            let mut header = [0; HEADER_BYTES as usize];
            header[0] = MARK;
            part.splice(0..0, header);
            start = 0;
        }
        let mut set = NodeRequest::new("SETRANGE", temporary.to_vec());
        set.command.arg(start).arg(part);
        let mut expire = NodeRequest::new("PEXPIRE", temporary.to_vec());
        expire.command.arg(LIFETIME_MILLIS);
        send_all(to, vec![set, expire]).await?;
        at = end;
    }
    Ok(())
}
