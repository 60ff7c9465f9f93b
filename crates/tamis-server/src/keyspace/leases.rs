//! Read leases: keys whose values are read for long, and the writers that wait for them.

use tokio::sync::watch;

/// The keys whose values have a read lease.
///
/// A lease begins under exclusive access to the keys. So a command that has access and is about to
/// lock such a value exclusively sees the lease, and can [wait](Self::until_free) without blocking
/// others. While a writer waits for a key, no new lease of that key begins: otherwise overlapping
/// readers would keep the lease for ever.
#[derive(Debug)]
pub(super) struct Leases(watch::Sender<Vec<Key>>);

// Invariant: the key has readers or waiting writers.
#[derive(Debug)]
struct Key {
    name: Box<[u8]>,
    readers: usize,
    waiting: usize,
}

impl Key {
    fn is_meant(&self, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        self.readers > 0 && is_meant(&self.name)
    }
}

impl Leases {
    pub fn new() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }

    /// Tests whether one of these keys has a lease.
    pub fn is_leased(&self, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        self.0.borrow().iter().any(|key| key.is_meant(&is_meant))
    }

    /// Tests whether a writer waits for a key. No new lease of the key should begin then.
    pub fn is_awaited(&self, name: &[u8]) -> bool {
        self.0.borrow().iter().any(|key| *key.name == *name && key.waiting > 0)
    }

    /// Begins a lease of a key, which ends when the result is dropped. Returns `None` if a writer
    /// waits for the key.
    pub fn begin(&self, name: &[u8]) -> Option<Lease<'_>> {
        let mut has_begun = true;
        self.0.send_modify(|keys| match keys.iter_mut().find(|key| *key.name == *name) {
            Some(key) if key.waiting > 0 => has_begun = false,
            Some(key) => key.readers += 1,
            None => keys.push(Key { name: name.into(), readers: 1, waiting: 0 }),
        });
        has_begun.then(|| Lease { leases: self, name: name.into() })
    }

    /// Creates a waiter that does not wait for any key yet.
    pub fn waiter(&self) -> Waiter<'_> {
        Waiter { leases: self, names: Vec::new() }
    }

    /// Decrements a count of a key, and removes the entry of a key without readers and writers.
    fn end(&self, name: &[u8], count: impl FnOnce(&mut Key)) {
        self.0.send_modify(|keys| {
            let at = keys.iter().position(|key| *key.name == *name).expect("the key is listed");
            count(&mut keys[at]);
            if keys[at].readers == 0 && keys[at].waiting == 0 {
                keys.swap_remove(at);
            }
        });
    }
}

/// A lease of a key. It ends when it is dropped.
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

/// A writer that waits for keys. No lease of a key that it has waited for begins before the waiter
/// is dropped.
#[derive(Debug)]
pub(super) struct Waiter<'l> {
    leases: &'l Leases,
    names: Vec<Box<[u8]>>,
}

impl Waiter<'_> {
    /// Waits until no key that `is_meant` accepts has a lease. A key that had no lease at the call
    /// may have a new one when this returns.
    pub async fn until_free(&mut self, is_meant: impl Fn(&[u8]) -> bool) {
        let mut changed = self.leases.0.subscribe();
        self.leases.0.send_if_modified(|keys| {
            for key in keys.iter_mut().filter(|key| key.is_meant(&is_meant)) {
                if !self.names.contains(&key.name) {
                    key.waiting += 1;
                    self.names.push(key.name.clone());
                }
            }
            // Returns false because no thread waits for this change.
            false
        });
        _ = changed.wait_for(|keys| !keys.iter().any(|key| key.is_meant(&is_meant))).await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            self.leases.end(name, |key| key.waiting -= 1);
        }
    }
}
