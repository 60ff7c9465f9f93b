//! Places in the tables of the keyspace for the new keys of a transaction.

use std::sync::Arc;

use tamis_commands::Flag;

use super::prepared::{Prepared, TURN_COMMANDS};
use crate::server::SharedState;

/// Makes places for the new keys of a long transaction before the keys are locked, with others in between: a table that
/// grows moves all its keys.
pub(super) async fn reserve_places(
    server: &Arc<SharedState>,
    prepared: &Prepared<'_>,
) -> Option<Places> {
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
    let places = Places(server.clone());
    let server = server.clone();
    let reserving = move || server.keyspace.reserve(hashes, server.memory_left());
    tokio::task::spawn_blocking(reserving).await.ok()?;
    Some(places)
}

/// Places that were made for new keys. Those that are not used are given back when this is dropped, which must not be while
/// the keys are locked.
pub(super) struct Places(Arc<SharedState>);

impl Drop for Places {
    fn drop(&mut self) {
        let server = self.0.clone();
        tokio::task::spawn_blocking(move || server.keyspace.shrink());
    }
}
