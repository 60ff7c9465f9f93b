//! The options of a server, by Redis's names: in a file, the environment, flags and `CONFIG SET` alike.

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
    /// `bind`: the addresses to listen on, or names of them.
    pub bind: Vec<BindAddress>,
    /// `port`; 0 takes any that is free.
    pub port: u16,
    /// `port no` turns this off: nothing is answered without TLS.
    pub listens_plain: bool,
    /// `tls-port`: where to speak TLS; 0 takes any that is free, `None` is for nowhere.
    pub tls_port: Option<u16>,
    /// `tls-cert-file`: the server's certificate and those up to a root, in PEM.
    pub tls_cert_file: Option<PathBuf>,
    /// `tls-key-file`: its private key, in PEM.
    pub tls_key_file: Option<PathBuf>,
    /// `tls-ca-cert-file`: the roots of clients' certificates, in PEM.
    pub tls_ca_cert_file: Option<PathBuf>,
    /// `tls-auth-clients`: whether clients show certificates.
    pub tls_auth_clients: ClientCertificates,
    /// `http-port`: where the console is.
    pub http_port: HttpPort,
    /// `http-bind`: the address of the console.
    pub http_bind: IpAddr,
    /// `requirepass`: the password; empty for none.
    pub password: String,
    /// `protected-mode`: whether to refuse listening off loopback without a password.
    pub protected_mode: bool,
    /// `io-threads`: how many threads answer; 0 for one a core.
    pub threads: usize,
    /// `maxclients`: how many connections there may be.
    pub max_clients: usize,
    /// `client-output-buffer-limit`: how many bytes of replies may wait for one client.
    pub output_limit: OutputLimit,
    /// `client-query-buffer-limit`, in bytes: a client whose unfinished command takes more memory is disconnected.
    pub max_query_bytes: u64,
    /// `maxmemory`, in bytes: above it nothing is added; 0 for no limit.
    pub max_memory_bytes: u64,
    /// `timeout`, in seconds: idle connections are closed after it; 0 for never.
    pub timeout_seconds: u64,
    /// `appendonly`: whether changes are kept in a log; if not, all is gone when the server ends.
    pub append_only: bool,
    /// `enable-debug-command`: the clients that may run `DEBUG`.
    pub debug_command: DebugCommand,
    /// `dir`: the folder of the log and the snapshots.
    pub dir: PathBuf,
    /// `appendfsync`: when the log is synced to the disk.
    pub sync: Sync,
    /// `auto-aof-rewrite-min-size`, in bytes: a log twice as long as its snapshot is replaced by a new snapshot from
    /// this length on.
    pub rewrite_bytes: u64,
    /// `aclfile`: the file of users.
    pub users_file: Option<PathBuf>,
    /// `acllog-max-len`: how many refusals `ACL LOG` keeps.
    pub max_refusals: usize,
    /// `slowlog-log-slower-than`, in microseconds: commands that take longer are listed; negative for none.
    pub slow_micros: i64,
    /// `slowlog-max-len`: how many of them are kept.
    pub slow_entries: usize,
    /// `metrics-max-filters`: how many filters have metrics of their own, those nearest to their limits.
    pub metrics_max_filters: usize,
    /// `hash-key`: the secret key that new filters hash with.
    pub hash_key: HashKey,
    /// `bf-*` and `cf-*`.
    pub filters: Settings,
    /// The file that options were [read](Self::read_file) from, which `CONFIG REWRITE` writes.
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

/// Whether there is a console, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpPort {
    /// There is none.
    Off,
    /// At the [usual](Self::USUAL) port, if that is free.
    Auto,
    /// At this port; 0 takes any that is free.
    At(u16),
}

impl HttpPort {
    /// The port unless another is asked for.
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

/// Why an option does not take a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no option of this name.
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The value is none of this option's.
    Invalid {
        /// The option.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// The option cannot change while the server runs.
    Fixed {
        /// The option.
        name: &'static str,
    },
    /// A setting of filters does not take the value.
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
    /// Returns every option that [`set`](Self::set) takes, by groups.
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

    /// Returns every option and its value, in order.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let filters = Settings::ALL
            .iter()
            .filter_map(|setting| Some((setting.name, self.filters.get(setting.name)?)));
        entries().map(|entry| (entry.name, (entry.get)(self))).chain(filters)
    }

    /// Returns whether the value of this option is for no log and no error message.
    pub(crate) fn is_secret(name: &[u8]) -> bool {
        entries().any(|entry| entry.is_secret && name.eq_ignore_ascii_case(entry.name.as_bytes()))
    }

    /// Returns every option as a client may see it. A fixed hash key is shown to no client.
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
    /// [`ConfigError`], and nothing has changed.
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

    /// Returns an address for the network, where not everybody may be let in; `None` if there is none.
    pub(crate) fn guarded_address(&self) -> Option<IpAddr> {
        let console = (self.http_port != HttpPort::Off).then_some(self.http_bind);
        let all = self.bind.iter().flat_map(BindAddress::addresses).copied().chain(console);
        let outside = all.into_iter().find(|address| !address.is_loopback());
        outside.filter(|_| self.protected_mode)
    }

    /// Sets an option of a server that runs.
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
            // The program serves a console by default, a library does not.
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
