//! Read leases: keys whose values are read for a long time, and the writers that wait for these
//! keys.

use tokio::sync::watch;

/// The keys whose values have a read lease.
///
/// A lease begins under exclusive access to the keys. A command with access to the keys sees the
/// lease before the command locks the value exclusively. A command that sees a lease can
/// [wait](Self::until_free) without blocking other commands. While a writer waits for a key, no new
/// lease of the key begins. If new leases began while a writer waits, overlapping readers could
/// block the writer forever.
#[derive(Debug, Default)]
pub(super) struct Leases(watch::Sender<Vec<LeasedKey>>);

// Invariant: the key has at least one reader or waiting writer.
#[derive(Debug)]
struct LeasedKey {
    name: Box<[u8]>,
    readers: usize,
    waiting: usize,
}

impl LeasedKey {
    fn is_affected(&self, is_affected: impl Fn(&[u8]) -> bool) -> bool {
        self.readers > 0 && is_affected(&self.name)
    }
}

impl Leases {
    /// Tests whether any key that `is_affected` accepts has a lease.
    pub fn is_leased(&self, is_affected: impl Fn(&[u8]) -> bool) -> bool {
        self.0.borrow().iter().any(|key| key.is_affected(&is_affected))
    }

    /// Tests whether a writer waits for a key. While a writer waits, no new lease of the key may
    /// begin.
    pub fn is_awaited(&self, name: &[u8]) -> bool {
        self.0.borrow().iter().any(|key| *key.name == *name && key.waiting > 0)
    }

    /// Begins a lease of a key. The lease ends when the returned `Lease` is dropped. Returns `None`
    /// if a writer waits for the key.
    pub fn begin(&self, name: &[u8]) -> Option<Lease<'_>> {
        let mut has_begun = true;
        self.0.send_modify(|keys| match keys.iter_mut().find(|key| *key.name == *name) {
            Some(key) if key.waiting > 0 => has_begun = false,
            Some(key) => key.readers += 1,
            None => keys.push(LeasedKey { name: name.into(), readers: 1, waiting: 0 }),
        });
        has_begun.then(|| Lease { leases: self, name: name.into() })
    }

    /// Creates a waiter that does not yet wait for any key.
    pub fn waiter(&self) -> Waiter<'_> {
        Waiter { leases: self, names: Vec::new() }
    }

    /// Decrements the number of readers or of waiting writers of a key. Removes the entry of the
    /// key if the key has no readers and no waiting writers.
    fn end(&self, name: &[u8], count: impl FnOnce(&mut LeasedKey)) {
        self.0.send_modify(|keys| {
            let at = keys.iter().position(|key| *key.name == *name).expect("the key is listed");
            count(&mut keys[at]);
            if keys[at].readers == 0 && keys[at].waiting == 0 {
                keys.swap_remove(at);
            }
        });
    }
}

/// A lease of a key. Dropping a `Lease` ends the lease.
#[derive(Debug)]
pub(super) struct Lease<'l> {
    leases: &'l Leases,
    name: Box<[u8]>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.leases.end(&self.name, |key| key.readers -= 1);
    }
}

/// A writer that waits for keys. Until the waiter is dropped, no new lease begins for a key that
/// the writer has waited for.
#[derive(Debug)]
pub(super) struct Waiter<'l> {
    leases: &'l Leases,
    names: Vec<Box<[u8]>>,
}

impl Waiter<'_> {
    /// Waits until no key that `is_affected` accepts has a lease. A key that had no lease at the
    /// time of the call may have a new lease when the method returns.
    pub async fn until_free(&mut self, is_affected: impl Fn(&[u8]) -> bool) {
        let mut changed = self.leases.0.subscribe();
        self.leases.0.send_if_modified(|keys| {
            for key in keys.iter_mut().filter(|key| key.is_affected(&is_affected)) {
                if !self.names.contains(&key.name) {
                    key.waiting += 1;
                    self.names.push(key.name.clone());
                }
            }
            // Return false, because no thread waits for a change of the number of waiting writers.
            false
        });
        _ = changed.wait_for(|keys| !keys.iter().any(|key| key.is_affected(&is_affected))).await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            self.leases.end(name, |key| key.waiting -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    use crate::keyspace::Keyspace;
    use crate::keyspace::tests::{expire, get, set, sweep};
    use crate::test_server;
    use tamis_testing::{SetOnDrop, receive, wait_until};

    #[test]
    fn a_leased_value_does_not_block_other_keys() {
        let keyspace = Keyspace::new();
        set(&keyspace.shared(), b"large", &"x".repeat(1 << 20));
        expire(&keyspace.shared(), b"large", 10);
        set(&keyspace.shared(), b"small", "x");
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            let keyspace = &keyspace;
            threads.spawn(move || {
                let mut entries = keyspace.listed_keys();
                let large = entries.find(|entry| entry.key() == b"large").unwrap();
                let len = large.read(
                    || true,
                    |_| (),
                    |value, _, ()| {
                        begun.send(()).unwrap();
                        receive("the end of the lease", &may_go_on);
                        value.memory_bytes()
                    },
                );
                assert!(len.unwrap() >= 1 << 20);
            });
            receive("the lease", &has_begun);
            // During the lease, other commands can read the leased value and can change other
            // values.
            assert!(get(&keyspace.shared(), b"large", 0).is_some());
            set(&keyspace.shared(), b"small", "y");
            drop(test_server::block_on(keyspace.shared_to_change(b"small")));
            drop(test_server::block_on(keyspace.exclusive_to_change(|key| key == b"small")));
            assert!(
                keyspace.shared().is_leased(b"large") && !keyspace.shared().is_leased(b"small")
            );
            expire(&keyspace.shared(), b"small", 10);
            let swept = [(); 2].map(|()| sweep(keyspace, 10));
            assert_eq!(swept, [1, 0], "the other stays for now");
            // A command that changes the leased key waits without access to the keys.
            test_server::block_on(async {
                let soon = Duration::from_millis(20);
                let change = keyspace.shared_to_change(b"large");
                assert!(tokio::time::timeout(soon, change).await.is_err());
                let change = keyspace.exclusive_to_change(|key| key == b"large");
                assert!(tokio::time::timeout(soon, change).await.is_err());
            });
            go_on.send(()).unwrap();
            let keys = test_server::block_on(keyspace.shared_to_change(b"large"));
            set(&keys, b"large", "z");
        });
        assert!(!keyspace.shared().is_leased(b"large"));
    }

    #[test]
    fn a_waiting_writer_runs_between_overlapping_readers() {
        let keyspace = Keyspace::new();
        set(&keyspace.shared(), b"large", "one");
        let (sampler, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        // Wait until the other reader has begun its lease, so that the two leases
                        // overlap. If no writer waits, the key always has a lease.
                        keyspace.lease(b"large", 0, |_| {
                            let round = sampler.fetch_add(1, Ordering::Relaxed);
                            let mut patience = 200;
                            while sampler.load(Ordering::Relaxed) == round + 1 && patience > 0 {
                                std::thread::sleep(Duration::from_millis(1));
                                patience -= 1;
                            }
                        });
                    }
                });
            }
            let _end = SetOnDrop(&is_done);
            let rounds = || sampler.load(Ordering::Relaxed);
            wait_until("the readers take leases", || rounds() >= 4);
            test_server::block_on(async {
                for text in ["two", "three"] {
                    set(&keyspace.shared_to_change(b"large").await, b"large", text);
                    drop(keyspace.exclusive_to_change(|_| true).await);
                }
                // A writer that stops waiting no longer counts as a waiting writer.
                let given_up = keyspace.shared_to_change(b"large");
                _ = tokio::time::timeout(Duration::ZERO, given_up).await;
            });
            let before = rounds();
            wait_until("the readers take leases again", || rounds() >= before + 4);
        });
        assert!(!keyspace.leases.is_awaited(b"large") && !keyspace.shared().is_leased(b"large"));
        assert_eq!(get(&keyspace.shared(), b"large", 0).as_deref(), Some("three"));
    }

    #[test]
    fn several_readers_lease_a_value_and_its_version_shows_a_change() {
        let keyspace = Keyspace::new();
        set(&keyspace.shared(), b"large", "one");
        let version = keyspace.shared().version(b"large", 0);
        assert!(keyspace.lease(b"none", 0, |_| ()).is_none());
        let result = keyspace.lease(b"large", 0, |_| {
            // A second reader, such as a snapshot, begins a second lease during this lease.
            let (has_two, other) = keyspace
                .lease(b"large", 0, |_| keyspace.shared().is_leased(b"large"))
                .expect("there is a value");
            assert!(has_two && other == version);
            // The end of one lease does not end the other lease.
            keyspace.shared().is_leased(b"large")
        });
        assert_eq!(result, Some((true, version)));
        assert!(!keyspace.shared().is_leased(b"large"));
        set(&keyspace.shared(), b"large", "two");
        assert_ne!(keyspace.shared().version(b"large", 0), version);
    }
}
