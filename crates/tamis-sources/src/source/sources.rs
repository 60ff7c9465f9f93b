//! The running sources of one set.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::ids::id_set::IdSet;
use crate::source::Source;
use crate::source::kind::SourceKind;
use crate::source::run::SourceOptions;
use crate::source::status::{SnapshotStatus, SourceStatus};

/// The running sources of one set, for example the tables of a sharded database. Dropping the value stops all sources.
///
/// Each source has its own state, its own generations and its own snapshots. An id exists if it exists in any source.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::time::{Duration, Instant};
///
/// use tamis_sources::{FileFormat, FileOptions, IdSet, IdType, SourceKind};
/// use tamis_sources::{SourceOptions, Sources, SyncState};
///
/// let folder = tempfile::tempdir()?;
/// let kinds = [("a", "1\n2\n"), ("b", "2\n3\n")].map(|(name, ids)| {
///     let path = folder.path().join(name);
///     std::fs::write(&path, ids).unwrap();
///     let quiet = Duration::ZERO;
///     let kind = FileOptions { quiet, ..FileOptions::new(path, FileFormat::Lines) };
///     let interval = Duration::from_millis(10);
///     let options = SourceOptions { interval, ..SourceOptions::default() };
///     (Arc::new(kind) as Arc<dyn SourceKind>, options)
/// });
/// let ids = Arc::new(IdSet::with_sources(IdType::integer(), kinds.len())?);
/// let sources = Sources::start(Arc::clone(&ids), kinds);
/// let end = Instant::now() + Duration::from_secs(10);
/// while ids.state() != SyncState::Synced {
///     assert!(Instant::now() < end, "{:?}", sources.status().last_error);
///     std::thread::sleep(Duration::from_millis(1));
/// }
/// assert!(ids.decide(b"1").passes() && ids.decide(b"3").passes());
/// assert!(!ids.decide(b"4").passes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sources {
    ids: Arc<IdSet>,
    /// The sources with their names.
    all: Vec<(String, Source)>,
}

impl Sources {
    /// Starts the sources of a set. The set was created for this number of sources by [`IdSet::with_sources`].
    ///
    /// # Panics
    ///
    /// Panics if the number of sources differs from the number for which the set was created, or if the operating
    /// system cannot start a thread.
    #[must_use]
    pub fn start(
        ids: Arc<IdSet>,
        kinds: impl IntoIterator<Item = (Arc<dyn SourceKind>, SourceOptions)>,
    ) -> Self {
        let kinds: Vec<_> = kinds.into_iter().collect();
        assert_eq!(kinds.len(), ids.source_count(), "the set was created for its sources");
        let start = |(number, (kind, options)): (usize, (Arc<dyn SourceKind>, SourceOptions))| {
            let name = kind.name();
            (name, Source::start_numbered(Arc::clone(&ids), number, kind, options))
        };
        let all = kinds.into_iter().enumerate().map(start).collect();
        Self { ids, all }
    }

    /// Returns the sources with their [names](SourceKind::name).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Source)> {
        self.all.iter().map(|(name, source)| (name.as_str(), source))
    }

    /// Returns the status of all sources together. With one source, the method returns the status of this source.
    ///
    /// The numbers of reads, rows, generations and failures are sums. The lag, and the ages of the generation and of
    /// the snapshot, are the largest values of a source. An error begins with the name of its source.
    #[must_use]
    pub fn status(&self) -> SourceStatus {
        if let [(_, source)] = &self.all[..] {
            return source.status();
        }
        let statuses: Vec<_> = self.iter().map(|(name, it)| (name, it.status())).collect();
        let all = || statuses.iter().map(|(_, status)| status);
        SourceStatus {
            state: self.ids.state(),
            items_read: all().map(|it| it.items_read).sum(),
            invalid_rows: all().map(|it| it.invalid_rows).sum(),
            generations: all().map(|it| it.generations).sum(),
            generation_age: largest(all().map(|it| it.generation_age)),
            failures: all().map(|it| it.failures).sum(),
            lag: largest(all().map(|it| it.lag)),
            lag_bytes: largest(all().map(|it| it.lag_bytes)),
            last_success: all().map(|it| it.last_success).min().flatten(),
            last_error: named_error(&statuses, |it| it.last_error.as_ref())
                .or_else(|| self.ids.evidence().reason()),
            snapshots: SnapshotStatus {
                age: largest(all().map(|it| it.snapshots.age)),
                failures: all().map(|it| it.snapshots.failures).sum(),
                last_error: named_error(&statuses, |it| it.snapshots.last_error.as_ref()),
                unused: named_error(&statuses, |it| it.snapshots.unused.as_ref()),
            },
        }
    }

    /// Requests a full read of each source, as [`Source::rebuild`] does.
    pub fn rebuild(&self) {
        self.iter().for_each(|(_, source)| source.rebuild());
    }

    /// Stops all sources concurrently, as [`Source::stop`] does.
    pub fn stop(&self) {
        std::thread::scope(|threads| {
            for (_, source) in self.iter() {
                threads.spawn(|| source.stop());
            }
        });
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the largest value. Returns `None` if any source has no value.
fn largest<T: Ord>(values: impl Iterator<Item = Option<T>>) -> Option<T> {
    values.collect::<Option<Vec<T>>>()?.into_iter().max()
}

/// Returns an error with the name of its source. If several sources have an error, the function chooses a source in the
/// worst state, and adds the number of the other sources.
fn named_error(
    statuses: &[(&str, SourceStatus)],
    error: impl Fn(&SourceStatus) -> Option<&String>,
) -> Option<String> {
    let mut failed: Vec<_> = statuses
        .iter()
        .filter_map(|(name, status)| Some((status.state, name, error(status)?)))
        .collect();
    failed.sort_by_key(|(state, ..)| Reverse(state.rank()));
    let (_, name, error) = failed.first()?;
    Some(match failed.len() - 1 {
        0 => format!("{name}: {error}"),
        others => format!("{name}: {error} (and {others} more of {} sources)", statuses.len()),
    })
}
