//! The changes of single ids: inserts and deletions.

use std::sync::atomic::Ordering;

use tamis::PlanError;

use crate::ids::change_kind::ChangeKind;
use crate::ids::id_error::IdError;
use crate::ids::id_set::IdSet;
use crate::ids::to_id::ToId;

impl IdSet {
    /// Records that an id exists now. The set reads the id like a value of a request: a set of integers takes `42`,
    /// `"42"`, `b"42"` and `"0042"` as the id 42. An insert does not change the [state](Self::state) of the set.
    ///
    /// # Errors
    ///
    /// [`IdError::NotAnId`] if the value is not an id of the type; [`IdError::Plan`] if a filter must grow and the
    /// system has no memory. After `Plan`, the set contains the id nevertheless.
    pub fn insert(&self, id: impl ToId) -> Result<(), IdError> {
        Ok(self.apply_change(ChangeKind::Insert, &self.canonical(&id.to_id())?)?)
    }

    /// Records that an id was created recently, for example because a response or a push message contains the id. The
    /// id passes for [`IdSetOptions::recent_for`](crate::IdSetOptions::recent_for), even if the source still reports an
    /// older deletion.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert`](Self::insert).
    pub fn insert_recent(&self, id: impl ToId) -> Result<(), IdError> {
        Ok(self.apply_change(ChangeKind::InsertRecent, &self.canonical(&id.to_id())?)?)
    }

    /// Records that an id was deleted. The set reads the id as [`insert`](Self::insert) does.
    ///
    /// # Errors
    ///
    /// [`IdError::NotAnId`] if the value is not an id of the type.
    pub fn delete(&self, id: impl ToId) -> Result<(), IdError> {
        Ok(self.apply_change(ChangeKind::Delete, &self.canonical(&id.to_id())?)?)
    }

    /// Applies a change to the id with a key, and sends the change to the listener. The key is the canonical text of
    /// the id, folded if the source folds texts. The set does not check the key: [`insert`](Self::insert),
    /// [`insert_recent`](Self::insert_recent) and [`delete`](Self::delete) check an id.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a filter must grow and the system has no memory. After the error, the set contains the id
    /// nevertheless.
    ///
    /// # Panics
    ///
    /// Panics if the [listener](Self::listen) of the set does not apply the change.
    pub fn apply_change(&self, kind: ChangeKind, key: &[u8]) -> Result<(), PlanError> {
        let Some(listener) = self.listener.get() else { return self.apply(kind, key) };
        let mut result = None;
        listener.record(kind, key, &mut || result = Some(self.apply(kind, key)));
        result.expect("a listener applies the change")
    }

    /// Inserts the id with a key, as [`apply_change`](Self::apply_change) does.
    #[cfg(feature = "databases")]
    pub(crate) fn insert_key(&self, key: &[u8]) -> Result<(), PlanError> {
        self.apply_change(ChangeKind::Insert, key)
    }

    /// Deletes the id with a key, as [`apply_change`](Self::apply_change) does.
    #[cfg(feature = "databases")]
    pub(crate) fn delete_key(&self, key: &[u8]) {
        self.apply_change(ChangeKind::Delete, key).expect("a deletion needs no new filter");
    }

    /// Records that one of the rows with a key was deleted, as [`apply_change`](Self::apply_change) does.
    #[cfg(feature = "databases")]
    pub(crate) fn delete_row_of_key(&self, key: &[u8]) {
        self.apply_change(ChangeKind::DeleteRow, key).expect("the set needs no new filter");
    }

    fn apply(&self, kind: ChangeKind, key: &[u8]) -> Result<(), PlanError> {
        match kind {
            ChangeKind::Insert => self.apply_insert(key),
            ChangeKind::InsertRecent => {
                self.recent.insert(self.key(key).into(), ());
                // Release: a reader that sees the flag also sees the entry.
                self.has_recent.store(true, Ordering::Release);
                self.apply_insert(key)
            }
            ChangeKind::Delete => {
                self.apply_delete(key);
                Ok(())
            }
            ChangeKind::DeleteRow => {
                self.negative.remove(&self.key(key));
                Ok(())
            }
        }
    }

    fn apply_insert(&self, id: &[u8]) -> Result<(), PlanError> {
        let value = self.options.id.value_of(id);
        let current = self.current.load().insert_key(id, value);
        let building = match &*self.building.load() {
            Some(building) => building.insert_key(id, value),
            None => Ok(()),
        };
        // If a generation was published between the two inserts above, neither insert has changed the new generation.
        // Therefore a third insert adds the id to the new generation.
        self.current.load().insert_key(id, value)?;
        self.negative.remove(&self.key(id));
        current.and(building)
    }

    fn apply_delete(&self, id: &[u8]) {
        self.delete_current(id);
        if let Some(building) = &*self.building.load() {
            // After this deletion, the full read of the building generation may find the id.
            building.delete_key(id);
        }
        self.delete_current(id);
        // A source may report all deletions repeatedly, so a deletion does not prevent new entries.
        self.negative.forget(&self.key(id));
    }

    fn delete_current(&self, id: &[u8]) {
        let current = self.current.load();
        // A source may report all ids that were ever deleted. If the filter does not contain an id, a tombstone would
        // waste memory.
        if current.contains(id) {
            current.delete_key(id);
        }
    }
}
