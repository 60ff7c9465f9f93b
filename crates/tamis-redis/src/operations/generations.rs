//! Adds, publishes and removes generations. Rebuilds and the slices of windows are generations.
//!
//! The order of the steps keeps two promises during inserts and lookups of other clients:
//!
//! * Before an insert may go only to a new generation, every shard of the old generation has a
//!   flag. A client with an old view of the filter sees the flag in its next reply, and reads the
//!   metadata again.
//! * If a client can read metadata, all shards of all generations in the metadata exist.
//!
//! ```text
//! rebuild   create shards → publish as `building` → flag the current shards → (the caller inserts)
//! swap      retire the current shards → publish as `current` → delete the old shards
//! abort     retire the new shards → publish without them → delete the new shards
//! slice     create shards → flag the newest slice → publish
//! ```
//!
//! A rebuild first publishes the metadata and then sets the flags, because inserts go to both
//! generations. A window first sets the flags and then publishes the metadata of a new slice,
//! because inserts go only to the new slice.
//!
//! No step clears a flag, because another client may have set the flag for its own rebuild. While a
//! flag is set without need, each batch reads the metadata once more.

use std::fmt;
use std::sync::Arc;

use crate::clock::Clock;
use crate::error::{RedisItemError, printable};
use crate::layouts::generation_view::GenerationView;
use crate::layouts::metadata::{GenerationRecord, Metadata, Role, random_id};
use crate::layouts::view::View;
use crate::operations::create_shards::create_shards;
use crate::operations::growth::remove_remains;
use crate::operations::sweep::{Flag, Visit, expiry, sweep, unlink};
use crate::plan::RedisPlan;
use crate::transport::exchange::{Exchange, send_all};
use crate::transport::request::{NodeRequest, bytes, integer};

/// Replaces the metadata, unless another client has changed the metadata. The script keeps the
/// expiry of the key. The arguments are the text that the client has read and the new text. The
/// script replies with 1 if the key has the new text.
const REPLACE: &str = "\
local text = redis.call('GET', KEYS[1])
if text == ARGV[2] then return 1 end
if text ~= ARGV[1] then return 0 end
local ttl = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2])
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
return 1";

/// The largest number of attempts to add a slice. An attempt fails if another client changes the
/// metadata.
const MAX_ATTEMPTS: u32 = 8;

/// The result of an attempt to replace the metadata.
enum Published {
    Done,
    /// The metadata does not contain the change. The cause is the error in this variant or, without
    /// an error, a change by another client.
    Refused(Option<RedisItemError>),
}

/// The reason why a rebuild did not start, or why a swap or an abort failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisRebuildError {
    /// Another rebuild has not ended. To end the other rebuild, call
    /// [`abort_rebuild`](crate::RedisFilter::abort_rebuild).
    Running {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// The rebuild of this client is not running, because another client ended the rebuild.
    NotRunning {
        /// The name of the filter.
        name: Arc<str>,
    },
    /// The plan has another hash function or a window, or the filter is a window.
    Plan {
        /// The reason of the error.
        why: &'static str,
    },
    /// The server or the connection failed.
    Redis(RedisItemError),
}

impl fmt::Display for RedisRebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { name } => {
                write!(f, "a rebuild of the filter {name:?} is running: wait for it, or abort it")
            }
            Self::NotRunning { name } => {
                write!(f, "no rebuild of the filter {name:?} is running: start it again")
            }
            Self::Plan { why } => f.write_str(why),
            Self::Redis(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedisRebuildError {}

impl From<RedisItemError> for RedisRebuildError {
    fn from(error: RedisItemError) -> Self {
        Self::Redis(error)
    }
}

/// Creates the record of a generation for a rebuild with a plan.
pub(crate) fn next_generation(
    view: &View,
    plan: &RedisPlan,
) -> Result<GenerationRecord, RedisRebuildError> {
    if view.metadata.window.is_some() || plan.window_span().is_some() {
        return Err(RedisRebuildError::Plan { why: "a window is not rebuilt: its items expire" });
    }
    if plan.hash_function() != view.metadata.hasher {
        return Err(RedisRebuildError::Plan {
            why: "a rebuild keeps the hash function of the filter",
        });
    }
    Ok(GenerationRecord::new(plan, Role::Building))
}

/// Starts a rebuild. After `start_rebuild` returns, every insert of every client goes to both
/// generations.
pub(crate) async fn start_rebuild<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    record: &GenerationRecord,
) -> Result<(), RedisRebuildError> {
    let expires_at = match read(exchange, view).await? {
        Some(ttl) => Some(Clock::read(exchange, view.name()).await?.now() + ttl),
        None => None,
    };
    if building(view).is_some() {
        return Err(RedisRebuildError::Running { name: printable(view.name()) });
    }
    let id = record.id;
    let mut metadata = Metadata::clone(&view.metadata);
    metadata.generations.push(record.clone());
    create(exchange, view, record, expires_at).await?;
    let is_done = |metadata: &Metadata| metadata.names(id);
    if let Published::Refused(error) = publish(exchange, view, metadata, is_done).await? {
        delete(exchange, view, record.clone()).await?;
        let running = || RedisRebuildError::Running { name: printable(view.name()) };
        return Err(error.map_or_else(running, RedisRebuildError::Redis));
    }
    mark(exchange, view, 0, Flag::HasNext).await.map_err(Into::into)
}

/// Replaces the current generation by the generation `own`, which this client built, and deletes
/// the replaced generation.
pub(crate) async fn swap<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    own: u32,
) -> Result<(), RedisRebuildError> {
    read(exchange, view).await?;
    let is_own = |&new: &usize| view.metadata.generations[new].id == own;
    let Some(new) = building(view).filter(is_own) else {
        return Err(RedisRebuildError::NotRunning { name: printable(view.name()) });
    };
    // After this step, a client with the old view of the filter reads the metadata again.
    mark(exchange, view, 0, Flag::Retired).await?;
    let old = view.metadata.generations[0].clone();
    let current =
        GenerationRecord { role: Role::Current, ..view.metadata.generations[new].clone() };
    let metadata = Metadata { generations: vec![current], ..Metadata::clone(&view.metadata) };
    let is_done = |metadata: &Metadata| {
        metadata.generations.iter().any(|record| record.id == own && record.role == Role::Current)
    };
    if let Published::Refused(error) = publish(exchange, view, metadata, is_done).await? {
        let ended = || RedisRebuildError::NotRunning { name: printable(view.name()) };
        return Err(error.map_or_else(ended, RedisRebuildError::Redis));
    }
    delete(exchange, view, old).await?;
    Ok(())
}

/// Deletes the generation that is being built. If `own` is given, deletes only the generation with
/// this identifier.
pub(crate) async fn abort<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    own: Option<u32>,
) -> Result<(), RedisRebuildError> {
    read(exchange, view).await?;
    let is_meant = |&new: &usize| own.is_none_or(|own| view.metadata.generations[new].id == own);
    let Some(new) = building(view).filter(is_meant) else { return Ok(()) };
    // After this step, a client with the old view of the filter reads the metadata again.
    mark(exchange, view, new, Flag::Retired).await?;
    let mut metadata = Metadata::clone(&view.metadata);
    let record = metadata.generations.remove(new);
    let is_done = |metadata: &Metadata| !metadata.names(record.id);
    match publish(exchange, view, metadata, is_done).await? {
        Published::Done => delete(exchange, view, record).await?,
        Published::Refused(Some(error)) => return Err(error.into()),
        // The client that started the rebuild has already ended the rebuild, so no generation is
        // left to delete.
        Published::Refused(None) => {}
    }
    // The flags of the current generation stay, because another rebuild may already need the flags.
    Ok(())
}

/// Deletes a generation that a client began to build, unless the generation is in use.
pub(crate) async fn discard<X: Exchange>(
    exchange: &mut X,
    name: &[u8],
    record: &GenerationRecord,
) -> Result<(), RedisItemError> {
    let get = NodeRequest::new("GET", name.to_vec());
    let reply = exchange.exchange(vec![get]).await.remove(0);
    let metadata = match bytes(name, reply) {
        Ok(text) => text.and_then(|text| Metadata::decode(&text).ok()),
        Err(RedisItemError::WrongType { .. }) => None,
        Err(error) => return Err(error),
    };
    match metadata.filter(|metadata| metadata.names(record.id)) {
        Some(metadata) => {
            let mut view = View::new(name, metadata).expect("the name was checked");
            match abort(exchange, &mut view, Some(record.id)).await {
                Err(RedisRebuildError::Redis(error)) => Err(error),
                _ => Ok(()),
            }
        }
        None => {
            let generation =
                GenerationView::new(name, record.clone()).expect("the name was checked");
            unlink(exchange, &generation).await
        }
    }
}

/// Adds the slice of the present time to a window, unless another client has already added this
/// slice. Of the operations of this client, only one at a time adds a slice, because each attempt
/// creates all shards of the slice.
pub(crate) async fn add_slice<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    now: u64,
) -> Result<(), RedisItemError> {
    for _ in 0..MAX_ATTEMPTS {
        let mut own = view.latest();
        view.add_slice_once(try_add_slice(exchange, &mut own, now)).await?;
        if view.missing_slice(now).is_none() {
            return Ok(());
        }
    }
    Err(RedisItemError::Unsettled)
}

/// Tries once to add the slice of the present time. The attempt fails without an error if another
/// client changes the metadata.
async fn try_add_slice<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    now: u64,
) -> Result<(), RedisItemError> {
    read(exchange, view).await?;
    let Some((number, expires_at)) = view.missing_slice(now) else { return Ok(()) };
    let newest = view.metadata.generations.len() - 1;
    let last = view.metadata.generations[newest].clone();
    let record = GenerationRecord { id: random_id(), role: Role::Slice(number), ..last };
    let mut metadata = Metadata::clone(&view.metadata);
    metadata.generations.retain(|old| !view.is_expired(old, now));
    metadata.generations.push(record.clone());
    create(exchange, view, &record, Some(expires_at)).await?;
    // A slice whose keys have expired needs no flag. A client with an old view reads the
    // metadata when the newest slice of the view is over.
    mark(exchange, view, newest, Flag::HasNext).await?;
    let is_done = |metadata: &Metadata| metadata.names(record.id);
    let Published::Refused(error) = publish(exchange, view, metadata, is_done).await? else {
        return Ok(());
    };
    delete(exchange, view, record).await?;
    error.map_or(Ok(()), Err)
}

/// Sets or removes the expiry of all keys of the filter.
pub(crate) async fn expire_at<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    millis: Option<u64>,
) -> Result<(), RedisItemError> {
    read(exchange, view).await?;
    let all = 0..view.generations.len();
    sweep(exchange, view, Visit::Expire(millis), all).await?;
    // The metadata gets the expiry after all shards.
    send_all(exchange, vec![expiry(view.name().to_vec(), millis)]).await.map(|_| ())
}

/// Deletes all keys of the filter.
pub(crate) async fn delete_filter<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
) -> Result<(), RedisItemError> {
    match read(exchange, view).await {
        // The metadata is missing, but the shards of the view may still exist.
        Ok(_) | Err(RedisItemError::NoFilter { .. }) => {}
        Err(error) => return Err(error),
    }
    for generation in &*view.generations {
        unlink(exchange, generation).await?;
    }
    // The metadata is deleted last, because a client needs the metadata to repeat the deletion.
    let metadata = NodeRequest::new("UNLINK", view.name().to_vec());
    send_all(exchange, vec![metadata]).await.map(|_| ())
}

/// Returns the index of the generation that is being built.
fn building(view: &View) -> Option<usize> {
    view.metadata.generations.iter().position(|record| record.role == Role::Building)
}

/// Reads the metadata again. Returns the time to live of the metadata in milliseconds.
pub(crate) async fn read<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
) -> Result<Option<u64>, RedisItemError> {
    let name = view.name().to_vec();
    let requests =
        vec![NodeRequest::new("GET", name.clone()), NodeRequest::new("PTTL", name.clone())];
    let mut replies = exchange.exchange(requests).await.into_iter();
    let mut next = || replies.next().expect("one reply for each request");
    view.update(bytes(&name, next())?.as_deref())?;
    Ok(u64::try_from(integer(&name, next())?).ok())
}

async fn create<X: Exchange>(
    exchange: &mut X,
    view: &View,
    record: &GenerationRecord,
    expires_at: Option<u64>,
) -> Result<(), RedisItemError> {
    let generation =
        GenerationView::new(view.name(), record.clone()).expect("the name was checked");
    create_shards(exchange, &generation, expires_at).await
}

/// Replaces the metadata. `is_done` tests whether metadata contains the change. `is_done` is
/// necessary because the reply to a successful attempt may be lost, and another client may change
/// the metadata again before this client reads the metadata.
///
/// Returns an error if the client cannot read the metadata. If the client cannot read the metadata,
/// the client must not delete any shard.
async fn publish<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    metadata: Metadata,
    is_done: impl Fn(&Metadata) -> bool,
) -> Result<Published, RedisItemError> {
    let name = view.name().to_vec();
    let text = metadata.encode();
    let mut request = NodeRequest::script(REPLACE, std::slice::from_ref(&name));
    request.command.arg(view.metadata.encode()).arg(&text);
    let reply = exchange.exchange(vec![request]).await.remove(0);
    let error = match integer(&name, reply) {
        Ok(1) => {
            view.update(Some(text.as_bytes()))?;
            return Ok(Published::Done);
        }
        Ok(_) => None,
        Err(error) => Some(error),
    };
    match read(exchange, view).await {
        Ok(_) if is_done(&view.metadata) => Ok(Published::Done),
        Ok(_) => Ok(Published::Refused(error)),
        Err(gone @ (RedisItemError::NoFilter { .. } | RedisItemError::Replaced { .. })) => {
            Ok(Published::Refused(Some(gone)))
        }
        Err(unknown) => Err(error.unwrap_or(unknown)),
    }
}

/// Sets a flag in all shards of a generation. Shards that are missing stay missing.
async fn mark<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    generation: usize,
    flag: Flag,
) -> Result<(), RedisItemError> {
    let visited = sweep(exchange, view, Visit::Mark(flag), [generation]).await?;
    let created = visited
        .iter()
        .filter(|visited| visited.items.is_none())
        .map(|visited| view.generations[visited.generation].key(visited.shard, visited.layer))
        .map(remove_remains)
        .collect();
    send_all(exchange, created).await.map(|_| ())
}

/// Deletes the shards of a generation. The metadata must not contain the deleted generation.
async fn delete<X: Exchange>(
    exchange: &mut X,
    view: &View,
    record: GenerationRecord,
) -> Result<(), RedisItemError> {
    unlink(exchange, &GenerationView::new(view.name(), record).expect("the name was checked")).await
}
