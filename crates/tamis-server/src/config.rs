//! The options of a server, with Redis's names. A file, the environment, flags and `CONFIG SET`
//! share the same names.

mod bind;
mod config_option;
mod network_options;
mod options;
mod output_limit;
mod values;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use tamis_commands::{SettingError, Settings};

use crate::config_file::ConfigFile;
use crate::hash_key::HashKey;
use crate::persistence::Sync;
use crate::tls::ClientCertificates;
pub use bind::{BindAddress, NoAddress};
pub use config_option::{ConfigOption, OptionGroup};
use options::{Entry, entries};
pub use output_limit::{OutputLimit, OutputLimitError};

/// The options of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `bind`: the addresses or host names to listen on.
    pub bind: Vec<BindAddress>,
    /// `port`; 0 selects a free port.
    pub port: u16,
    /// False for `port no`: the server then accepts only TLS connections.
    pub listens_plain: bool,
    /// `tls-port`: the port for TLS; 0 selects a free port, `None` disables TLS.
    pub tls_port: Option<u16>,
    /// `tls-cert-file`: the certificate chain of the server up to a root, in PEM.
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
    /// `requirepass`: the password; empty for no password.
    pub password: String,
    /// `protected-mode`: whether to refuse to listen on a non-loopback address without a password.
    pub protected_mode: bool,
    /// `io-threads`: the number of threads that serve clients; 0 for one per core.
    pub threads: usize,
    /// `maxclients`: the maximum number of connections.
    pub max_clients: usize,
    /// `client-output-buffer-limit`: the maximum bytes of unread replies per client.
    pub output_limit: OutputLimit,
    /// `client-query-buffer-limit`, in bytes: the server disconnects a client whose incomplete
    /// command takes more memory.
    pub max_query_bytes: u64,
    /// `maxmemory`, in bytes: above it the server rejects commands that add data; 0 for no limit.
    pub max_memory_bytes: u64,
    /// `timeout`, in seconds: the server closes a connection that is idle for longer; 0 for never.
    pub timeout_seconds: u64,
    /// `appendonly`: whether the server writes changes to a log. Without a log, all data is lost
    /// when the server ends.
    pub append_only: bool,
    /// `enable-debug-command`: the clients that may run `DEBUG`.
    pub debug_command: DebugCommand,
    /// `dir`: the directory of the log and the snapshots.
    pub dir: PathBuf,
    /// `appendfsync`: when the server syncs the log to disk.
    pub sync: Sync,
    /// `auto-aof-rewrite-min-size`, in bytes: the server replaces a log of at least this length by
    /// a new snapshot when it is twice as long as its snapshot.
    pub rewrite_bytes: u64,
    /// `aclfile`: the file of users.
    pub users_file: Option<PathBuf>,
    /// `acllog-max-len`: the maximum number of entries in `ACL LOG`.
    pub max_refusals: usize,
    /// `slowlog-log-slower-than`, in microseconds: the slow log records commands that take longer;
    /// negative for none.
    pub slow_micros: i64,
    /// `slowlog-max-len`: the maximum number of entries in the slow log.
    pub slow_entries: usize,
    /// `metrics-max-filters`: the number of filters with individual metrics. The server selects
    /// those closest to their limits.
    pub metrics_max_filters: usize,
    /// `hash-key`: the secret hash key of new filters.
    pub hash_key: HashKey,
    /// `bf-*` and `cf-*`.
    pub filters: Settings,
    /// The file from which the options were [read](Self::read_file). `CONFIG REWRITE` writes to it.
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
            sync: Sync::EverySecond,
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

/// Whether the server serves a console, and on which port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpPort {
    /// No console.
    Off,
    /// The [usual](Self::USUAL) port, if it is free.
    Auto,
    /// This port; 0 selects a free port.
    At(u16),
}

impl HttpPort {
    /// The default port.
    pub const USUAL: u16 = 8379;
}

/// The clients that may run `DEBUG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugCommand {
    /// No client.
    No,
    /// Clients that connect from this machine's loopback addresses.
    Local,
    /// Every client with the permission.
    Yes,
}

/// Why an option rejects a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No option has this name.
    Unknown {
        /// The unknown name.
        name: String,
    },
    /// The value is invalid for this option.
    Invalid {
        /// The option.
        name: &'static str,
        /// The values that the option accepts.
        expected: &'static str,
    },
    /// The option cannot be changed while the server runs.
    Fixed {
        /// The option.
        name: &'static str,
    },
    /// A setting of new filters rejects the value.
    Filters(SettingError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unknown { name } => write!(f, "there is no option {name:?}"),
            ConfigError::Invalid { name, expected } => {
                write!(f, "argument must be {expected} for '{name}'")
            }
            ConfigError::Fixed { name } => write!(f, "can't set immutable config '{name}'"),
            ConfigError::Filters(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Returns every option that [`set`](Self::set) accepts, sorted by group.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_server::Config;
    ///
    /// let options = Config::options();
    /// assert_eq!(options.iter().find(|it| it.name == "port").unwrap().value, "PORT");
    /// assert_eq!(options.len(), Config::default().all().count());
    /// ```
    #[must_use]
    pub fn options() -> Vec<ConfigOption> {
        let own = entries().map(|&Entry { name, group, value, help, is_secret, .. }| {
            ConfigOption { name, group, value, help, is_secret }
        });
        let filters = Settings::ALL.iter().map(|setting| ConfigOption {
            name: setting.name,
            group: OptionGroup::Filters,
            value: "VALUE",
            help: setting.summary,
            is_secret: false,
        });
        let mut options: Vec<ConfigOption> = own.chain(filters).collect();
        options.sort_by_key(|option| option.group);
        options
    }

    /// Returns every option with its value, in order.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let filters = Settings::ALL
            .iter()
            .filter_map(|setting| Some((setting.name, self.filters.get(setting.name)?)));
        entries().map(|entry| (entry.name, (entry.get)(self))).chain(filters)
    }

    /// Tests whether the value of this option must not appear in logs and error messages.
    pub(crate) fn is_secret(name: &[u8]) -> bool {
        entries().any(|entry| entry.is_secret && name.eq_ignore_ascii_case(entry.name.as_bytes()))
    }

    /// Returns every option with the value that a client may see. No client sees a fixed hash key.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.all().map(|(name, value)| match name {
            options::HASH_KEY => (name, self.hash_key.shown().to_owned()),
            _ => (name, value),
        })
    }

    /// Sets an option before the server starts.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with nothing changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_server::Config;
    ///
    /// let mut config = Config::default();
    /// config.set("maxmemory", "2gb")?;
    /// assert_eq!(config.max_memory_bytes, 2 << 30);
    /// assert!(config.set("port", "x").is_err() && config.set("colour", "red").is_err());
    /// # Ok::<(), tamis_server::ConfigError>(())
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let name = name.to_ascii_lowercase();
        match entries().find(|entry| entry.name == name) {
            Some(entry) => (entry.set)(self, value)
                .ok_or(ConfigError::Invalid { name: entry.name, expected: entry.expected }),
            None => self.filters.set(&name, value.as_bytes()).map_err(|error| match error {
                SettingError::Unknown => ConfigError::Unknown { name },
                error => ConfigError::Filters(error),
            }),
        }
    }

    /// Returns a non-loopback address that the server listens on in protected mode; `None` if there
    /// is none.
    pub(crate) fn guarded_address(&self) -> Option<IpAddr> {
        let console = (self.http_port != HttpPort::Off).then_some(self.http_bind);
        let all = self.bind.iter().flat_map(BindAddress::addresses).copied().chain(console);
        let outside = all.into_iter().find(|address| !address.is_loopback());
        outside.filter(|_| self.protected_mode)
    }

    /// Sets an option of a running server.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set), and [`ConfigError::Fixed`].
    pub fn set_live(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let opens = name.eq_ignore_ascii_case("requirepass") && value.is_empty();
        if opens && self.guarded_address().is_some() {
            return Err(ConfigError::Invalid {
                name: "requirepass",
                expected: "a password, since the server listens off loopback",
            });
        }
        match entries().find(|entry| entry.name.eq_ignore_ascii_case(name)) {
            Some(entry) if !entry.is_live => Err(ConfigError::Fixed { name: entry.name }),
            _ => self.set(name, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_value_that_sets_it() {
        let mut config = Config::default();
        let all: Vec<_> = config.all().collect();
        for (name, value) in all {
            config.set(name, &value).unwrap();
        }
        assert_eq!(config, Config::default());
    }

    #[test]
    fn the_default_in_a_help_text_is_the_default() {
        for ConfigOption { name, help, .. } in Config::options() {
            let Some((_, default)) = help.split_once("[default: ") else { continue };
            let mut config = Config::default();
            config.set(name, default.strip_suffix(']').unwrap()).unwrap();
            // The program serves a console by default; the library does not.
            if name != "http-port" {
                assert_eq!(config, Config::default(), "{name}");
            }
        }
    }

    #[test]
    fn values_have_units_and_ranges() {
        let mut config = Config::default();
        for (text, bytes) in [("100", 100), ("1k", 1000), ("2KB", 2048), ("3g", 3_000_000_000)] {
            config.set("maxmemory", text).unwrap();
            assert_eq!(config.max_memory_bytes, bytes);
        }
        for (name, value) in [
            ("maxmemory", "-1"),
            ("maxmemory", "1x"),
            ("maxmemory", "99999999999999999gb"),
            ("port", "65536"),
            ("tls-port", "-1"),
            ("tls-port", "yes"),
            ("tls-auth-clients", "maybe"),
            ("bind", ""),
            ("bind", "localhost:80"),
            ("bind", "127.0.0.1 local/host"),
            ("http-bind", ""),
            ("http-port", "yes"),
            ("http-port", "65536"),
            ("maxclients", "0"),
            ("protected-mode", "maybe"),
            ("timeout", "-1"),
            ("client-output-buffer-limit", "normal 1 2"),
            ("client-query-buffer-limit", "1000"),
            ("bf-error-rate", "2"),
            ("nothing", "1"),
        ] {
            let before = config.clone();
            assert!(config.set(name, value).is_err(), "{name} {value}");
            assert_eq!(config, before);
        }
        config.set("bind", "localhost,127.0.0.1").unwrap();
        assert_eq!(config.all().find(|it| it.0 == "bind").unwrap().1, "localhost 127.0.0.1");
        assert_eq!(config.guarded_address(), None);
        assert_eq!(config.set_live("PORT", "1"), Err(ConfigError::Fixed { name: "port" }));
        config.set_live("bf-initial-size", "7").unwrap();
        assert_eq!(config.filters.bf_capacity, 7);
    }
}
