//! The configuration with checked values.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use tamis_sources::{AuditSource, IdSet, IdSetOptions, SourceError};

use crate::config::error::ConfigError;
use crate::config::read::read_text;
use crate::config::set::{AdminConfig, SetConfig, SnapshotsConfig};
use crate::config::setting::{InvalidValue, invalid};
use crate::config::{admin, authorize, file, ids, learn, proxy, route, snapshots};
use crate::http::authorize::AuthorizeOptions;
use crate::http::proxy::ProxyOptions;
use crate::request::layer::GuardLayer;

/// A complete and checked configuration.
///
/// # Examples
///
/// ```
/// use tamis_guard::Config;
///
/// let config = Config::parse(
///     r#"
///     proxy = { listen = "127.0.0.1:8080", upstream = "http://127.0.0.1:9000" }
///
///     [ids.products]
///     source = { kind = "lines", path = "ids.txt" }
///
///     [[route]]
///     path = "/pms/productInfo/{id}"
///     ids = { "path:id" = "products" }
///     refusal = { message = "产品不存在!" }
///     "#,
///     "/etc/tamis/guard.toml",
/// )?;
/// assert_eq!(config.sets().count(), 1);
/// let wrong = Config::parse("proxy = { upstrem = 'http://a' }", "guard.toml").unwrap_err();
/// assert!(wrong.to_string().starts_with("guard.toml:1:11: unknown field `upstrem`"));
/// # Ok::<(), tamis_guard::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    file: file::File,
    proxy: Option<ProxyOptions>,
    authorize: Option<AuthorizeOptions>,
    sets: BTreeMap<String, SetConfig>,
    admin: Option<AdminConfig>,
    snapshots: Option<SnapshotsConfig>,
}

impl Config {
    /// Reads a configuration file and the files with allowed and denied ids.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the location of the error and the allowed values.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = read_text(path).map_err(|error| ConfigError::Io { path: path.into(), error })?;
        Self::parse(&text, path)
    }

    /// Parses the text of a configuration file. Error messages contain `path`. Paths in the text are relative to the
    /// folder of `path`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`read`](Self::read).
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let file = toml_edit::de::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start).min(text.len());
            let before = text.get(..start).unwrap_or_default();
            ConfigError::Syntax {
                path: path.into(),
                line: before.matches('\n').count() + 1,
                column: before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
                message: error.message().lines().collect::<Vec<_>>().join(", "),
            }
        })?;
        Self::checked(file, path)
    }

    pub(super) fn checked(file: file::File, path: &Path) -> Result<Self, ConfigError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let value = |InvalidValue { field, message }| ConfigError::Value {
            path: path.into(),
            field,
            message,
        };
        let proxy = file.proxy.as_ref().map(|table| proxy::proxy(table, folder));
        let proxy = proxy.transpose().map_err(value)?;
        let authorize = file.authorize.as_ref().map(authorize::authorize);
        let authorize = authorize.transpose().map_err(value)?;
        if proxy.is_none() {
            if authorize.is_none() {
                let message = "write [proxy] for a guard that forwards requests, or [authorize] for a \
                               guard that another proxy asks";
                return Err(value(invalid("proxy", message)));
            }
            authorize::check_without_responses(&file).map_err(value)?;
        }
        let mut sets = BTreeMap::new();
        for (name, ids) in &file.ids {
            sets.insert(name.clone(), ids::set(name, ids, folder).map_err(value)?);
        }
        let admin = file.admin.as_ref().map(admin::admin).transpose().map_err(value)?;
        let snapshots = file.snapshots.as_ref();
        let snapshots = snapshots.map(|it| snapshots::snapshots(it, &file.ids, folder));
        let snapshots = snapshots.transpose().map_err(value)?;
        check_slots(&sets, snapshots.is_some()).map_err(value)?;
        let config = Self { file, proxy, authorize, sets, admin, snapshots };
        // The code creates routes here only to check the configuration. A running guard creates its own routes.
        let mut empty = BTreeMap::new();
        for (name, set) in &config.sets {
            let ids = IdSet::new(IdSetOptions { items: 0, ..set.options.clone() });
            let ids = ids.map_err(|error| value(invalid(format_args!("ids.{name}"), error)))?;
            // `Route::new` returns an error for a set without a source. A running guard starts the sources of its sets.
            ids.expect_pushes();
            empty.insert(name.clone(), Arc::new(ids));
        }
        let routes = route::routes(&config.file.route, &empty).map_err(value)?;
        if let Some(table) = &config.file.authorize {
            authorize::check_routes(table, &routes).map_err(value)?;
        }
        learn::learn_rules(&config.file.learn, &empty).map_err(value)?;
        Ok(config)
    }

    /// Returns the names of the sets of ids.
    pub fn sets(&self) -> impl Iterator<Item = &str> {
        self.sets.keys().map(String::as_str)
    }

    /// Returns the settings of the proxy. Returns `None` if the configuration has no table `[proxy]`.
    #[must_use]
    pub fn proxy(&self) -> Option<&ProxyOptions> {
        self.proxy.as_ref()
    }

    /// Returns the settings of the server for another proxy.
    pub(crate) fn authorize(&self) -> Option<&AuthorizeOptions> {
        self.authorize.as_ref()
    }

    /// Returns the sets of ids, ordered by name.
    pub(crate) fn set_configs(&self) -> impl Iterator<Item = (&String, &SetConfig)> {
        self.sets.iter()
    }

    /// Tests whether a set has the same settings in another configuration. The test ignores the allow list and the deny
    /// list.
    pub(crate) fn has_same_set(&self, other: &Self, name: &str) -> bool {
        let settings = |config: &Self| {
            let mut ids = config.file.ids.get(name)?.clone();
            (ids.allow, ids.deny) = (Vec::new(), Vec::new());
            (ids.allow_file, ids.deny_file) = (None, None);
            Some(ids)
        };
        settings(self) == settings(other)
    }

    /// Tests whether another configuration has the same settings for the proxy, the authorizer, the admin server and the
    /// snapshots.
    pub(crate) fn has_same_servers(&self, other: &Self) -> bool {
        self.file.proxy == other.file.proxy
            && self.file.authorize == other.file.authorize
            && self.file.admin == other.file.admin
            && self.snapshots == other.snapshots
    }

    /// Returns the same configuration without snapshots. A command uses the configuration without snapshots for a full
    /// read while a guard with the same configuration runs.
    #[must_use]
    pub fn without_snapshots(self) -> Self {
        Self { snapshots: None, ..self }
    }

    pub(crate) fn snapshots(&self) -> Option<&SnapshotsConfig> {
        self.snapshots.as_ref()
    }

    /// Opens the sources of a set for [`audit`](crate::audit()). Returns `None` for a set without a source.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot be opened.
    pub fn audit_source(&self, set: &str) -> Result<Option<Box<dyn AuditSource>>, SourceError> {
        let Some(set) = self.sets.get(set).filter(|set| !set.sources.is_empty()) else {
            return Ok(None);
        };
        let mut sources = set.sources.iter().map(|source| source.audit(&set.options.id));
        match &set.sources[..] {
            [_] => sources.next().transpose(),
            _ => Ok(Some(Box::new(sources.collect::<Result<Vec<_>, _>>()?))),
        }
    }

    pub(crate) fn admin(&self) -> Option<&AdminConfig> {
        self.admin.as_ref()
    }

    /// Creates the routes and the learn rules. `sets` must contain the configured sets.
    pub(crate) fn guard(&self, sets: &BTreeMap<String, Arc<IdSet>>) -> GuardLayer {
        let checked = "checked when the configuration was read";
        let routes = route::routes(&self.file.route, sets).expect(checked);
        let rules = learn::learn_rules(&self.file.learn, sets).expect(checked);
        GuardLayer::new(routes).with_learn(rules)
    }
}

/// Rejects a permanent replication slot if the configuration has no snapshots, and a slot that two sources use.
fn check_slots(
    sets: &BTreeMap<String, SetConfig>,
    has_snapshots: bool,
) -> Result<(), InvalidValue> {
    let mut known = HashSet::new();
    let sources = sets.iter().flat_map(|(name, set)| set.sources.iter().map(move |it| (name, it)));
    for (name, source) in sources {
        let Some(slot) = source.exclusive() else { continue };
        let field = format!("ids.{name}.source.slot");
        if !has_snapshots {
            let message = "needs the table [snapshots]: a restart continues a snapshot";
            return Err(invalid(field, message));
        }
        if !known.insert(slot) {
            return Err(invalid(field, "another source has this slot; give each source its own"));
        }
    }
    Ok(())
}

#[cfg(all(test, feature = "sources"))]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_live_of_a_404_is_long_only_if_the_source_reports_updates() {
        let mysql = "kind = \"mysql\", url = \"mysql://a@b/c\", table = \"d\", column = \"id\"";
        let postgres = mysql.replace("mysql", "postgres");
        let polled = ", follow = \"poll\", changed = \"updated_at\"";
        for (source, negative, seconds) in [
            (mysql, "", 600),
            (&postgres, "", 600),
            (&format!("{mysql}, follow = \"log\""), "", 600),
            (mysql, "negative = { ttl = \"5s\" }", 5),
            (mysql, "negative = { requests = 7 }", 600),
            (&format!("{mysql}{polled}"), "", 10),
            (&format!("{postgres}{polled}"), "", 10),
            ("kind = \"lines\", path = \"ids.txt\"", "", 10),
            ("kind = \"lines\", path = \"ids.txt\"", "negative = { ttl = \"1h\" }", 3600),
        ] {
            let text = format!(
                "proxy = {{ upstream = \"http://127.0.0.1:9\" }}
                [ids.products]
                source = {{ {source} }}
                {negative}"
            );
            let config = Config::parse(&text, "guard.toml").unwrap();
            let (_, set) = config.set_configs().next().unwrap();
            assert_eq!(set.options.negative_for.as_secs(), seconds, "{source} {negative}");
        }
    }
}
