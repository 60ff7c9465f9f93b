//! Writes snapshots on a background thread.

use std::sync::Arc;

use crate::shared_state::SharedState;

/// Starts a snapshot in the background. Returns false if a snapshot is already being written.
pub(crate) fn save_in_background(shared: &Arc<SharedState>) -> bool {
    let Some(durable) = &shared.durable else { return false };
    if durable.is_saving() {
        return false;
    }
    let shared = shared.clone();
    let thread = std::thread::Builder::new().name("tamis-save".to_owned());
    let spawned = thread.spawn(move || {
        let durable = shared.durable.as_ref().expect("just seen");
        let save = || durable.save(&shared.keyspace);
        match shared.stats.saves.watch(shared.keyspace.changes(), save) {
            Ok(()) => tracing::info!("a snapshot was saved"),
            Err(error) => tracing::error!(%error, "the snapshot failed; the logs were kept"),
        }
    });
    spawned.is_ok()
}

/// Starts a snapshot if the log has grown to twice the size of the last snapshot.
pub(crate) fn save_if_due(shared: &Arc<SharedState>) {
    let Some(durable) = &shared.durable else { return };
    let least = shared.config().rewrite_bytes;
    let twice = durable.snapshot_bytes().saturating_mul(2);
    if least > 0 && durable.log_bytes() > least.max(twice) && durable.log.failure().is_none() {
        save_in_background(shared);
    }
}
