//! Parses the source `mysql`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tamis_sources::{MysqlOptions, SourceKind};

use crate::config::secret_url::SecretUrl;
use crate::config::setting::{InvalidValue, invalid};
use crate::config::source::fields::SourceFields;
use crate::config::source::poll::{Changes, poll};
use crate::config::source::tables::{Tables, tables};
use crate::config::units::Text;

/// The table `source = { kind = "mysql", url = "mysql://user:password@host/shop", table = "products", column = "id" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mysql {
    url: SecretUrl,
    /// The URL of the primary, if `url` is the URL of a replica.
    primary: Option<SecretUrl>,
    ca: Option<PathBuf>,
    table: Option<String>,
    /// The tables of one set, such as `orders_{00..15}`.
    tables: Option<Tables>,
    column: String,
    /// The condition for rows that count.
    #[serde(rename = "where")]
    condition: Option<String>,
    exact: Option<bool>,
    server_id: Option<u32>,
    follow: Option<Changes>,
    /// The name of a column whose values never decrease.
    changed: Option<String>,
    overlap: Option<Text<Duration>>,
    deletions: Option<String>,
    reread: Option<Text<Duration>>,
}

impl SourceFields for Mysql {
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let tables = tables(self.table.as_deref(), self.tables.as_ref())?;
        if tables.len() > 1 && self.server_id.is_some() {
            let message = "each table needs its own server id: remove `server_id` for random ids, or write \
                one [[ids.NAME.source]] for each table";
            return Err(invalid("server_id", message));
        }
        tables.iter().map(|table| self.kind(table, folder)).collect()
    }

    fn reports_updates(&self) -> bool {
        self.follow != Some(Changes::Poll)
    }
}

impl Mysql {
    /// Returns the settings of the source of one table.
    fn kind(&self, table: &str, folder: &Path) -> Result<Arc<dyn SourceKind>, InvalidValue> {
        let mut options = MysqlOptions::new(&self.url.0, table, &self.column);
        options.primary = self.primary.as_ref().map(|primary| primary.0.clone());
        options.ca = self.ca.as_ref().map(|ca| folder.join(ca));
        if self.server_id == Some(0) {
            return Err(invalid("server_id", "the smallest number is 1"));
        }
        options.exact = self.exact.unwrap_or(false);
        options.server_id = self.server_id;
        let Self { follow, changed, overlap, deletions, reread, .. } = self;
        options.condition.clone_from(&self.condition);
        options.poll = poll(*follow, changed.as_deref(), *overlap, deletions, *reread)?;
        if options.poll.is_some() && self.server_id.is_some() {
            return Err(invalid("server_id", "only with follow = \"log\""));
        }
        options.check().map_err(|why| invalid("where", why))?;
        Ok(Arc::new(options))
    }
}
