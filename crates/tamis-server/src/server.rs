//! The server: what all share, threads, the end.

mod descriptors;
mod error;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::RwLock;
use tamis_commands::{Argv, Change, Env, Outcome, Value};
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

/// A server that runs, until it is [stopped](Self::stop) or dropped.
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

/// What all connections share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub keyspace: Keyspace,
    pub clients: Clients,
    pub stats: Stats,
    pub http_warnings: Warnings,
    pub monitors: Arc<Monitors>,
    pub started_millis: u64,
    pub users: Users,
    /// Permits for copies of large values: each copy takes as much memory again, which is not counted before the copy has a key
    /// or is sent.
    pub copies: Semaphore,
    /// Memory that no key has.
    pub held: HeldMemory,
    /// What is kept over the server's end, if anything is.
    pub durable: Option<Durable>,
    config: RwLock<Arc<Config>>,
    /// `maxmemory` of the options, which many commands ask for.
    max_memory_bytes: AtomicU64,
    /// What greets clients over TLS, if anything does.
    pub tls: Option<RwLock<Arc<ServerConfig>>>,
    port: u16,
    threads: usize,
    is_stopping: AtomicBool,
    stopped: Notify,
}

/// A reply up to this length is not checked against `maxmemory`.
const SHORT_REPLY_BYTES: u64 = 256 << 10;

/// How many large values are copied at a time: further copies wait.
const COPIES: usize = 2;

impl Server {
    /// Starts a server, which has its sockets open when this returns.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if it cannot listen, or should not.
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
        // Behind the lock of the folder.
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
            // The thread ends with the server only.
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

    /// Returns where the server listens, without TLS.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns where the server listens for TLS.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Returns where the console is, if there is one.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<SharedState> {
        &self.shared
    }

    /// Ends the server: connections are closed after the commands that they run.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns what ends the server from another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.shared.clone())
    }

    /// Returns a handle that reads the files of TLS again from another thread.
    #[must_use]
    pub fn renewer(&self) -> Renewer {
        Renewer(self.shared.clone())
    }

    /// Waits until the server has ended.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotKept`] if its last changes could not be written.
    pub fn wait(mut self) -> Result<(), ServerError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), ServerError> {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a server thread panicked");
            }
        }
        // A snapshot that is still being written is given up: what the log has must not wait for it.
        match &self.shared.durable {
            Some(durable) => durable.finish().map_err(|error| ServerError::NotKept { error }),
            None => Ok(()),
        }
    }
}

/// Ends a server from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<SharedState>);

impl Stopper {
    /// Ends the server, as [`Server::stop`] does.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Reads the files of TLS again, from another thread.
#[derive(Clone, Debug)]
pub struct Renewer(Arc<SharedState>);

impl Renewer {
    /// Reads the files of TLS again: new connections use what they hold now. Returns false if the server does not speak TLS.
    ///
    /// # Errors
    ///
    /// [`TlsError`] if they cannot be used: nothing has changed then.
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

    /// Changes the options, all or none. Reads the files of TLS again if a changed option names one.
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

    /// Reads the files of TLS again; false if there are none.
    fn renew_tls(&self) -> Result<bool, TlsError> {
        let Some(tls) = &self.tls else { return Ok(false) };
        // Held, so that what CONFIG SET reads meanwhile is not undone.
        let config = self.config.read();
        *tls.write() = tls::read(&config)?;
        Ok(true)
    }

    /// Returns a user that has this password. The comparison takes a constant time.
    pub fn authenticate(&self, user: &[u8], password: &[u8]) -> Option<Arc<User>> {
        self.users.authenticate(user, password)
    }

    /// Logs a command that changed a value. The lock of its key is held.
    pub fn log_command(&self, argv: Argv<'_>, env: &Env<'_>) {
        if let Some(durable) = &self.durable {
            let argv = argv.to_vec();
            durable.log.append(&Record::Command { now_millis: env.now_millis, argv });
        }
    }

    /// Logs commands that take effect together. The locks of their keys are held.
    pub fn log_together<'w>(&self, commands: impl Iterator<Item = Vec<&'w [u8]>>, env: &Env<'_>) {
        if let Some(durable) = &self.durable {
            let now_millis = env.now_millis;
            let records = commands.map(|argv| Record::Command { now_millis, argv });
            durable.log.append_all(&records.collect::<Vec<_>>());
        }
    }

    /// Logs items that were new to a Bloom filter. The lock of its key is held.
    pub fn log_inserted(&self, key: &[u8], hashes: Vec<u64>, now_millis: u64) {
        if let Some(durable) = &self.durable {
            durable.log.append(&Record::Inserted { now_millis, key, hashes });
        }
    }

    /// Logs what a command about one key has done. The lock of the key is held.
    pub fn log_outcome(&self, key: &[u8], argv: Argv<'_>, outcome: &Outcome, env: &Env<'_>) {
        let Some(durable) = &self.durable else { return };
        let now_millis = env.now_millis;
        let created = outcome.created.as_ref();
        let created = created.map(|image| Record::Image { key, expires_millis: None, image });
        let change = match &outcome.change {
            Change::None => None,
            Change::Words => Some(Record::Command { now_millis, argv: argv.to_vec() }),
            Change::Replaced(argv) => {
                let argv = argv.iter().map(Vec::as_slice).collect();
                Some(Record::Command { now_millis, argv })
            }
            Change::Inserted(hashes) => {
                Some(Record::Inserted { now_millis, key, hashes: hashes.clone() })
            }
        };
        match (created, change) {
            (None, None) => {}
            (None, Some(change)) => durable.log.append(&change),
            (Some(created), change) => {
                let records: Vec<Record<'_>> = [created].into_iter().chain(change).collect();
                durable.log.append_all(&records);
            }
        }
    }

    /// Returns the memory that `maxmemory` limits, in bytes: that of keys and values, of those that `FLUSHALL` frees, transactions that wait, copies and
    /// dumps on their way, and replies that clients have not read yet.
    pub fn used_memory(&self) -> u64 {
        self.unheld_memory() + self.held.bytes()
    }

    /// Returns the [used memory](Self::used_memory) without what is [held](HeldMemory), in bytes.
    fn unheld_memory(&self) -> u64 {
        self.keyspace.memory_bytes() + self.keyspace.freeing_bytes() + self.clients.output.bytes()
    }

    /// Returns how much memory may still be taken under `maxmemory`, in bytes; `u64::MAX` without a limit.
    pub fn memory_left(&self) -> u64 {
        match self.max_memory_bytes.load(Ordering::Relaxed) {
            0 => u64::MAX,
            max => max.saturating_sub(self.used_memory()),
        }
    }

    /// Counts `bytes` bytes as used until the result is dropped; `None` if they do not fit under `maxmemory`. Of several threads
    /// that try at once, as many succeed as there is memory for.
    pub fn reserve_memory(&self, bytes: u64) -> Option<Hold> {
        match self.max_memory_bytes.load(Ordering::Relaxed) {
            0 => Some(self.held.hold(bytes)),
            max => self.held.try_hold(bytes, max.checked_sub(self.unheld_memory())?),
        }
    }

    /// Returns the longest reply that may be made of a value, in bytes. A long one is in memory up to three times: as a copy of
    /// the value, as its bytes, and encoded.
    pub fn max_reply_bytes(&self, value: Option<&Value>) -> u64 {
        match value {
            Some(value) if value.longest_reply_bytes() > SHORT_REPLY_BYTES => {
                self.max_long_reply_bytes()
            }
            _ => u64::MAX,
        }
    }

    /// Returns the longest reply that may be made of values that may be long, in bytes.
    pub fn max_long_reply_bytes(&self) -> u64 {
        (self.memory_left() / 3).max(SHORT_REPLY_BYTES)
    }

    /// Returns whether a value that was just made fits under `maxmemory`.
    pub fn has_memory_for(&self, value: Option<&Value>) -> bool {
        let left_bytes = self.memory_left();
        left_bytes == u64::MAX || value.is_none_or(|value| value.heap_bytes() <= left_bytes)
    }

    /// Says why changes cannot be kept at the moment, if so.
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
        // From here on a notification arrives; before, the flag is set.
        stopped.as_mut().enable();
        if !self.is_stopping.load(Ordering::Acquire) {
            stopped.await;
        }
    }
}

/// Returns the memory of the machine; `None` if the system does not report it.
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
