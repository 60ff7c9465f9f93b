//! Memory that no key has: commands that are arriving, transactions that wait for `EXEC`, watched keys, copies and dumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sum of all that is held, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldMemory(Arc<AtomicU64>);

impl HeldMemory {
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts so many bytes until the answer is dropped.
    pub fn hold(&self, bytes: u64) -> Hold {
        let mut hold = Hold { sum: self.clone(), bytes: 0 };
        hold.add(bytes);
        hold
    }
}

/// Memory that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    sum: HeldMemory,
    bytes: u64,
}

impl Hold {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts more.
    pub fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.sum.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Hold {
    /// Counts this many bytes from now on.
    pub fn set(&mut self, bytes: u64) {
        if bytes != self.bytes {
            self.sum.0.fetch_add(bytes, Ordering::Relaxed);
            self.sum.0.fetch_sub(self.bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.sum.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted_until_it_is_dropped() {
        let held = HeldMemory::default();
        let mut one = held.hold(10);
        let two = held.hold(5);
        one.add(100);
        assert_eq!((held.bytes(), one.bytes()), (115, 110));
        one.set(20);
        assert_eq!((held.bytes(), one.bytes()), (25, 20));
        drop(one);
        assert_eq!(held.bytes(), 5);
        drop(two);
        assert_eq!(held.bytes(), 0);
    }
}
