//! A value during a change.

use std::sync::atomic::Ordering;

use parking_lot::RwLockWriteGuard;
use tamis_commands::Value;
use triomphe::Arc;

use crate::keyspace::Keyspace;
use crate::keyspace::cell::{Cell, State};

/// The exclusive right to change a value. At its end the effects on memory and counts are recorded,
/// and a key without a value is removed. This also happens if the change panics, so that no key
/// without a value remains.
pub(super) struct Writing<'k> {
    keyspace: &'k Keyspace,
    cell: &'k Arc<Cell>,
    // Invariant: `Some` until the drop.
    state: Option<RwLockWriteGuard<'k, State>>,
    bytes_before: u64,
    had_time: bool,
}

impl<'k> Writing<'k> {
    /// Waits for the lock of the value; `None` if the cell was removed meanwhile.
    pub fn begin(keyspace: &'k Keyspace, cell: &'k Arc<Cell>) -> Option<Self> {
        let state = cell.state.write();
        if state.is_removed() {
            return None;
        }
        let (bytes_before, had_time) = (heap_bytes(&state), state.has_time());
        Some(Self { keyspace, cell, state: Some(state), bytes_before, had_time })
    }

    pub fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("there until the end")
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut state = self.state.take().expect("there until the end");
        if std::thread::panicking() {
            // A client that watches the key must see that it has changed.
            self.keyspace.note_change(self.cell);
        }
        self.keyspace.count_bytes(heap_bytes(&state) as i64 - self.bytes_before as i64);
        match (self.had_time, state.has_time()) {
            (false, true) => _ = self.keyspace.expiring.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.keyspace.expiring.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        if state.value.is_none() {
            state.mark_removed();
            // Unlocks the cell first: the lock of a shard is always taken before that of a cell.
            drop(state);
            self.keyspace.remove_cell(self.cell);
        }
    }
}

fn heap_bytes(state: &State) -> u64 {
    state.value.as_ref().map_or(0, Value::heap_bytes)
}
