//! The methods with which a reader changes the ids of its source: single changes, and generations.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tamis::PlanError;

use crate::errors::source_error::SourceError;
use crate::ids::change_kind::ChangeKind;
use crate::ids::fold::Fold;
use crate::ids::generation::Generation;
use crate::ids::snapshot::Snapshot;
#[cfg(feature = "databases")]
use crate::source::audit_source::canonical_row;
use crate::source::loader::Loader;
use crate::source::run::Run;
use crate::source::status::Built;
#[cfg(feature = "databases")]
use crate::source::status::Rows;

/// The minimum number of deleted ids at which their share is tested.
#[cfg(feature = "databases")]
const FEW_DELETED: u64 = 1000;

impl Run {
    /// Returns the current generation of the source.
    #[must_use]
    pub fn generation(&self) -> Arc<Generation> {
        self.ids.source_ids(self.number).generation()
    }

    /// Returns the planned false positive rate of the generations of the source.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.ids.source_rate()
    }

    /// Applies a change of an id that the source reports. A deletion changes only the ids of this source.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a filter must grow and the system has no memory. After the error, the set contains the id
    /// nevertheless.
    pub fn apply_change(&self, kind: ChangeKind, key: &[u8]) -> Result<(), PlanError> {
        self.ids.apply_change_of(self.number, kind, key)
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

    /// Drops the generation that the source has started, without publishing it.
    pub fn abandon_generation(&self) {
        self.ids.source_ids(self.number).abandon_generation();
    }

    /// Tests whether a full read is required because a caller requested it, or because the generation is too old.
    #[must_use]
    pub fn is_rebuild_asked(&self) -> bool {
        let progress = self.progress.lock();
        let age = progress.built.map(Built::age);
        let is_old =
            self.options.rebuild_after.is_some_and(|after| age.is_some_and(|it| it >= after));
        // Relaxed here and below: the number publishes no other data.
        is_old || progress.answered < self.asked.load(Ordering::Relaxed)
    }

    /// Tests the condition of `is_rebuild_asked`. The method also returns true if too many ids of the generation are
    /// deleted.
    #[cfg(feature = "databases")]
    pub(crate) fn is_rebuild_due(&self) -> bool {
        let generation = self.generation();
        let (items, deleted) = (generation.items(), generation.deleted());
        let share = deleted as f64 / (items + deleted) as f64;
        deleted > FEW_DELETED && share > self.options.max_deleted || self.is_rebuild_asked()
    }

    /// Starts a generation. The capacity of the generation is at least the number of ids in the current generation, and
    /// at least `expected`. A filter that must grow takes twice the memory of a filter with the right capacity.
    ///
    /// # Errors
    ///
    /// [`SourceError::Plan`] if the system has no memory.
    pub fn start_generation(&self, expected: u64) -> Result<Arc<Generation>, SourceError> {
        let known = self.generation().items().max(expected);
        let items = self.ids.source_items().max(known.saturating_add(known / 8));
        let generation = Generation::new(items, self.rate())?.with_fold(self.fold());
        Ok(self.start_generation_from(generation))
    }

    /// Starts a generation for the ids of a table with about `rows` rows. If only some rows count, the number of ids in
    /// the current generation is the better estimate.
    #[cfg(feature = "databases")]
    pub(crate) fn start_generation_of_table(
        &self,
        rows: u64,
        has_condition: bool,
    ) -> Result<Arc<Generation>, SourceError> {
        let is_estimated = !has_condition || self.published_items() == 0;
        self.start_generation(if is_estimated { rows } else { 0 })
    }

    /// Sets the function that converts text ids to keys, for all later rows and generations.
    #[cfg(feature = "databases")]
    pub(crate) fn set_fold(&self, fold: Fold) {
        // Relaxed: only the thread that reads the source uses `fold`.
        self.fold.store(fold.number(), Ordering::Relaxed);
    }

    fn fold(&self) -> Fold {
        Fold::of_number(self.fold.load(Ordering::Relaxed)).expect("set_fold has stored it")
    }

    /// Starts a generation that may already contain ids.
    pub fn start_generation_from(&self, generation: Generation) -> Arc<Generation> {
        // The number of requests is read before the full read starts. A request that arrives during the full read
        // requires another full read.
        self.progress.lock().answering = self.asked.load(Ordering::Relaxed);
        self.ids.source_ids(self.number).start_generation(generation)
    }

    /// Publishes the generation that was started last. The set uses the generation for all later decisions. The
    /// generation replaces only the ids of this source.
    ///
    /// # Panics
    ///
    /// Panics if no generation was started.
    pub fn publish_generation(&self) {
        self.publish(Duration::ZERO);
    }

    /// Publishes the ids of a snapshot. The generation keeps its age and its hash key.
    pub(crate) fn publish_snapshot(&self, snapshot: Snapshot) {
        let age = SystemTime::now().duration_since(snapshot.head.built).unwrap_or_default();
        self.start_generation_from(snapshot.generation);
        self.publish(age);
    }

    fn publish(&self, age: Duration) {
        // The function takes the lock before the publication, so that a thread that sees the new ids also reads the new
        // status.
        let mut progress = self.progress.lock();
        self.ids.publish_generation_of(self.number);
        progress.generations += 1;
        progress.answered = progress.answering;
        progress.built = Some(Built::now(age));
    }

    /// Returns the number of ids in the current generation. Returns 0 before the first publication. A previous reader
    /// of the source may have published the generation.
    pub(crate) fn published_items(&self) -> u64 {
        let is_published = self.progress.lock().generations > 0;
        if is_published { self.generation().items() } else { 0 }
    }

    /// Returns the time at which the ids of the current generation were read. Returns `None` before the first
    /// publication.
    pub(crate) fn built(&self) -> Option<SystemTime> {
        let age = self.progress.lock().built?.age();
        SystemTime::now().checked_sub(age)
    }

    /// Returns the key of the id in a row.
    #[cfg(feature = "databases")]
    pub(crate) fn canonical<'t>(&self, text: &'t [u8]) -> Option<std::borrow::Cow<'t, [u8]>> {
        use std::borrow::Cow;

        Some(match canonical_row(&self.ids.options().id, text)? {
            Cow::Borrowed(id) => self.fold().key(id),
            Cow::Owned(id) => Cow::Owned(self.fold().key(&id).into_owned()),
        })
    }

    /// Inserts the id of a row from the change log of a database. If the text is not an id of the type, the method only
    /// counts the row.
    #[cfg(feature = "databases")]
    pub(crate) fn insert_live(
        &self,
        text: &[u8],
        before: impl FnOnce(&[u8]),
    ) -> Result<(), SourceError> {
        match self.canonical(text) {
            Some(id) => {
                before(&id);
                self.insert_key(&id)?;
            }
            None => self.count(Rows { ids: 0, invalid: 1 }),
        }
        Ok(())
    }

    /// Creates a loader that loads the rows of a full read into a generation.
    #[must_use]
    pub fn loader<'a>(&'a self, generation: &'a Generation) -> Loader<'a> {
        Loader::new(&self.ids.options().id, generation)
    }
}
