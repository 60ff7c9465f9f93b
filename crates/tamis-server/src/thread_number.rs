//! A number for each thread, by which it takes its part of what all threads share.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the number of the thread that asks, which it keeps.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}
