//! Runs batches of inserts and lookups on filters. If a filter is a window, each insert goes to the
//! slice of the present time.

use crate::clock::Clock;
use crate::error::RedisItemError;
use crate::layouts::view::{Kind, View};
use crate::operations::batch::Batch;
use crate::operations::generations::add_slice;
use crate::transport::exchange::Exchange;

/// The largest number of attempts to run a batch. A batch runs again if a slice ended during the
/// attempt.
const MAX_ATTEMPTS: u32 = 8;

/// Inserts or looks up a batch of items. The results are in the order of the items.
///
/// The batch runs again if a slice of a window ended during the batch. Without the second run, an
/// item in the ended slice would expire too early.
pub(crate) async fn batch<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    kind: Kind,
    hashes: &[u64],
) -> Vec<Result<bool, RedisItemError>> {
    let mut results = vec![Ok(false); hashes.len()];
    for _ in 0..MAX_ATTEMPTS {
        let now = match now(exchange, view, kind).await {
            Ok(now) => now,
            Err(error) => return vec![Err(error); hashes.len()],
        };
        let before = results;
        results = Batch::new(view, kind, hashes, now).run(exchange).await;
        for (result, before) in results.iter_mut().zip(before) {
            // If the previous attempt inserted the item as new, the result stays true.
            if kind != Kind::Lookup && *result == Ok(false) {
                *result = before.or(Ok(false));
            }
        }
        let is_over = |clock: Clock| view.slice_at(clock.now()) > view.slice_at(now);
        if !view.clock.is_some_and(is_over) {
            return results;
        }
    }
    vec![Err(RedisItemError::Unsettled); hashes.len()]
}

/// Returns the time of the server in milliseconds. Returns zero if the filter is no window. Before
/// an insert, adds the slice of the present time if the slice is missing.
async fn now<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
    kind: Kind,
) -> Result<u64, RedisItemError> {
    let now = match view.clock {
        Some(clock) => clock.now(),
        None => read_clock(exchange, view).await?,
    };
    if kind == Kind::Insert && view.missing_slice(now).is_some() {
        add_slice(exchange, view, now).await?;
    }
    Ok(now)
}

/// Reads the time of the server in milliseconds. Returns zero if the filter is no window.
pub(crate) async fn read_clock<X: Exchange>(
    exchange: &mut X,
    view: &mut View,
) -> Result<u64, RedisItemError> {
    if view.metadata.window.is_none() {
        return Ok(0);
    }
    let clock = Clock::read(exchange, view.name()).await?;
    view.learn_clock(clock);
    Ok(clock.now())
}
