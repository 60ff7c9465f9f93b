//! Locks a mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. No code of this crate waits for a server while it holds a lock. The data stays
/// valid if a thread panics under the lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
