//! Decodes the data of a transaction before the keys are locked.

use std::collections::HashSet;

use tamis_commands::{Argv, Command, Env};

use crate::session::Call;
use crate::session::decoding::{Decoded, decode, refuses_data};
use crate::session::exec::prepared::{Prepared, TURN_COMMANDS};
use crate::session::write_keys::restore::NotDecoded;
use crate::shared_state::SharedState;
use crate::system::clock::now_millis;
use crate::system::held_memory::Hold;

/// The maximum total size of values that a transaction decodes before the transaction locks the
/// keys, in bytes. The encoded data of a transaction has this limit too, but compressed data may
/// decode to more bytes than the encoded data has. If the decoded values reach the limit, the
/// remaining commands decode their data themselves.
pub(super) const MAX_DECODED_BYTES: u64 = 512 << 20;

/// Decodes the data of commands before the keys are locked, and yields to other connections. Stops
/// when the decoded values take `max_bytes` bytes. Returns each value with the index of its
/// command.
///
/// A command decodes its own data when the command runs, if the server would reject the command
/// before the lock or has not enough memory before the lock. Before the command runs, an earlier
/// command of the transaction may free memory.
pub(super) async fn decode_each(
    server: &SharedState,
    prepared: &Prepared<'_>,
    env: &Env<'_>,
    max_bytes: u64,
) -> Vec<(usize, Result<Decoded, NotDecoded>)> {
    let mut all = Vec::new();
    if !prepared.iter().any(|(command, argv)| command.data(argv).is_some()) {
        return all;
    }
    let mut left_bytes = max_bytes;
    let mut changed = Changed::new(server.held.hold(0));
    for (i, (command, argv)) in prepared.iter().enumerate() {
        if (i + 1).is_multiple_of(TURN_COMMANDS) {
            tokio::task::yield_now().await;
        }
        if command.data(argv).is_some() {
            let call = Call { command, argv, env: *env };
            // If an earlier command of the transaction may change the key, only the run of the
            // command can show whether the command is refused.
            if !changed.has(command, argv) && refuses_data(server, call.at(now_millis())) {
                continue;
            }
            let decoded = decode(server, call).await.expect("it has data");
            if let Ok(decoded) = &decoded {
                left_bytes = left_bytes.saturating_sub(decoded.bytes());
            }
            if !matches!(decoded, Err(NotDecoded::Memory)) {
                all.push((i, decoded));
            }
            if left_bytes == 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
        changed.note(command, argv);
    }
    all
}

/// The keys that the earlier commands of a transaction may change.
struct Changed<'t> {
    keys: HashSet<&'t [u8]>,
    are_all: bool,
    held: Hold,
}

impl<'t> Changed<'t> {
    /// Creates an empty set of keys. `held` counts the memory of the added keys.
    fn new(held: Hold) -> Self {
        Self { keys: HashSet::new(), are_all: false, held }
    }

    fn note(&mut self, command: &Command, argv: Argv<'t>) {
        if !command.may_change() {
            return;
        }
        match command.keys.first {
            0 => self.are_all = true,
            _ => self.keys.extend(command.keys.of(argv)),
        }
        self.held.set((self.keys.capacity() * size_of::<&[u8]>()) as u64);
    }

    fn has(&self, command: &Command, argv: Argv<'_>) -> bool {
        self.are_all || command.keys.of(argv).any(|key| self.keys.contains(key))
    }
}
