//! Lists, reads and sets the options by their names.

use tamis_commands::{SettingError, Settings};

use crate::config::Config;
use crate::config::config_option::{ConfigOption, OptionGroup, option};
use crate::config::error::ConfigError;
use crate::config::network_options::NETWORK;
use crate::config::options::{HASH_KEY, OPTIONS};

/// Returns every option of the server, without the options for new filters.
fn rows() -> impl Iterator<Item = &'static ConfigOption> {
    NETWORK.iter().chain(&OPTIONS)
}

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
        let filters = Settings::ALL.iter().map(|setting| {
            option(setting.name, OptionGroup::Filters, "VALUE", "").help(setting.summary)
        });
        let mut options: Vec<ConfigOption> = rows().copied().chain(filters).collect();
        options.sort_by_key(|option| option.group);
        options
    }

    /// Returns every option with its value, in the order of the table.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let filters = Settings::ALL
            .iter()
            .filter_map(|setting| Some((setting.name, self.filters.get(setting.name)?)));
        rows().map(|row| (row.name, (row.get)(self))).chain(filters)
    }

    /// Tests whether logs and error messages must hide the value of this option.
    pub(crate) fn is_secret(name: &[u8]) -> bool {
        rows().any(|row| row.is_secret && name.eq_ignore_ascii_case(row.name.as_bytes()))
    }

    /// Returns every option with the value that a client may see. A fixed hash key is never shown
    /// to a client.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.all().map(|(name, value)| match name {
            HASH_KEY => (name, self.hash_key.shown().to_owned()),
            _ => (name, value),
        })
    }

    /// Sets an option before the server starts.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the option or the value is invalid. On an error, no option is changed.
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
        match rows().find(|row| row.name == name) {
            Some(row) => (row.set)(self, value)
                .ok_or(ConfigError::Invalid { name: row.name, expected: row.expected }),
            None => self.filters.set(&name, value.as_bytes()).map_err(|error| match error {
                SettingError::Unknown => ConfigError::Unknown { similar: similar(&name), name },
                error => ConfigError::Filters(error),
            }),
        }
    }

    /// Sets an option of a running server.
    ///
    /// # Errors
    ///
    /// The errors of [`set`](Self::set), and [`ConfigError::Fixed`].
    pub fn set_live(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let opens = name.eq_ignore_ascii_case("requirepass") && value.is_empty();
        if opens && self.network_address().is_some() {
            return Err(ConfigError::Invalid {
                name: "requirepass",
                expected: "a password, since the server listens off loopback",
            });
        }
        match rows().find(|row| row.name.eq_ignore_ascii_case(name)) {
            Some(row) if !row.is_live => Err(ConfigError::Fixed { name: row.name }),
            _ => self.set(name, value),
        }
    }
}

/// Returns the option whose name is most similar to `name`. Returns `None` if no name is similar.
fn similar(name: &str) -> Option<&'static str> {
    let all = Config::options().into_iter().map(|option| option.name);
    let rated = all.map(|option| (strsim::jaro_winkler(name, option), option));
    let (similarity, option) = rated.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (similarity > 0.8).then_some(option)
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
            // The program serves a console by default. The library does not serve a console by
            // default.
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
        assert_eq!(config.network_address(), None);
        assert_eq!(config.set_live("PORT", "1"), Err(ConfigError::Fixed { name: "port" }));
        config.set_live("bf-initial-size", "7").unwrap();
        assert_eq!(config.filters.bf_capacity, 7);
    }
}
