//! A handle that reads and changes a running guard.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config::Config;
use crate::guard_error::GuardError;
use crate::guard_sets::{GuardSet, GuardSets};
use crate::http::authorize::AuthorizerHandle;
use crate::http::proxy::ProxyHandle;
use crate::request::layer::GuardLayer;

/// A handle that reads and changes a running guard. All clones refer to the same guard.
#[derive(Clone, Debug)]
pub struct GuardHandle {
    started: Instant,
    proxy: Option<ProxyHandle>,
    authorizer: Option<AuthorizerHandle>,
    state: Arc<Mutex<State>>,
}

/// The state that a reload replaces.
#[derive(Debug)]
struct State {
    config: Config,
    sets: GuardSets,
    guard: GuardLayer,
}

impl GuardHandle {
    /// Creates a handle, and activates the routes of the configuration.
    pub(crate) fn new(
        proxy: Option<ProxyHandle>,
        authorizer: Option<AuthorizerHandle>,
        config: Config,
        sets: GuardSets,
    ) -> Self {
        let guard = config.guard(&sets.ids());
        let state = Arc::new(Mutex::new(State { config, sets, guard: guard.clone() }));
        let handle = Self { started: Instant::now(), proxy, authorizer, state };
        handle.activate(&guard);
        handle
    }

    /// Activates routes in the proxy and in the authorizer.
    fn activate(&self, guard: &GuardLayer) {
        if let Some(proxy) = &self.proxy {
            proxy.set_guard(guard.clone());
        }
        if let Some(authorizer) = &self.authorizer {
            authorizer.set_guard(guard.clone());
        }
    }

    /// Loads a new configuration. Routes, refusals, allow lists and deny lists change immediately. A set with unchanged
    /// settings keeps its ids. A set with changed settings starts again in the state warming. The reload also reads the
    /// TLS files.
    ///
    /// Returns a message if the settings of the proxy, the authorizer, the admin server or the snapshots have changed,
    /// because only a restart applies these changes.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the configuration cannot be used. After an error, the guard keeps its current configuration.
    pub fn reload(&self, config: Config) -> Result<Option<&'static str>, GuardError> {
        let mut state = self.state.lock();
        let sets = state.sets.changed_to(&state.config, &config)?;
        if let Some(proxy) = &self.proxy {
            proxy.reload_tls()?;
        }
        sets.set_lists(&config);
        let guard = config.guard(&sets.ids());
        self.activate(&guard);
        let is_same = config.has_same_servers(&state.config);
        let old = std::mem::replace(&mut *state, State { config, sets, guard });
        drop(state);
        // Dropping the old state stops the unused sources, which may take some time.
        drop(old);
        Ok((!is_same).then_some(
            "the settings of [proxy], [authorize], [admin] and [snapshots] change with a restart",
        ))
    }

    /// Stops the sources, and waits until they have written their last snapshots.
    pub(crate) async fn stop(&self) {
        let sets = self.state.lock().sets.clone();
        // A panic of the task must not stop the guard.
        _ = tokio::task::spawn_blocking(move || sets.stop()).await;
    }

    /// Returns the time since the start of the guard.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the sets of ids, ordered by name.
    #[must_use]
    pub fn sets(&self) -> Vec<GuardSet> {
        self.state.lock().sets.list()
    }

    /// Requests a full read of the source of a set. Returns false if the set does not exist or has no source.
    #[must_use]
    pub fn rebuild(&self, set: &str) -> bool {
        self.state.lock().sets.rebuild(set)
    }

    /// Returns the routes with their counters. A reload creates new routes.
    #[must_use]
    pub fn guard(&self) -> GuardLayer {
        self.state.lock().guard.clone()
    }
}
