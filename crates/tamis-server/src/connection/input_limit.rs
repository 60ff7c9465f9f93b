//! Limits the memory of arriving commands under `maxmemory`.
//!
//! The server can reject a command only after all bytes of the command have arrived. Because an
//! incomplete command cannot be rejected, the server limits the total memory of all arriving
//! commands. If the arriving commands exceed the total limit, the server disconnects the client
//! with the longest arriving command, as Redis evicts clients.

use std::sync::atomic::Ordering;

use crate::shared_state::SharedState;

/// Arriving commands may always take one part in `SHARE` of `maxmemory`, even if the keys take all
/// of `maxmemory`. With this share, a short command gets the error `OOM`, and the connection stays
/// open.
const SHARE: u64 = 16;

/// The memory that arriving commands may always take, in bytes, even if `maxmemory` is less than
/// this number.
const LEAST_BYTES: u64 = 4 << 20;

impl SharedState {
    /// Disconnects clients until the arriving commands of all clients fit under `maxmemory`.
    /// Disconnects the client with the longest arriving command first.
    pub fn limit_inputs(&self) {
        let (used, max) = (self.used_memory(), self.max_memory());
        if max == 0 || used <= max {
            return;
        }
        let clients = self.clients.all();
        let bytes_of = |input: &std::sync::atomic::AtomicU64| input.load(Ordering::Relaxed);
        let all: u64 = clients.iter().map(|client| bytes_of(&client.input)).sum();
        let allowed =
            max.saturating_sub(used.saturating_sub(all)).max(max / SHARE).max(LEAST_BYTES);
        // The memory of an evicted client is freed when the connection of the client ends.
        let mut inputs: Vec<_> = clients
            .iter()
            .filter(|client| !client.is_evicted.load(Ordering::Relaxed))
            .map(|client| (bytes_of(&client.input), client))
            .collect();
        inputs.sort_unstable_by_key(|(bytes, client)| (*bytes, client.id));
        let mut sum: u64 = inputs.iter().map(|(bytes, _)| bytes).sum();
        while sum > allowed
            && let Some((bytes, client)) = inputs.pop()
        {
            sum -= bytes;
            if client.is_evicted.swap(true, Ordering::Relaxed) {
                continue;
            }
            client.end_request.send();
            self.stats.evicted_clients.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                peer = %client.peer,
                bytes,
                "a client was disconnected: the commands that are arriving exceed maxmemory, and \
                 its command is the longest"
            );
        }
    }
}
