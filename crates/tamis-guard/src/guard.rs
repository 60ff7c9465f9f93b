//! A running guard: the sets of ids with their sources, the routes, the proxy, and the server for another proxy.

use std::future::Future;
use std::net::SocketAddr;

use tokio::sync::watch;

use crate::admin::Admin;
use crate::config::Config;
use crate::guard_error::GuardError;
use crate::guard_handle::GuardHandle;
use crate::guard_sets::GuardSets;
use crate::http::authorize::Authorizer;
use crate::http::proxy::Proxy;
use crate::request::layer::GuardLayer;

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
    proxy: Option<Proxy>,
    authorizer: Option<Authorizer>,
    admin: Option<Admin>,
    handle: GuardHandle,
}

impl Guard {
    /// Binds the addresses, and starts the sources. The guard serves requests after the call of [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// [`GuardError`] if an address is in use, a TLS file is invalid, or the system has no memory.
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot start a thread.
    pub async fn start(config: Config) -> Result<Self, GuardError> {
        // The addresses are bound before the sources start, so that a second guard on the same port does not read a
        // database.
        let proxy = match config.proxy() {
            None => None,
            Some(options) => Some(Proxy::bind(options.clone(), GuardLayer::new(Vec::new())).await?),
        };
        let authorizer = match config.authorize() {
            None => None,
            Some(options) => Some(Authorizer::bind(options).await?),
        };
        let admin = match config.admin() {
            None => None,
            Some(admin) => {
                let token = admin.token.as_ref().map(|token| &*token.0);
                Some(Admin::bind(admin.listen, token).await?)
            }
        };
        let sets = GuardSets::start(&config)?;
        let handle = GuardHandle::new(
            proxy.as_ref().map(Proxy::handle),
            authorizer.as_ref().map(Authorizer::handle),
            config,
            sets,
        );
        Ok(Self { proxy, authorizer, admin, handle })
    }

    /// Returns the addresses on which the guard forwards requests. The list is empty if the configuration has no table
    /// `[proxy]`.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.proxy.as_ref().map_or(&[], Proxy::addresses)
    }

    /// Returns the addresses on which the guard answers the questions of another proxy. The list is empty if the
    /// configuration has no table `[authorize]`.
    #[must_use]
    pub fn authorize_addresses(&self) -> Vec<SocketAddr> {
        self.authorizer.iter().flat_map(Authorizer::addresses).collect()
    }

    /// Returns the address of the admin server. Returns `None` if the configuration has no admin server.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::address)
    }

    /// Adds a field to the response of `/api/status`, for values of the embedding program. The admin server calls
    /// `value` for each request of `/api/status`. Without an admin server, this method has no effect.
    #[must_use]
    pub fn with_status(
        mut self,
        field: &'static str,
        value: impl Fn() -> serde_json::Value + Send + Sync + 'static,
    ) -> Self {
        if let Some(admin) = &mut self.admin {
            admin.add_status(field, Box::new(value));
        }
        self
    }

    /// Returns a handle that reads and changes the guard while it runs.
    #[must_use]
    pub fn handle(&self) -> GuardHandle {
        self.handle.clone()
    }

    /// Serves requests until `shutdown` completes. After the shutdown begins, the guard finishes the requests in
    /// progress and stops the sources. Returns the number of connections that were still open at the shutdown timeout.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> usize {
        // Dropping the `JoinSet` ends the task of the admin server.
        let mut admin = tokio::task::JoinSet::new();
        if let Some(server) = self.admin {
            admin.spawn(server.run(self.handle.clone()));
        }
        let (serving, stopped) = watch::channel(());
        let mut authorizer = tokio::task::JoinSet::new();
        if let Some(server) = self.authorizer {
            authorizer.spawn(server.run(stopped));
        }
        let shutdown = async move {
            shutdown.await;
            drop(serving);
        };
        let cut = match self.proxy {
            Some(proxy) => proxy.run(shutdown).await,
            None => {
                shutdown.await;
                0
            }
        };
        while authorizer.join_next().await.is_some() {}
        self.handle.stop().await;
        cut
    }
}
