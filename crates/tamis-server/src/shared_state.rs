//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use tamis_commands::text::server;
use tamis_commands::{Argv, Batch, Change, Env, Outcome, Value};
use tamis_resp::Reply;
use tokio::sync::{Notify, Semaphore};
use tokio_rustls::rustls::ServerConfig;

use crate::config::Config;
use crate::connection::clients::Clients;
use crate::connection::cross_protocol::Warnings;
use crate::connection::tls::{self, TlsError};
use crate::keyspace::Keyspace;
use crate::persistence::{Durable, Record};
use crate::session::monitors::Monitors;
use crate::stats::Stats;
use crate::system::clock::now_millis;
use crate::system::descriptors;
use crate::system::held_memory::{HeldMemory, Hold};
use crate::users::Users;

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
    /// Permits for copies of large values. The permits limit the copies, because each copy takes as
    /// much memory as its value.
    pub copies: Semaphore,
    /// Counts the memory that belongs to no key.
    pub held: HeldMemory,
    /// The files that keep data across restarts. The value is `None` if the append-only log is off.
    pub durable: Option<Durable>,
    config: RwLock<Arc<Config>>,
    /// A copy of the option `maxmemory`, which many commands read.
    max_memory_bytes: AtomicU64,
    /// The TLS configuration for new connections. The value is `None` if the server does not use
    /// TLS.
    pub tls: Option<RwLock<Arc<ServerConfig>>>,
    pub port: u16,
    pub threads: usize,
    is_stopping: AtomicBool,
    stopped: Notify,
}

/// A reply of at most this length, in bytes, is not checked against `maxmemory`.
const SHORT_REPLY_BYTES: u64 = 256 << 10;

/// The size of a short change in the log, in bytes.
const SHORT_CHANGE_BYTES: u64 = 16 << 10;

/// The number of large values that may be copied at the same time. If this number of copies is
/// running, any further copy waits.
const COPIES: usize = 2;

impl SharedState {
    /// Creates the state of a server after the server has loaded its data.
    pub fn new(
        config: Config,
        users: Users,
        keyspace: Keyspace,
        durable: Option<Durable>,
        tls: Option<RwLock<Arc<ServerConfig>>>,
        port: u16,
        threads: usize,
    ) -> Self {
        Self {
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
        }
    }

    pub fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    /// Reads options under the read lock, without cloning the `Arc`.
    pub fn read_config<R>(&self, read: impl FnOnce(&Config) -> R) -> R {
        read(&self.config.read())
    }

    /// Changes the options: either all changes apply or no change applies. Reloads the TLS files if
    /// a changed option is the path of a TLS file.
    pub fn change_config(
        &self,
        is_about_tls: bool,
        change: impl FnOnce(&mut Config) -> Result<(), Reply>,
    ) -> Reply {
        let mut current = self.config.write();
        let mut changed = (**current).clone();
        if let Err(refusal) = change(&mut changed) {
            return refusal;
        }
        if changed.max_clients > current.max_clients {
            let reserved = descriptors::reserved(&changed, self.threads);
            let fitting = descriptors::fit(changed.max_clients, reserved);
            if fitting < changed.max_clients {
                return server::max_clients(fitting);
            }
        }
        if let Some(tls) = self.tls.as_ref().filter(|_| is_about_tls) {
            match tls::read(&changed) {
                Ok(read) => *tls.write() = read,
                Err(error) => return server::options(error),
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

    /// Reloads the TLS files. Returns false if the server does not use TLS.
    pub fn reload_tls(&self) -> Result<bool, TlsError> {
        let Some(tls) = &self.tls else { return Ok(false) };
        // The read lock blocks a concurrent `CONFIG SET`. Without the lock, this reload could
        // overwrite the TLS configuration that a concurrent `CONFIG SET` has loaded.
        let config = self.config.read();
        *tls.write() = tls::read(&config)?;
        Ok(true)
    }

    /// Logs a command that changed a value. The caller holds the lock of the command's key.
    pub fn log_command(&self, argv: Argv<'_>, env: &Env<'_>) {
        self.log_together(std::iter::once(argv.to_vec()), env);
    }

    /// Logs several commands as one atomic change. The caller holds the locks of all keys of the
    /// commands.
    pub fn log_together<'w>(&self, commands: impl Iterator<Item = Vec<&'w [u8]>>, env: &Env<'_>) {
        if let Some(durable) = &self.durable {
            let now_millis = env.now_millis;
            let records = commands.map(|argv| Record::Command { now_millis, argv });
            durable.log.append_all(&records.collect::<Vec<_>>());
        }
    }

    /// Logs the new items of a Bloom filter. The caller holds the lock of the filter's key.
    pub fn log_inserted(&self, key: &[u8], batch: &Batch<'_>, now_millis: u64) {
        if let Some(durable) = &self.durable {
            let hashes = batch.new_hashes();
            durable.log.append(&Record::Inserted { now_millis, key, hashes });
        }
    }

    /// Logs the changes of several commands that ran as one batch on one key. The caller holds the
    /// lock of the key.
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
        let created =
            created.map(|serialization| Record::Value { key, expires_millis: None, serialization });
        let mut records: Vec<Record<'_>> = created.into_iter().collect();
        let command = |argv| Record::Command { now_millis, argv };
        match &outcome.change {
            Change::None => {}
            Change::Argv => records.extend(commands.iter().map(|argv| command(argv.to_vec()))),
            Change::Replaced(argv) => {
                records.push(command(argv.iter().map(Vec::as_slice).collect()));
            }
            Change::Inserted(hashes) => {
                records.push(Record::Inserted { now_millis, key, hashes: hashes.clone() });
            }
        }
        if !records.is_empty() {
            durable.log.append_all(&records);
        }
    }

    /// Returns the option `maxmemory` in bytes. The value 0 means that memory has no limit.
    pub fn max_memory(&self) -> u64 {
        self.max_memory_bytes.load(Ordering::Relaxed)
    }

    /// Returns the memory that `maxmemory` limits, in bytes. This memory includes:
    ///
    /// * keys and values, and values that `FLUSHALL` is freeing
    /// * queued transactions, and commands that are still arriving
    /// * copies and dumps in progress
    /// * replies that clients have not read yet
    /// * users
    pub fn used_memory(&self) -> u64 {
        self.unheld_memory() + self.held.bytes()
    }

    /// Returns the [used memory](Self::used_memory) without the [held memory](HeldMemory), in
    /// bytes.
    fn unheld_memory(&self) -> u64 {
        self.keyspace.memory_bytes()
            + self.keyspace.freeing_bytes()
            + self.clients.output.bytes()
            + self.users.heap_bytes()
    }

    /// Returns the memory that the server may use in addition to the used memory under `maxmemory`,
    /// in bytes. Returns `u64::MAX` if there is no limit.
    pub fn memory_left(&self) -> u64 {
        match self.max_memory() {
            0 => u64::MAX,
            max => max.saturating_sub(self.used_memory()),
        }
    }

    /// Counts `bytes` bytes as used until the returned `Hold` is dropped. Returns `None` if the
    /// used memory would exceed `maxmemory`. Concurrent calls of this method cannot exceed
    /// `maxmemory` together.
    pub fn reserve_memory(&self, bytes: u64) -> Option<Hold> {
        match self.max_memory() {
            0 => Some(self.held.hold(bytes)),
            max => self.held.try_hold(bytes, max.checked_sub(self.unheld_memory())?),
        }
    }

    /// Returns the maximum length of a reply that contains a value, in bytes. A long reply takes up
    /// to three times its length in memory: the copy of the value, the serialized value, and the
    /// encoded reply.
    pub fn max_reply_bytes(&self, value: Option<&Value>) -> u64 {
        match value {
            Some(value) if value.longest_reply_bytes() > SHORT_REPLY_BYTES => {
                self.max_long_reply_bytes()
            }
            _ => u64::MAX,
        }
    }

    /// Returns the maximum length of a reply that contains several long values, in bytes.
    pub fn max_long_reply_bytes(&self) -> u64 {
        (self.memory_left() / 3).max(SHORT_REPLY_BYTES)
    }

    /// Tests whether a new value fits under `maxmemory`.
    pub fn has_memory_for(&self, value: Option<&Value>) -> bool {
        let left_bytes = self.memory_left();
        left_bytes == u64::MAX || value.is_none_or(|value| value.heap_bytes() <= left_bytes)
    }

    /// Tests whether the log can record a change of at most `bytes` bytes, before the change is
    /// applied. Returns a reservation of disk space. The caller keeps the reservation until the
    /// change is logged. Returns `None` if there is no log.
    ///
    /// # Errors
    ///
    /// The text of the error reply if the log cannot be written. On an error, the command must
    /// change nothing.
    pub fn admit_change(&self, bytes: u64) -> Result<Option<Hold>, String> {
        let log = self.durable.as_ref().map(|durable| &durable.log);
        log.map(|log| log.admit(bytes)).transpose().map_err(|why| server::no_log(&why))
    }

    /// Tests whether the log can record an image (a serialized value) of at most `bytes` bytes,
    /// before the command is applied. The caller has exclusive access to the keys. Returns a
    /// reservation of disk space. The caller keeps the reservation until the image is logged.
    ///
    /// Returns `None` if there is no log, or if a transaction runs: a transaction reserves the
    /// space for all its serialized values until its end.
    ///
    /// # Errors
    ///
    /// The text of the error reply if the log cannot be written. On an error, the command must
    /// change nothing.
    pub fn admit_image(&self, bytes: u64) -> Result<Option<Hold>, String> {
        let Some(durable) = &self.durable else { return Ok(None) };
        durable.log.admit_image(bytes).map_err(|why| server::no_log(&why))
    }

    /// Returns the reason why the log cannot record a short change now. Returns `None` if the log
    /// can record the change.
    pub fn log_failure(&self) -> Option<String> {
        self.durable.as_ref()?.log.admit(SHORT_CHANGE_BYTES).err()
    }

    /// Stops the server: sets the flag, wakes the tasks that wait in [`stopping`](Self::stopping),
    /// and requests the end of every connection. Callable from any thread.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
        // The flag is set first: a connection that is added after this list is read finds the flag.
        self.clients.all().iter().for_each(|client| client.end_request.send());
    }

    /// Tests whether [`stop`](Self::stop) was called.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Waits until the server stops.
    pub async fn stopping(&self) {
        let mut stopped = std::pin::pin!(self.stopped.notified());
        // After `enable`, each call of `stop` wakes this task. If `stop` was called before
        // `enable`, the flag is already set.
        stopped.as_mut().enable();
        if !self.is_stopping() {
            stopped.await;
        }
    }
}
