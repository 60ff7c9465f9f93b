//! The changes of single ids: inserts and deletions.

use std::sync::atomic::Ordering;

use tamis::PlanError;

use crate::ids::change_kind::ChangeKind;
use crate::ids::id_error::IdError;
use crate::ids::id_set::{FIRST, IdSet};
use crate::ids::source_ids::SourceIds;
use crate::ids::to_id::ToId;

impl IdSet {
    /// Records that an id exists now. The set reads the id like a value of a request: a set of integers takes `42`,
    /// `"42"`, `b"42"` and `"0042"` as the id 42. An insert does not change the [state](Self::state) of the set.
    ///
    /// A set with several sources stores the id with the ids of its first source. The id stays known until the next
    /// generation of the first source is published, unless this generation contains the id.
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

    /// Records that an id was deleted from all sources. The set reads the id as [`insert`](Self::insert) does.
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
        let sources = match kind {
            ChangeKind::Insert | ChangeKind::InsertRecent => &self.sources[..=FIRST],
            ChangeKind::Delete | ChangeKind::DeleteRow => &self.sources[..],
        };
        self.apply_to(sources, kind, key)
    }

    /// Applies a change that a source reports, as [`apply_change`](Self::apply_change) does. A deletion changes only
    /// the ids of this source, because another source may still contain the id.
    pub(crate) fn apply_change_of(
        &self,
        source: usize,
        kind: ChangeKind,
        key: &[u8],
    ) -> Result<(), PlanError> {
        self.apply_to(&self.sources[source..=source], kind, key)
    }

    fn apply_to(
        &self,
        sources: &[SourceIds],
        kind: ChangeKind,
        key: &[u8],
    ) -> Result<(), PlanError> {
        let apply = || self.apply(sources, kind, key);
        let Some(listener) = self.listener.get() else { return apply() };
        let mut result = None;
        listener.record(kind, key, &mut || result = Some(apply()));
        result.expect("a listener applies the change")
    }

    fn apply(&self, sources: &[SourceIds], kind: ChangeKind, key: &[u8]) -> Result<(), PlanError> {
        match kind {
            ChangeKind::Insert => self.apply_insert(sources, key),
            ChangeKind::InsertRecent => {
                for fold in self.folds().iter() {
                    self.recent.insert((*fold.key(key)).into(), ());
                }
                // Release: a reader that sees the flag also sees the entry.
                self.has_recent.store(true, Ordering::Release);
                self.apply_insert(sources, key)
            }
            ChangeKind::Delete => {
                sources.iter().for_each(|source| source.delete(key));
                // A source may report all deletions repeatedly, so a deletion does not prevent new entries.
                self.folds().iter().for_each(|fold| self.negative.forget(&fold.key(key)));
                Ok(())
            }
            ChangeKind::DeleteRow => {
                self.folds().iter().for_each(|fold| self.negative.remove(&fold.key(key)));
                Ok(())
            }
        }
    }

    fn apply_insert(&self, sources: &[SourceIds], key: &[u8]) -> Result<(), PlanError> {
        let value = self.options.id.value_of(key);
        let mut inserted = Ok(());
        for source in sources {
            inserted = inserted.and(source.insert(key, value));
        }
        self.folds().iter().for_each(|fold| self.negative.remove(&fold.key(key)));
        inserted
    }
}
