//! The clock of the negative cache.

use std::time::Instant;

/// The time since the creation of a cache.
#[derive(Debug)]
pub(super) enum Clock {
    Real(Instant),
    /// The nanoseconds that a test has set.
    #[cfg(test)]
    Set(std::sync::atomic::AtomicU64),
}

impl Clock {
    /// Starts the clock of the machine.
    pub(super) fn start() -> Self {
        Self::Real(Instant::now())
    }

    /// Returns the time in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::Real(start) => super::nanos(start.elapsed()),
            // Relaxed: a test sets the clock and reads the clock in one thread.
            #[cfg(test)]
            Self::Set(now) => now.load(std::sync::atomic::Ordering::Relaxed),
        }
    }
}
