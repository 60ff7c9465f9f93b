//! The sets of ids of a configuration, with their sources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tamis_sources::{
    IdSet, PushSource, SnapshotOptions, SourceKind, SourceOptions, SourceStatus, Sources,
};

use crate::config::{Config, SetConfig, SnapshotFolder, SnapshotsConfig};
use crate::fleet::Publication;
use crate::guard_error::GuardError;

/// The sets of ids of a configuration, with running sources. Dropping the last clone stops the sources.
#[derive(Clone, Debug)]
pub struct GuardSets {
    sets: BTreeMap<String, RunningSet>,
    snapshots: Option<Snapshots>,
}

/// The folder and the interval of the snapshots. The folder is locked until all sets are dropped.
#[derive(Clone, Debug)]
struct Snapshots {
    folder: Arc<SnapshotFolder>,
    every: Duration,
}

/// A set of ids of a running guard.
#[derive(Clone, Debug)]
pub struct GuardSet {
    /// The name of the set in the configuration.
    pub name: String,
    /// The ids of the set.
    pub ids: Arc<IdSet>,
    /// The status of all sources together. The value is `None` if the set has no source.
    pub status: Option<SourceStatus>,
    /// The sources of a set with several sources. The list of other sets is empty.
    pub sources: Vec<GuardSource>,
    /// Accepts ids from programs that present the token of `push`. The value is `None` if the set has no token.
    pub push: Option<Arc<PushSource>>,
    /// Handles requests of followers that present the token of `publish`. The value is `None` if the set is not
    /// published.
    pub publication: Option<Arc<Publication>>,
}

/// One of several sources of a set.
#[derive(Clone, Debug)]
pub struct GuardSource {
    /// The name of the source for messages. The name contains no password.
    pub name: String,
    /// The number of ids of the source.
    pub items: u64,
    /// The status of the source.
    pub status: SourceStatus,
}

#[derive(Clone, Debug)]
struct RunningSet {
    ids: Arc<IdSet>,
    sources: Option<Arc<Sources>>,
    push: Option<Arc<PushSource>>,
    publication: Option<Arc<Publication>>,
}

impl Snapshots {
    fn open(config: &SnapshotsConfig) -> Result<Self, GuardError> {
        let folder = SnapshotFolder::open(&config.folder).map_err(GuardError::Snapshots)?;
        Ok(Self { folder: Arc::new(folder), every: config.every })
    }

    /// Returns the settings of the snapshots of a source. `is_only` is true if the set has no other source.
    fn of_source(&self, set: &str, source: &dyn SourceKind, is_only: bool) -> SnapshotOptions {
        let path = match is_only {
            true => self.folder.file_of(set),
            false => self.folder.file_of_source(set, &source.name()),
        };
        SnapshotOptions { every: self.every, ..SnapshotOptions::new(path) }
    }
}

impl GuardSets {
    /// Starts the sources of all sets.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if a token is empty, the folder of the snapshots cannot be used, or the system has no memory.
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot start a thread.
    pub fn start(config: &Config) -> Result<Self, GuardError> {
        let snapshots = config.snapshots().map(Snapshots::open).transpose()?;
        let start = |(name, set): (&String, &SetConfig)| {
            Ok((name.clone(), RunningSet::start(name, set, snapshots.as_ref())?))
        };
        let sets = config.set_configs().map(start).collect::<Result<_, GuardError>>()?;
        Ok(Self { sets, snapshots })
    }

    /// Returns the sets, ordered by name.
    #[must_use]
    pub fn list(&self) -> Vec<GuardSet> {
        let set = |(name, set): (&String, &RunningSet)| GuardSet {
            name: name.clone(),
            ids: Arc::clone(&set.ids),
            status: set.sources.as_ref().map(|sources| sources.status()),
            sources: set.several_sources(),
            push: set.push.clone(),
            publication: set.publication.clone(),
        };
        self.sets.iter().map(set).collect()
    }

    /// Stops all sources concurrently. Each source writes its last snapshot.
    pub(crate) fn stop(&self) {
        std::thread::scope(|threads| {
            for sources in self.sets.values().filter_map(|set| set.sources.as_ref()) {
                threads.spawn(|| sources.stop());
            }
        });
    }

    /// Returns the sets of a new configuration. A set with unchanged settings is reused.
    pub(crate) fn changed_to(&self, old: &Config, new: &Config) -> Result<Self, GuardError> {
        let mut sets = BTreeMap::new();
        for (name, set) in new.set_configs() {
            let kept = self.sets.get(name).filter(|_| new.has_same_set(old, name));
            let running = match kept {
                Some(kept) => kept.clone(),
                None => RunningSet::start(name, set, self.snapshots.as_ref())?,
            };
            sets.insert(name.clone(), running);
        }
        Ok(Self { sets, snapshots: self.snapshots.clone() })
    }

    /// Replaces the lists of allowed and denied ids.
    pub(crate) fn set_lists(&self, config: &Config) {
        for ((_, set), running) in config.set_configs().zip(self.sets.values()) {
            running.set_lists(set);
        }
    }

    pub(crate) fn ids(&self) -> BTreeMap<String, Arc<IdSet>> {
        self.sets.iter().map(|(name, set)| (name.clone(), Arc::clone(&set.ids))).collect()
    }

    /// Requests a full read of the sources of a set. Returns false if the set does not exist or has no source.
    pub(crate) fn rebuild(&self, name: &str) -> bool {
        let sources = self.sets.get(name).and_then(|set| set.sources.as_ref());
        sources.inspect(|sources| sources.rebuild()).is_some()
    }
}

impl RunningSet {
    fn start(
        name: &str,
        config: &SetConfig,
        snapshots: Option<&Snapshots>,
    ) -> Result<Self, GuardError> {
        let set = || name.to_owned();
        let count = config.sources.len();
        let ids = IdSet::with_sources(config.options.clone(), count.max(1));
        let ids = Arc::new(ids.map_err(|error| GuardError::Plan { set: set(), error })?);
        // `Route::new` returns an error for a set without a source. If the configuration has no source for the set, the
        // set stays warming, and programs push its ids.
        ids.expect_pushes();
        let push = config.token.as_ref().map(|token| PushSource::new(Arc::clone(&ids), &token.0));
        let push = push.transpose().map_err(|_| GuardError::NoToken(set()))?.map(Arc::new);
        // The publication is created before the source, so that followers get each generation of the source.
        let publish = |it| Arc::new(Publication::new(Arc::clone(&ids), it));
        let publication = config.publish.as_ref().map(publish);
        let with_options = |kind: &Arc<dyn SourceKind>| {
            let snapshot = snapshots.map(|it| it.of_source(name, &**kind, count == 1));
            (Arc::clone(kind), SourceOptions { snapshot, ..config.source_options.clone() })
        };
        let sources = (count > 0).then(|| {
            let kinds = config.sources.iter().map(with_options);
            Arc::new(Sources::start(Arc::clone(&ids), kinds))
        });
        let set = Self { ids, sources, push, publication };
        set.set_lists(config);
        Ok(set)
    }

    /// Returns the sources of a set with several sources.
    fn several_sources(&self) -> Vec<GuardSource> {
        let sources = self.sources.iter().flat_map(|sources| sources.iter());
        let all = sources.map(|(name, source)| GuardSource {
            name: name.to_owned(),
            items: source.items(),
            status: source.status(),
        });
        if self.ids.source_count() > 1 { all.collect() } else { Vec::new() }
    }

    fn set_lists(&self, config: &SetConfig) {
        let checked = "checked when the configuration was read";
        self.ids.set_allowed(&config.allowed).expect(checked);
        self.ids.set_denied(&config.denied).expect(checked);
    }
}
