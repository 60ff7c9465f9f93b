//! Counts memory that belongs to no key: incomplete commands, queued transactions, watched keys,
//! unread replies, copies and dumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sum of all held memory, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldMemory(Arc<AtomicU64>);

impl HeldMemory {
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts `bytes` bytes until the returned `Hold` is dropped. Returns `None` if the sum of all
    /// held memory would exceed `max_bytes`.
    ///
    /// The comparison and the addition are one atomic step, so concurrent calls cannot exceed
    /// `max_bytes` together.
    pub fn try_hold(&self, bytes: u64, max_bytes: u64) -> Option<Hold> {
        let add = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= max_bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Hold { sum: self.clone(), bytes })
    }

    /// Counts `bytes` bytes until the returned `Hold` is dropped.
    pub fn hold(&self, bytes: u64) -> Hold {
        let mut hold = Hold { sum: self.clone(), bytes: 0 };
        hold.add(bytes);
        hold
    }
}

/// A number of bytes that is counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    sum: HeldMemory,
    bytes: u64,
}

impl Hold {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds `bytes` to the counted number of bytes.
    pub fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.sum.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts `bytes` from the counted number of bytes.
    pub fn sub(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.sum.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Replaces the counted number of bytes by `bytes`.
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
    fn held_memory_is_counted_until_the_hold_is_dropped() {
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

    #[test]
    fn memory_is_held_up_to_a_limit() {
        let held = HeldMemory::default();
        let one = held.try_hold(60, 100).unwrap();
        assert!(held.try_hold(41, 100).is_none() && held.try_hold(u64::MAX, u64::MAX).is_none());
        assert_eq!((held.bytes(), one.bytes()), (60, 60));
        drop(held.try_hold(40, 100).unwrap());
        drop(one);
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn concurrent_holds_succeed_as_long_as_they_fit() {
        const ROUNDS: usize = 500;
        let (held, barrier) = (HeldMemory::default(), std::sync::Barrier::new(3));
        let held_by_one = || {
            let hold = || {
                barrier.wait();
                let hold = held.try_hold(40, 100);
                barrier.wait();
                usize::from(hold.is_some())
            };
            (0..ROUNDS).map(|_| hold()).sum::<usize>()
        };
        let successes: usize = std::thread::scope(|threads| {
            let threads = [(); 3].map(|()| threads.spawn(held_by_one));
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        });
        assert_eq!(successes, 2 * ROUNDS);
    }
}
