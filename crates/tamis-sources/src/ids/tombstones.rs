//! The exact set of deleted ids.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

/// The ids that were deleted after a filter was built. The filter still contains the deleted ids.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    /// The number of deleted ids. Most lookups read only `count`, the number of deleted ids.
    count: AtomicUsize,
    ids: RwLock<HashSet<Box<[u8]>>>,
}

impl Tombstones {
    /// Tests whether an id was deleted.
    pub(crate) fn contains(&self, id: &[u8]) -> bool {
        // Acquire: pairs with the release in `insert` and `remove`.
        self.count.load(Ordering::Acquire) > 0 && self.ids.read().contains(id)
    }

    pub(crate) fn insert(&self, id: &[u8]) {
        if self.contains(id) {
            return;
        }
        let mut ids = self.ids.write();
        ids.insert(id.into());
        self.count.store(ids.len(), Ordering::Release);
    }

    pub(crate) fn remove(&self, id: &[u8]) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut ids = self.ids.write();
        ids.remove(id);
        self.count.store(ids.len(), Ordering::Release);
    }

    /// Keeps only the ids for which `has` returns true.
    pub(crate) fn retain(&self, has: impl Fn(&[u8]) -> bool) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut ids = self.ids.write();
        ids.retain(|id| has(id));
        self.count.store(ids.len(), Ordering::Release);
    }

    /// Returns a copy of the deleted ids in arbitrary order.
    pub(crate) fn copy(&self) -> Vec<Box<[u8]>> {
        self.ids.read().iter().cloned().collect()
    }

    /// Returns the number of deleted ids.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

impl FromIterator<Box<[u8]>> for Tombstones {
    fn from_iter<I: IntoIterator<Item = Box<[u8]>>>(ids: I) -> Self {
        let ids: HashSet<_> = ids.into_iter().collect();
        Self { count: AtomicUsize::new(ids.len()), ids: RwLock::new(ids) }
    }
}
