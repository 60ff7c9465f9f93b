//! The atomics in use: the standard library's, or the model checker's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Waits until another thread stores zero, without taking the line from it as another exchange would.
#[cfg(not(loom))]
pub(crate) fn wait_for_zero(flag: &AtomicU8) {
    while flag.load(Ordering::Relaxed) != 0 {
        std::hint::spin_loop();
    }
}

/// Lets another thread run. The model checker may show an old value to a plain load for ever; the
/// caller's next exchange sees the newest.
#[cfg(loom)]
pub(crate) fn wait_for_zero(_: &AtomicU8) {
    loom::thread::yield_now();
}
