//! Reserves places in the hash tables of the keyspace for the new keys of a transaction.

use std::sync::Arc;

use tamis_commands::Flag;

use crate::session::exec::prepared::{Prepared, TURN_COMMANDS};
use crate::shared_state::SharedState;

/// Reserves places in the hash tables for the new keys of a long transaction before the keys are
/// locked, and yields to other connections. Without reserved places, a table could grow while the
/// keys are locked, and the growth moves all keys of the table.
pub(super) async fn reserve_places(
    server: &Arc<SharedState>,
    prepared: &Prepared<'_>,
) -> Option<ReservedPlaces> {
    if prepared.commands.len() <= TURN_COMMANDS {
        return None;
    }
    let mut hashes = Vec::new();
    for (i, (command, argv)) in prepared.iter().enumerate() {
        if command.has(Flag::DenyOom) && command.keys.first != 0 {
            hashes.extend(server.keyspace.hash_of_new(argv[command.keys.first]));
        }
        if (i + 1).is_multiple_of(TURN_COMMANDS) {
            tokio::task::yield_now().await;
        }
    }
    if hashes.len() <= TURN_COMMANDS {
        return None;
    }
    let places = ReservedPlaces(server.clone());
    let server = server.clone();
    let reserving = move || server.keyspace.reserve(hashes, server.memory_left());
    tokio::task::spawn_blocking(reserving).await.ok()?;
    Some(places)
}

/// Reserved places in the hash tables for new keys. Dropping a `ReservedPlaces` releases the unused
/// places. When a `ReservedPlaces` is dropped, the caller must not hold the lock of the keys.
pub(super) struct ReservedPlaces(Arc<SharedState>);

impl Drop for ReservedPlaces {
    fn drop(&mut self) {
        let server = self.0.clone();
        tokio::task::spawn_blocking(move || server.keyspace.shrink());
    }
}
