//! The server: its shared state, its threads, its start and stop.

mod descriptors;
mod error;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::RwLock;
use tamis_commands::{Argv, Batch, Change, Env, Outcome, Value};
use tamis_resp::Reply;
use tokio::runtime::{LocalOptions, LocalRuntime};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_rustls::rustls::ServerConfig;

use crate::acceptor::{self, Arrival};
use crate::clients::Clients;
use crate::config::{Config, HttpPort};
use crate::cross_protocol::Warnings;
use crate::hash_key::HashKey;
use crate::held_memory::{HeldMemory, Hold};
use crate::http;
use crate::keyspace::Keyspace;
use crate::loading::{self, Loading};
use crate::monitors::Monitors;
use crate::persistence::Durable;
use crate::persistence::Record;
use crate::stats::{Stats, now_millis};
use crate::tls::{self, TlsError};
use crate::users::{User, Users};
pub use error::ServerError;

/// A running server. It runs until it is [stopped](Self::stop) or dropped.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use tamis_server::{Config, Server};
///
/// let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
/// let server = Server::start(config)?;
/// let mut client = std::net::TcpStream::connect(server.addresses()[0])?;
/// client.write_all(b"BF.ADD seen tamis\r\nBF.EXISTS seen tamis\r\n")?;
/// let mut replies = [0; 8];
/// client.read_exact(&mut replies)?;
/// assert_eq!(&replies, b":1\r\n:1\r\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Arc<SharedState>,
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
    http_address: Option<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub keyspace: Keyspace,
    pub clients: Clients,
    pub stats: Stats,
    pub http_warnings: Warnings,
    pub monitors: Arc<Monitors>,
    pub started_millis: u64,
    pub users: Users,
    /// Permits for copies of large values. Each copy takes as much memory again, which is not
    /// counted before the copy has a key or is sent.
    pub copies: Semaphore,
    /// Counts memory that belongs to no key.
    pub held: HeldMemory,
    /// The files that keep data across restarts; `None` without the append-only log.
    pub durable: Option<Durable>,
    config: RwLock<Arc<Config>>,
    /// A copy of the option `maxmemory`, which many commands read.
    max_memory_bytes: AtomicU64,
    /// The TLS configuration for new connections; `None` without TLS.
    pub tls: Option<RwLock<Arc<ServerConfig>>>,
    port: u16,
    threads: usize,
    is_stopping: AtomicBool,
    stopped: Notify,
}

/// A reply up to this length is not checked against `maxmemory`.
const SHORT_REPLY_BYTES: u64 = 256 << 10;

/// The number of large values that may be copied at a time. Further copies wait.
const COPIES: usize = 2;

impl Server {
    /// Starts a server. Its sockets are open when this returns.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if the server cannot start or the configuration is unsafe.
    pub fn start(mut config: Config) -> Result<Self, ServerError> {
        if let Some(bytes) = memory_of_machine() {
            config.filters.max_filter_bytes = bytes;
        }
        let users = Users::open(&config).map_err(ServerError::Users)?;
        if let Some(address) = config.guarded_address().filter(|_| users.default_user().is_open()) {
            return Err(ServerError::Unprotected { address });
        }
        let why = match config.tls_port {
            None if !config.listens_plain => {
                "there is nowhere to listen: give --port or --tls-port"
            }
            Some(port) if config.listens_plain && port == config.port && port != 0 => {
                "--port and --tls-port are the same: give another one, or say --port no"
            }
            _ => "",
        };
        if !why.is_empty() {
            return Err(ServerError::Ports { why });
        }
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
        let reserved = descriptors::reserved(&config, threads);
        let fitting = descriptors::fit(config.max_clients, reserved);
        if fitting == 0 {
            return Err(ServerError::Files { reserved });
        }
        if fitting < config.max_clients {
            tracing::warn!(
                maxclients = fitting,
                asked = config.max_clients,
                "maxclients was lowered to fit the limit of open files: raise the limit with ulimit -n"
            );
            config.max_clients = fitting;
        }
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
        let durable = config.append_only.then(|| Durable::open(&config, &keyspace));
        let durable = durable.transpose().map_err(ServerError::Durability)?;
        // After the lock of the folder is taken.
        let key = HashKey::key(&config).map_err(ServerError::HashKey)?;
        config.filters.set_hash_key(key);
        let shared = Arc::new(SharedState {
            keyspace,
            users,
            copies: Semaphore::new(COPIES),
            held: HeldMemory::default(),
            durable,
            clients: Clients::default(),
            stats: Stats::new(threads),
            http_warnings: Warnings::default(),
            monitors: Arc::default(),
            started_millis: now_millis(),
            max_memory_bytes: AtomicU64::new(config.max_memory_bytes),
            config: RwLock::new(Arc::new(config)),
            tls,
            port,
            threads,
            is_stopping: AtomicBool::new(false),
            stopped: Notify::new(),
        });
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
        let mut doors = Vec::new();
        for number in 0..threads {
            let (door, arrivals) = mpsc::unbounded_channel();
            doors.push(door);
            let shared = server.shared.clone();
            server.spawn(&format!("tamis-{number}"), move || acceptor::serve(&shared, arrivals))?;
        }
        let early = loading.map(Loading::end).unwrap_or_default();
        for (i, early) in early.into_iter().enumerate() {
            // The thread ends only with the server.
            _ = doors[i % doors.len()].send(Arrival::early(early, &server.shared.clients));
        }
        let shared = server.shared.clone();
        let plain = plain.into_iter().map(|listener| (listener, false));
        let listeners =
            plain.chain(over_tls.into_iter().map(|listener| (listener, true))).collect();
        server.spawn("tamis-door", move || acceptor::admit(&shared, listeners, &doors))?;
        if let Some(listener) = http {
            let shared = server.shared.clone();
            server.spawn("tamis-http", move || http::serve(&shared, listener))?;
        } else if server.shared.config().http_port == HttpPort::Auto {
            let port = HttpPort::USUAL;
            tracing::warn!(port, "the console is off: its port is in use; set another http-port");
        }
        Ok(server)
    }

    fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), ServerError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        match thread {
            Ok(thread) => {
                self.threads.push(thread);
                Ok(())
            }
            Err(error) => {
                self.stop();
                Err(ServerError::Thread(error))
            }
        }
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

    /// Returns the address of the console; `None` if the console is off.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<SharedState> {
        &self.shared
    }

    /// Stops the server. Each connection is closed after the commands that it is running.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns a handle that stops the server from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.shared.clone())
    }

    /// Returns a handle that reloads the TLS files from another thread.
    #[must_use]
    pub fn renewer(&self) -> Renewer {
        Renewer(self.shared.clone())
    }

    /// Waits until the server has ended.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotKept`] if the last changes could not be written.
    pub fn wait(mut self) -> Result<(), ServerError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), ServerError> {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a server thread panicked");
            }
        }
        // A snapshot in progress is abandoned: the write of the log must not wait for it.
        match &self.shared.durable {
            Some(durable) => durable.finish().map_err(|error| ServerError::NotKept { error }),
            None => Ok(()),
        }
    }
}

/// Stops a server from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<SharedState>);

impl Stopper {
    /// Stops the server, as [`Server::stop`] does.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Reloads the TLS files from another thread.
#[derive(Clone, Debug)]
pub struct Renewer(Arc<SharedState>);

impl Renewer {
    /// Reloads the TLS files. New connections use their current contents. Returns false if the
    /// server does not use TLS.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if the files cannot be used. Nothing changes then.
    pub fn renew(&self) -> Result<bool, TlsError> {
        self.0.renew_tls()
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

impl SharedState {
    pub fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    /// Reads options under the read lock, without cloning the `Arc`.
    pub fn read_config<R>(&self, read: impl FnOnce(&Config) -> R) -> R {
        read(&self.config.read())
    }

    /// Changes the options, all or none. Reloads the TLS files if a changed option names one.
    pub fn change_config(
        &self,
        is_about_tls: bool,
        change: impl FnOnce(&mut Config) -> Result<(), Reply>,
    ) -> Reply {
        let mut current = self.config.write();
        let mut changed = (**current).clone();
        match change(&mut changed) {
            Ok(()) => {
                if changed.max_clients > current.max_clients {
                    let reserved = descriptors::reserved(&changed, self.threads);
                    let fitting = descriptors::fit(changed.max_clients, reserved);
                    if fitting < changed.max_clients {
                        return tamis_commands::text::server::max_clients(fitting);
                    }
                }
                if let Some(tls) = self.tls.as_ref().filter(|_| is_about_tls) {
                    match tls::read(&changed) {
                        Ok(read) => *tls.write() = read,
                        Err(error) => {
                            return tamis_commands::text::server::options(error);
                        }
                    }
                }
                if let Some(durable) = &self.durable {
                    durable.log.set_sync(changed.sync);
                }
                if changed.password != current.password {
                    self.users.set_default_password(&changed.password);
                    self.monitors.users_changed();
                }
                self.max_memory_bytes.store(changed.max_memory_bytes, Ordering::Relaxed);
                *current = Arc::new(changed);
                Reply::ok()
            }
            Err(refusal) => refusal,
        }
    }

    /// Reloads the TLS files; false if the server does not use TLS.
    fn renew_tls(&self) -> Result<bool, TlsError> {
        let Some(tls) = &self.tls else { return Ok(false) };
        // Held, so that a reload by a concurrent CONFIG SET is not undone.
        let config = self.config.read();
        *tls.write() = tls::read(&config)?;
        Ok(true)
    }

    /// Returns the user if the password is correct. The comparison takes constant time.
    pub fn authenticate(&self, user: &[u8], password: &[u8]) -> Option<Arc<User>> {
        self.users.authenticate(user, password)
    }

    /// Logs a command that changed a value. The caller holds the lock of its key.
    pub fn log_command(&self, argv: Argv<'_>, env: &Env<'_>) {
        if let Some(durable) = &self.durable {
            let argv = argv.to_vec();
            durable.log.append(&Record::Command { now_millis: env.now_millis, argv });
        }
    }

    /// Logs commands that take effect together. The caller holds the locks of their keys.
    pub fn log_together<'w>(&self, commands: impl Iterator<Item = Vec<&'w [u8]>>, env: &Env<'_>) {
        if let Some(durable) = &self.durable {
            let now_millis = env.now_millis;
            let records = commands.map(|argv| Record::Command { now_millis, argv });
            durable.log.append_all(&records.collect::<Vec<_>>());
        }
    }

    /// Logs items that were new to a Bloom filter. The caller holds the lock of its key.
    pub fn log_inserted(&self, key: &[u8], batch: &Batch<'_>, now_millis: u64) {
        if let Some(durable) = &self.durable {
            let hashes = batch.new_hashes();
            durable.log.append(&Record::Inserted { now_millis, key, hashes });
        }
    }

    /// Logs the changes of commands about one key that ran together. The caller holds the lock of
    /// the key.
    pub fn log_outcome<R>(
        &self,
        key: &[u8],
        commands: &[Argv<'_>],
        outcome: &Outcome<R>,
        env: &Env<'_>,
    ) {
        let Some(durable) = &self.durable else { return };
        let now_millis = env.now_millis;
        let created = outcome.created.as_ref();
        let created = created.map(|image| Record::Image { key, expires_millis: None, image });
        let mut records: Vec<Record<'_>> = created.into_iter().collect();
        match &outcome.change {
            Change::None => {}
            Change::Words => records.extend(
                commands.iter().map(|argv| Record::Command { now_millis, argv: argv.to_vec() }),
            ),
            Change::Replaced(argv) => {
                let argv = argv.iter().map(Vec::as_slice).collect();
                records.push(Record::Command { now_millis, argv });
            }
            Change::Inserted(hashes) => {
                records.push(Record::Inserted { now_millis, key, hashes: hashes.clone() });
            }
        }
        if !records.is_empty() {
            durable.log.append_all(&records);
        }
    }

    /// Returns the memory that `maxmemory` limits, in bytes: keys and values, values that
    /// `FLUSHALL` is freeing, queued transactions, copies and dumps in progress, and replies that
    /// clients have not read yet.
    pub fn used_memory(&self) -> u64 {
        self.unheld_memory() + self.held.bytes()
    }

    /// Returns the [used memory](Self::used_memory) without the [held memory](HeldMemory), in
    /// bytes.
    fn unheld_memory(&self) -> u64 {
        self.keyspace.memory_bytes() + self.keyspace.freeing_bytes() + self.clients.output.bytes()
    }

    /// Returns how much memory may still be allocated under `maxmemory`, in bytes; `u64::MAX`
    /// without a limit.
    pub fn memory_left(&self) -> u64 {
        match self.max_memory_bytes.load(Ordering::Relaxed) {
            0 => u64::MAX,
            max => max.saturating_sub(self.used_memory()),
        }
    }

    /// Counts `bytes` bytes as used until the result is dropped; `None` if they exceed `maxmemory`.
    /// If several threads try at the same time, as many succeed as fit.
    pub fn reserve_memory(&self, bytes: u64) -> Option<Hold> {
        match self.max_memory_bytes.load(Ordering::Relaxed) {
            0 => Some(self.held.hold(bytes)),
            max => self.held.try_hold(bytes, max.checked_sub(self.unheld_memory())?),
        }
    }

    /// Returns the maximum length of a reply with a value, in bytes. A long reply is in memory up
    /// to three times: as a copy of the value, as its bytes, and encoded.
    pub fn max_reply_bytes(&self, value: Option<&Value>) -> u64 {
        match value {
            Some(value) if value.longest_reply_bytes() > SHORT_REPLY_BYTES => {
                self.max_long_reply_bytes()
            }
            _ => u64::MAX,
        }
    }

    /// Returns the maximum length of a reply with values that may be long, in bytes.
    pub fn max_long_reply_bytes(&self) -> u64 {
        (self.memory_left() / 3).max(SHORT_REPLY_BYTES)
    }

    /// Tests whether a new value fits under `maxmemory`.
    pub fn has_memory_for(&self, value: Option<&Value>) -> bool {
        let left_bytes = self.memory_left();
        left_bytes == u64::MAX || value.is_none_or(|value| value.heap_bytes() <= left_bytes)
    }

    /// Returns why changes cannot be logged at the moment, if they cannot.
    pub fn log_failure(&self) -> Option<String> {
        self.durable.as_ref()?.log.failure()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
    }

    /// Waits until the server stops.
    pub async fn stopping(&self) {
        let mut stopped = std::pin::pin!(self.stopped.notified());
        // After this line a notification arrives; an earlier stop has set the flag.
        stopped.as_mut().enable();
        if !self.is_stopping.load(Ordering::Acquire) {
            stopped.await;
        }
    }
}

/// Returns the memory of the machine in bytes; `None` if the system does not report it.
pub(crate) fn memory_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Creates the runtime of one thread. It runs its tasks without the second queue of a `LocalSet`.
pub(crate) fn runtime() -> LocalRuntime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .expect("the system gives a thread its event queue")
}
