//! Creates and opens filters.
//!
//! A client first creates the shards of a filter, and then the metadata with `SET NX`. If several
//! clients create the same filter, only the first client therefore succeeds. If a client can read
//! the metadata, all shards of the filter exist. The keys of the shards contain a random generation
//! number, so two clients never write to the same shards.

use redis::Value;

use crate::clock::Clock;
use crate::error::{Difference, RedisCreateError, RedisItemError, RedisOpenError, printable};
use crate::layouts::metadata::Metadata;
use crate::layouts::view::View;
use crate::operations::create_shards::create_shards;
use crate::operations::sweep::unlink;
use crate::plan::RedisPlan;
use crate::transport::exchange::Exchange;
use crate::transport::request::{NodeRequest, bytes, value};

/// Creates the shards of a new filter. Other clients do not see the filter until [`publish`] is
/// called. After an error, deletes the shards that were created.
pub(crate) async fn prepare<X: Exchange>(
    exchange: &mut X,
    view: &View,
) -> Result<(), RedisCreateError> {
    let name = view.name().to_vec();
    let request = NodeRequest::new("EXISTS", name.clone());
    let reply = exchange.exchange(vec![request]).await.remove(0);
    if value(&name, reply)? != Value::Int(0) {
        return Err(exists(&name));
    }
    let generation = &view.generations[0];
    let expires_at = view.slice_expiry(&generation.record);
    Ok(create_shards(exchange, generation, expires_at).await?)
}

/// Writes the metadata of a new filter, so that other clients see the filter. Deletes the shards if
/// the server has certainly not written the metadata.
pub(crate) async fn publish<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
) -> Result<(), RedisCreateError> {
    let name = view.name().to_vec();
    let mut request = NodeRequest::new("SET", name.clone());
    request.command.arg(view.metadata.encode()).arg("NX");
    let reply = exchange.exchange(vec![request]).await.remove(0);
    let error = match value(&name, reply) {
        // The transport may have sent the command twice. If the key exists, this client may
        // therefore have written the key.
        Ok(Value::Nil) => None,
        Ok(_) => return Ok(()),
        // The server may have executed the command before the error.
        Err(error) => Some(error),
    };
    let get = NodeRequest::new("GET", name.clone());
    let reply = exchange.exchange(vec![get]).await.remove(0);
    let refused = match bytes(&name, reply) {
        Ok(Some(text)) => match Metadata::decode(&text) {
            Ok(metadata) if metadata.names(view.metadata.generations[0].id) => {
                view.update(Some(&text))?;
                return Ok(());
            }
            _ => exists(&name),
        },
        Ok(None) => error.map_or_else(|| exists(&name), RedisCreateError::Redis),
        Err(RedisItemError::WrongType { .. }) => exists(&name),
        // The metadata may contain the new generation, so the shards stay.
        Err(unknown) => return Err(error.unwrap_or(unknown).into()),
    };
    unlink(exchange, &view.generations[0]).await.ok();
    Err(refused)
}

fn exists(name: &[u8]) -> RedisCreateError {
    RedisCreateError::Exists { name: printable(name) }
}

/// Opens a filter.
pub(crate) async fn open<X: Exchange>(
    exchange: &mut X,
    name: &[u8],
) -> Result<View, RedisOpenError> {
    let request = NodeRequest::new("GET", name.to_vec());
    let reply = exchange.exchange(vec![request]).await.remove(0);
    let text = bytes(name, reply)?;
    let text = text.ok_or_else(|| RedisOpenError::NotFound { name: printable(name) })?;
    let metadata = Metadata::decode(&text)
        .map_err(|source| RedisOpenError::Metadata { name: printable(name), source })?;
    Ok(View::new(name, metadata)?)
}

/// Creates a filter. The first slice of a window is the slice of the present time.
pub(crate) async fn create<X: Exchange>(
    exchange: &mut X,
    name: &[u8],
    plan: &RedisPlan,
) -> Result<View, RedisCreateError> {
    let now = match plan.window_span() {
        Some(_) => Clock::read(exchange, name).await?.now(),
        None => 0,
    };
    let mut view = View::new(name, Metadata::new(plan, now))?;
    prepare(exchange, &view).await?;
    publish(exchange, &mut view).await?;
    Ok(view)
}

/// Opens a filter, or creates a missing filter. Returns an error if the filter differs from the
/// plan.
pub(crate) async fn open_or_create<X: Exchange>(
    exchange: &mut X,
    name: &[u8],
    plan: &RedisPlan,
) -> Result<View, RedisOpenError> {
    let view = match open(exchange, name).await {
        Err(RedisOpenError::NotFound { .. }) => match create(exchange, name, plan).await {
            Ok(view) => view,
            // Another client has created the filter after this client tried to open the filter.
            Err(RedisCreateError::Exists { .. }) => open(exchange, name).await?,
            Err(RedisCreateError::Name(error)) => return Err(error.into()),
            Err(RedisCreateError::Redis(error)) => return Err(error.into()),
        },
        opened => opened?,
    };
    RedisOpenError::check(name, differences(plan, &view))?;
    Ok(view)
}

/// Returns the parameters in which a filter differs from a plan.
pub(crate) fn differences(plan: &RedisPlan, view: &View) -> Vec<Difference> {
    let found = view.metadata.plan();
    Difference::all([
        Difference::of("items", &plan.items(), &found.items()),
        Difference::of("rate", &plan.rate(), &found.rate()),
        Difference::of("growth", &plan.growth(), &found.growth()),
        Difference::of("hash", &plan.hash_function(), &found.hash_function()),
        Difference::of("shards", &plan.shards(), &found.shards()),
        Difference::of("window", &plan.window_span(), &found.window_span()),
    ])
}
