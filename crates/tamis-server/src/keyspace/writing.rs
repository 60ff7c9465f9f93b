//! Changes a value under an exclusive lock.

use std::sync::atomic::Ordering;

use parking_lot::RwLockWriteGuard;
use tamis_commands::Value;
use triomphe::Arc;

use crate::keyspace::cell::{Cell, CellState};
use crate::keyspace::shards::Keyspace;

/// The exclusive right to change a value. The drop of the guard records the new memory and counts,
/// and removes the key if the value was removed. Because the drop runs even if the change panics,
/// no key without a value remains.
struct WriteGuard<'k> {
    keyspace: &'k Keyspace,
    cell: &'k Arc<Cell>,
    // Invariant: `state` is `Some` until the drop of the guard.
    state: Option<RwLockWriteGuard<'k, CellState>>,
    bytes_before: u64,
    had_time: bool,
}

impl<'k> WriteGuard<'k> {
    /// Waits for the lock of the value. Returns `None` if the cell was removed before the lock was
    /// free.
    fn begin(keyspace: &'k Keyspace, cell: &'k Arc<Cell>) -> Option<Self> {
        let state = cell.state.write();
        if state.is_removed() {
            return None;
        }
        let (bytes_before, had_time) = (heap_bytes(&state), state.has_time());
        Some(Self { keyspace, cell, state: Some(state), bytes_before, had_time })
    }

    fn state(&mut self) -> &mut CellState {
        self.state.as_mut().expect("there until the end")
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.state.take().expect("there until the end");
        if std::thread::panicking() {
            // A client that watches the key must see the change.
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
            // Unlock the cell before locking the shard, because a thread always locks a shard
            // before a cell.
            drop(state);
            self.keyspace.remove_cell(self.cell);
        }
    }
}

impl Keyspace {
    /// Runs a function that replaces, moves or removes the stored value of a key and its expiry
    /// time, under an exclusive lock. Removes the key if the function removes the value.
    pub(super) fn write<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> R,
    ) -> R {
        self.write_kept(key, now_millis, |value, expires| (run(value, expires), true))
    }

    /// Runs a function on the value of a key and its expiry time, under an exclusive lock. A value
    /// that is stored as [`Value::Empty`] is built before the function runs. `run` returns its
    /// result and whether `run` has changed the value or the expiry time. Removes the key if `run`
    /// removes the value.
    pub(super) fn write_if<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> (R, bool),
    ) -> R {
        self.write_kept(key, now_millis, |value, expires| {
            let empty = value.as_mut().and_then(Value::build);
            let (result, has_changed) = run(value, expires);
            if empty.is_some() && !has_changed {
                *value = empty;
            }
            (result, has_changed)
        })
    }

    /// Runs a function on the stored value of a key and its expiry time, under an exclusive lock.
    /// `run` returns its result and whether `run` has changed the value or the expiry time.
    fn write_kept<R>(
        &self,
        key: &[u8],
        now_millis: u64,
        run: impl FnOnce(&mut Option<Value>, &mut Option<u64>) -> (R, bool),
    ) -> R {
        loop {
            let cell = self.cell_or_new(key);
            let Some(mut guard) = WriteGuard::begin(self, &cell) else { continue };
            if guard.state().is_expired(now_millis) {
                *guard.state() = CellState::default();
                if let Some(expired) = self.expired.get() {
                    (expired.0)(key);
                }
            }
            let state = guard.state();
            let mut expires_millis = state.expires_millis();
            let (result, has_changed) = run(&mut state.value, &mut expires_millis);
            state.set_expires_millis(expires_millis);
            if has_changed {
                self.note_change(&cell);
            }
            return result;
        }
    }
}

fn heap_bytes(state: &CellState) -> u64 {
    state.value.as_ref().map_or(0, Value::heap_bytes)
}
