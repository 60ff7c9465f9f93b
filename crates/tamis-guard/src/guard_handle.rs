//! Reads and changes a guard while it runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config::Config;
use crate::guard_error::GuardError;
use crate::guard_sets::{GuardSet, GuardSets};
use crate::http::proxy::ProxyHandle;
use crate::request::layer::GuardLayer;

/// Reads and changes a guard while it runs. Clones belong to the same guard.
#[derive(Clone, Debug)]
pub struct GuardHandle {
    started: Instant,
    proxy: ProxyHandle,
    state: Arc<Mutex<State>>,
}

/// What a reload replaces.
#[derive(Debug)]
struct State {
    config: Config,
    sets: GuardSets,
    guard: GuardLayer,
}

impl GuardHandle {
    /// Sets the routes of the configuration.
    pub(crate) fn new(proxy: ProxyHandle, config: Config, sets: GuardSets) -> Self {
        let guard = config.guard(&sets.ids());
        proxy.set_guard(guard.clone());
        let state = Arc::new(Mutex::new(State { config, sets, guard }));
        Self { started: Instant::now(), proxy, state }
    }

    /// Uses another configuration. Routes, refusals and lists change at once. A set whose settings
    /// are the same keeps its ids; another one starts anew, in the state warming. The TLS files are
    /// read again.
    ///
    /// Returns what needs a restart: the changed settings of the proxy.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if the configuration cannot be used. The guard then keeps the one it has.
    pub fn reload(&self, config: Config) -> Result<Option<&'static str>, GuardError> {
        let mut state = self.state.lock();
        let sets = state.sets.changed_to(&state.config, &config)?;
        self.proxy.reload_tls()?;
        sets.set_lists(&config);
        let guard = config.guard(&sets.ids());
        self.proxy.set_guard(guard.clone());
        let is_same = config.has_same_proxy(&state.config);
        let old = std::mem::replace(&mut *state, State { config, sets, guard });
        drop(state);
        // Here the sources end that nobody uses any more. They may take a while.
        drop(old);
        Ok((!is_same)
            .then_some("the settings of [proxy], [admin] and [snapshots] change with a restart"))
    }

    /// Stops the sources, which write their last snapshots. Waits for them.
    pub(crate) async fn stop(&self) {
        let sets = self.state.lock().sets.clone();
        // A panic of the task is none of the guard.
        _ = tokio::task::spawn_blocking(move || sets.stop()).await;
    }

    /// Returns how long the guard runs.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the sets of ids, in the order of their names.
    #[must_use]
    pub fn sets(&self) -> Vec<GuardSet> {
        self.state.lock().sets.list()
    }

    /// Asks the source of a set to read all ids again. Returns false if there is no such source.
    #[must_use]
    pub fn rebuild(&self, set: &str) -> bool {
        self.state.lock().sets.rebuild(set)
    }

    /// Returns the routes with their counters. A reload creates new ones.
    #[must_use]
    pub fn guard(&self) -> GuardLayer {
        self.state.lock().guard.clone()
    }
}
