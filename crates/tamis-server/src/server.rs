//! Starts and stops a server and its threads.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::RwLock;
use tokio::sync::mpsc;

use crate::config::{Config, HttpPort};
use crate::connection::acceptor::{self, Arrival};
use crate::connection::tls::{self, TlsError};
use crate::http;
use crate::keyspace::Keyspace;
use crate::persistence::loading::{self, EarlyClient, Loading};
use crate::persistence::{Durable, Record};
use crate::server_error::ServerError;
use crate::shared_state::SharedState;
use crate::system::clock::now_millis;
use crate::system::descriptors;
use crate::system::procfs::memory_of_machine;
use crate::users::Users;

/// A running server. The server runs until the server is [stopped](Self::stop) or dropped. The
/// [crate documentation](crate) contains an example.
#[derive(Debug)]
pub struct Server {
    shared: Arc<SharedState>,
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
    http_address: Option<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts a server. When the method returns, the sockets of the server accept connections.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if the server cannot start or the configuration is unsafe.
    pub fn start(mut config: Config) -> Result<Self, ServerError> {
        if let Some(bytes) = memory_of_machine() {
            config.filters.max_filter_bytes = bytes;
        }
        let users = Users::open(&config).map_err(ServerError::Users)?;
        if let Some(address) = config.network_address().filter(|_| users.default_user().is_open()) {
            return Err(ServerError::Unprotected { address });
        }
        check_ports(&config)?;
        let tls = config.tls_port.map(|_| tls::read(&config)).transpose();
        let tls = tls.map_err(ServerError::Tls)?.map(RwLock::new);
        let plain = config.listens_plain.then_some(config.port);
        let plain = acceptor::listen(&config.bind, plain)?;
        let over_tls = acceptor::listen(&config.bind, config.tls_port)?;
        let addresses_of = |listeners: &[TcpListener]| -> Vec<SocketAddr> {
            listeners.iter().filter_map(|it| it.local_addr().ok()).collect()
        };
        let (addresses, tls_addresses) = (addresses_of(&plain), addresses_of(&over_tls));
        let port = addresses.first().map_or(0, SocketAddr::port);
        let http = http::listen(&config)?;
        let http_address = http.as_ref().and_then(|it| it.local_addr().ok());
        let threads = match config.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        limit_clients(&mut config, threads)?;
        let keyspace = Keyspace::new();
        let default_user = users.default_user();
        let may_ask_info = default_user.is_open() && default_user.may_run("info");
        let listeners = loading::Listeners {
            plain: &plain,
            tls: &over_tls,
            tls_config: tls.as_ref().map(|config| config.read().clone()),
            http: http.as_ref(),
        };
        let load = || Loading::begin(&listeners, config.max_clients, may_ask_info);
        let loading = config.append_only.then(load).transpose().map_err(ServerError::Thread)?;
        let open = || Durable::open(&config.dir, config.sync, &keyspace);
        let durable = config.append_only.then(open).transpose().map_err(ServerError::Durability)?;
        // The caller already holds the lock of the folder.
        let dir = config.append_only.then_some(config.dir.as_path());
        let key = config.hash_key.key(dir).map_err(ServerError::HashKey)?;
        config.filters.set_hash_key(key);
        let shared =
            Arc::new(SharedState::new(config, users, keyspace, durable, tls, port, threads));
        shared.stats.saves.begin(shared.keyspace.changes());
        let server = Arc::downgrade(&shared);
        shared.keyspace.on_expired(move |key| {
            let Some(server) = server.upgrade() else { return };
            if let Some(durable) = &server.durable {
                let argv = vec![&b"DEL"[..], key];
                durable.log.append(&Record::Command { now_millis: now_millis(), argv });
            }
        });
        let mut server =
            Self { shared, addresses, tls_addresses, http_address, threads: Vec::new() };
        let early = || loading.map(Loading::end).unwrap_or_default();
        let listeners = plain.into_iter().map(|listener| (listener, false));
        let listeners = listeners.chain(over_tls.into_iter().map(|listener| (listener, true)));
        server.serve(listeners.collect(), early)?;
        if let Some(listener) = http {
            let shared = server.shared.clone();
            server.spawn("tamis-http", move || http::serve(&shared, listener))?;
        } else if server.shared.config().http_port == HttpPort::Auto {
            let port = HttpPort::DEFAULT;
            tracing::warn!(port, "the console is off: its port is in use; set another http-port");
        }
        Ok(server)
    }

    /// Starts the threads that accept and serve connections. `early` returns the clients that
    /// connected while the server loaded its data.
    fn serve(
        &mut self,
        listeners: Vec<(TcpListener, bool)>,
        early: impl FnOnce() -> Vec<EarlyClient>,
    ) -> Result<(), ServerError> {
        let mut senders = Vec::new();
        for number in 0..self.shared.threads {
            let (sender, arrivals) = mpsc::unbounded_channel();
            senders.push(sender);
            let shared = self.shared.clone();
            self.spawn(&format!("tamis-{number}"), move || acceptor::serve(&shared, arrivals))?;
        }
        for (i, early) in early().into_iter().enumerate() {
            // The connection thread ends only when the server ends, so the send cannot fail.
            _ = senders[i % senders.len()].send(Arrival::early(early, &self.shared.clients));
        }
        let shared = self.shared.clone();
        self.spawn("tamis-acceptor", move || acceptor::admit(&shared, listeners, &senders))
    }

    fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), ServerError> {
        // If a thread cannot start, the caller drops the server, and the drop stops the server.
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        self.threads.push(thread.map_err(ServerError::Thread)?);
        Ok(())
    }

    /// Returns the addresses on which the server listens without TLS.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the addresses on which the server listens with TLS.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Returns the address of the console. Returns `None` if the console is off.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<SharedState> {
        &self.shared
    }

    /// Stops the server. The server closes each connection after the running commands of the
    /// connection have finished.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns a handle that controls the server from another thread.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle(self.shared.clone())
    }

    /// Waits until the server has ended.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotKept`] if the server could not write the last changes to the log.
    pub fn wait(mut self) -> Result<(), ServerError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), ServerError> {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a server thread panicked");
            }
        }
        // `finish` aborts a running snapshot, because the final write of the log must not wait for
        // the snapshot.
        match &self.shared.durable {
            Some(durable) => durable.finish().map_err(|error| ServerError::NotKept { error }),
            None => Ok(()),
        }
    }
}

/// Checks that the server listens on at least one port, and that no two listeners use the same
/// port.
fn check_ports(config: &Config) -> Result<(), ServerError> {
    let why = match config.tls_port {
        None if !config.listens_plain => "there is nowhere to listen: give --port or --tls-port",
        Some(port) if config.listens_plain && port == config.port && port != 0 => {
            "--port and --tls-port are the same: give another one, or say --port no"
        }
        _ => "",
    };
    if why.is_empty() { Ok(()) } else { Err(ServerError::Ports { why }) }
}

/// Lowers `maxclients` to the number of clients that the limit of open files permits.
fn limit_clients(config: &mut Config, threads: usize) -> Result<(), ServerError> {
    let reserved = descriptors::reserved(config, threads);
    let fitting = descriptors::fit(config.max_clients, reserved);
    if fitting == 0 {
        return Err(ServerError::Files { reserved });
    }
    if fitting < config.max_clients {
        tracing::warn!(
            maxclients = fitting,
            configured = config.max_clients,
            "maxclients was lowered to fit the limit of open files: raise the limit with ulimit -n"
        );
        config.max_clients = fitting;
    }
    Ok(())
}

/// Controls a server from another thread.
#[derive(Clone, Debug)]
pub struct ServerHandle(Arc<SharedState>);

impl ServerHandle {
    /// Stops the server in the same way as [`Server::stop`].
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Reloads the TLS files. New connections use the new contents of the files. Returns false if
    /// the server does not use TLS.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if the files cannot be used. On an error, the server keeps its old TLS
    /// configuration.
    pub fn reload_tls(&self) -> Result<bool, TlsError> {
        self.0.reload_tls()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Err(error) = self.join() {
            tracing::error!(%error, "the server has stopped");
        }
    }
}
