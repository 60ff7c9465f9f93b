//! The atomic types of this crate: from the standard library, or from the model checker under
//! `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Waits until another thread stores zero. The loop only loads, because an exchange would take the
/// cache line from the other thread.
#[cfg(not(loom))]
pub(crate) fn wait_for_zero(flag: &AtomicU8) {
    let mut turns = 0;
    while flag.load(Ordering::Relaxed) != 0 {
        if turns < SPIN_TURNS {
            turns += 1;
            std::hint::spin_loop();
        } else {
            // Without the standard library, the crate cannot ask the system to run another thread.
            #[cfg(feature = "std")]
            std::thread::yield_now();
            #[cfg(not(feature = "std"))]
            std::hint::spin_loop();
        }
    }
}

/// The number of turns before a waiting thread yields. All turns together take far longer than a
/// thread usually holds a lock. If the lock is held after all turns, the thread that holds the lock
/// probably waits for a processor.
#[cfg(not(loom))]
const SPIN_TURNS: u32 = 256;

/// Lets another thread run. With the model checker, a plain load may return an old value forever.
/// The next exchange of the caller returns the newest value.
#[cfg(loom)]
pub(crate) fn wait_for_zero(_: &AtomicU8) {
    loom::thread::yield_now();
}
