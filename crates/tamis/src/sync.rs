//! The atomics in use: the standard library's, or the model checker's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Waits until another thread stores zero, without taking the line from it as another exchange would.
#[cfg(not(loom))]
pub(crate) fn wait_for_zero(flag: &AtomicU8) {
    let mut turns = 0;
    while flag.load(Ordering::Relaxed) != 0 {
        if turns < SPIN_TURNS {
            turns += 1;
            std::hint::spin_loop();
        } else {
            // Without threads of its own the program is on a system that this crate does not know.
            #[cfg(feature = "std")]
            std::thread::yield_now();
            #[cfg(not(feature = "std"))]
            std::hint::spin_loop();
        }
    }
}

/// Far longer than any holder works: one that still holds it waits for a processor, perhaps for this.
#[cfg(not(loom))]
const SPIN_TURNS: u32 = 256;

/// Lets another thread run. The model checker may show an old value to a plain load for ever; the
/// caller's next exchange sees the newest.
#[cfg(loom)]
pub(crate) fn wait_for_zero(_: &AtomicU8) {
    loom::thread::yield_now();
}
