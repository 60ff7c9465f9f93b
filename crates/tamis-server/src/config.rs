//! The options of a server, with the names that Redis uses. The configuration file, the
//! environment, the flags and `CONFIG SET` use the same names.

mod bind;
mod by_name;
pub(crate) mod config_file;
pub(crate) mod config_option;
mod error;
pub(crate) mod hash_key;
mod network_options;
mod options;
mod output_limit;
mod values;

use std::net::IpAddr;
use std::path::PathBuf;

use tamis_commands::Settings;

use crate::config::hash_key::HashKey;
use crate::persistence::FsyncPolicy;
pub use bind::BindAddress;
pub use error::{ConfigError, OptionValueError};
pub use output_limit::OutputLimit;

/// The options of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `bind`: the addresses or host names to listen on.
    pub bind: Vec<BindAddress>,
    /// `port`: the port for clients without TLS. The value 0 selects a free port.
    pub port: u16,
    /// False for `port no`, with which the server accepts only TLS connections.
    pub listens_plain: bool,
    /// `tls-port`: the port for clients with TLS. The value 0 selects a free port, and `None`
    /// disables TLS.
    pub tls_port: Option<u16>,
    /// `tls-cert-file`: the certificate chain of the server, up to a root certificate, in PEM.
    pub tls_cert_file: Option<PathBuf>,
    /// `tls-key-file`: the private key of the server, in PEM.
    pub tls_key_file: Option<PathBuf>,
    /// `tls-ca-cert-file`: the root certificates for client certificates, in PEM.
    pub tls_ca_cert_file: Option<PathBuf>,
    /// `tls-auth-clients`: whether clients must present certificates.
    pub tls_auth_clients: ClientCertificates,
    /// `http-port`: the port of the console.
    pub http_port: HttpPort,
    /// `http-bind`: the address of the console.
    pub http_bind: IpAddr,
    /// `requirepass`: the password of the default user. An empty text means no password.
    pub password: String,
    /// `protected-mode`: if true, the server refuses to start if an address is a network address
    /// and no password is set.
    pub protected_mode: bool,
    /// `io-threads`: the number of threads that serve clients. The value 0 means one thread per CPU
    /// core.
    pub threads: usize,
    /// `maxclients`: the maximum number of client connections.
    pub max_clients: usize,
    /// `client-output-buffer-limit`: the maximum bytes of unread replies per client.
    pub output_limit: OutputLimit,
    /// `client-query-buffer-limit`, in bytes. The server disconnects a client if the client's
    /// incomplete command takes more memory than this limit.
    pub max_query_bytes: u64,
    /// `maxmemory`, in bytes. Above this limit, the server rejects commands that add data. The
    /// value 0 means that memory has no limit.
    pub max_memory_bytes: u64,
    /// `timeout`, in seconds. The server closes a connection that is idle for longer than this
    /// timeout. The value 0 disables the timeout.
    pub timeout_seconds: u64,
    /// `appendonly`: whether the server writes changes to a log. Without a log, all data is lost
    /// when the server ends.
    pub append_only: bool,
    /// `enable-debug-command`: the clients that may run `DEBUG`.
    pub debug_command: DebugCommand,
    /// `dir`: the directory of the log and the snapshots.
    pub dir: PathBuf,
    /// `appendfsync`: when the server syncs the log to disk.
    pub sync: FsyncPolicy,
    /// `auto-aof-rewrite-min-size`, in bytes. The server writes a new snapshot when the log has at
    /// least this length and is twice as long as the last snapshot. After the write, the new
    /// snapshot replaces the log.
    pub rewrite_bytes: u64,
    /// `aclfile`: the file that stores the users.
    pub users_file: Option<PathBuf>,
    /// `acllog-max-len`: the maximum number of entries in `ACL LOG`.
    pub max_refusals: usize,
    /// `slowlog-log-slower-than`, in microseconds. The slow log records commands that take longer
    /// than this limit. A negative value disables the slow log.
    pub slow_micros: i64,
    /// `slowlog-max-len`: the maximum number of entries in the slow log.
    pub slow_entries: usize,
    /// `metrics-max-filters`: the number of filters with individual metrics. The server selects the
    /// filters that are closest to their limits.
    pub metrics_max_filters: usize,
    /// `hash-key`: the secret hash key of new filters.
    pub hash_key: HashKey,
    /// The options `bf-*` and `cf-*` for new filters.
    pub filters: Settings,
    /// The configuration file that was [read](Self::read_file). `CONFIG REWRITE` writes to the
    /// configuration file.
    pub file: Option<ConfigFile>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bind: vec![IpAddr::from([127, 0, 0, 1]).into()],
            port: 6379,
            listens_plain: true,
            tls_port: None,
            tls_cert_file: None,
            tls_key_file: None,
            tls_ca_cert_file: None,
            tls_auth_clients: ClientCertificates::default(),
            http_port: HttpPort::Off,
            http_bind: IpAddr::from([127, 0, 0, 1]),
            password: String::new(),
            protected_mode: true,
            threads: 0,
            max_clients: 10_000,
            output_limit: OutputLimit::default(),
            max_query_bytes: 1 << 30,
            max_memory_bytes: 0,
            timeout_seconds: 0,
            append_only: true,
            debug_command: DebugCommand::No,
            dir: "tamis-data".into(),
            sync: FsyncPolicy::EverySecond,
            rewrite_bytes: 64 << 20,
            users_file: None,
            max_refusals: 128,
            slow_micros: 10_000,
            slow_entries: 128,
            metrics_max_filters: 100,
            hash_key: HashKey::Random,
            filters: Settings::default(),
            file: None,
        }
    }
}

/// Selects the port of the console, or disables the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpPort {
    /// The server does not offer the console.
    Off,
    /// The console uses the [default](Self::DEFAULT) port if the default port is free.
    Auto,
    /// The console uses the port with this number, or any free port if the number is 0.
    At(u16),
}

impl HttpPort {
    /// The default port of the console.
    pub const DEFAULT: u16 = 8379;
}

/// The clients that may run `DEBUG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugCommand {
    /// No client may run `DEBUG`.
    No,
    /// A client may run `DEBUG` if the client connects from a loopback address of this machine.
    Local,
    /// A client may run `DEBUG` if the user of the client has the permission.
    Yes,
}

/// Selects which clients must present a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// The server refuses a client without a certificate.
    #[default]
    Required,
    /// A client may connect without a certificate. The server refuses a client with an invalid
    /// certificate.
    Optional,
    /// The server does not request a certificate.
    NotRequested,
}

/// The file from which options were [read](Config::read_file).
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigFile {
    pub(crate) path: PathBuf,
    /// The values of all options before the server read the file. An option that the file does not
    /// set has its value from `defaults`.
    pub(crate) defaults: Vec<(&'static str, String)>,
}

impl Config {
    /// Returns a non-loopback address that the server listens on in protected mode. Returns `None`
    /// if every address is a loopback address.
    pub(crate) fn network_address(&self) -> Option<IpAddr> {
        let console = (self.http_port != HttpPort::Off).then_some(self.http_bind);
        let all = self.bind.iter().flat_map(BindAddress::addresses).copied().chain(console);
        let outside = all.into_iter().find(|address| !address.is_loopback());
        outside.filter(|_| self.protected_mode)
    }
}
