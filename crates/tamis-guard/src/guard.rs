//! A guard that runs: the sets of ids with their sources, the routes, and the proxy.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::Config;
use crate::guard_error::GuardError;
use crate::guard_sets::{GuardSet, GuardSets};
use crate::layer::GuardLayer;
use crate::proxy::{Proxy, ProxyHandle};

/// A guard with the settings of a [`Config`].
///
/// # Examples
///
/// ```no_run
/// use tamis_guard::{Config, Guard};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let guard = Guard::start(Config::read("guard.toml")?).await?;
/// let handle = guard.handle();
/// // On a signal: handle.reload(Config::read("guard.toml")?)?
/// guard.run(std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Guard {
    proxy: Proxy,
    handle: GuardHandle,
}

/// Reads and changes a guard while it runs. Clones belong to the same guard.
#[derive(Clone, Debug)]
pub struct GuardHandle {
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

impl Guard {
    /// Listens, and starts the sources. Requests are answered when [`run`](Self::run) is called.
    ///
    /// # Errors
    ///
    /// [`GuardError`] if an address is in use, a TLS file cannot be used, or there is no memory.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    pub async fn start(config: Config) -> Result<Self, GuardError> {
        // Before the sources: a second guard on the same port must not read a database.
        let proxy = Proxy::bind(config.proxy().clone(), GuardLayer::new(Vec::new())).await?;
        let sets = GuardSets::start(&config)?;
        let guard = GuardLayer::new(config.routes(&sets.ids()));
        let state = Mutex::new(State { config, sets, guard: guard.clone() });
        let handle = GuardHandle { proxy: proxy.handle(), state: Arc::new(state) };
        handle.proxy.set_guard(guard);
        Ok(Self { proxy, handle })
    }

    /// Returns the addresses on which the guard listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.proxy.addresses()
    }

    /// Returns a handle that reads and changes the guard while it runs.
    #[must_use]
    pub fn handle(&self) -> GuardHandle {
        self.handle.clone()
    }

    /// Serves until `shutdown` completes, and finishes the requests in progress. Then the sources
    /// stop. Returns how many connections it had to close.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        self.proxy.run(shutdown).await
    }
}

impl GuardHandle {
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
        let guard = GuardLayer::new(config.routes(&sets.ids()));
        self.proxy.set_guard(guard.clone());
        let is_same = config.has_same_proxy(&state.config);
        let old = std::mem::replace(&mut *state, State { config, sets, guard });
        drop(state);
        // Here the sources end that nobody uses any more. They may take a while.
        drop(old);
        Ok((!is_same).then_some("the settings of [proxy] change with a restart"))
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
