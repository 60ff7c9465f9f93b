//! Parses the source `postgres`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tamis_sources::{PostgresOptions, SourceKind};

use crate::config::secret_url::SecretUrl;
use crate::config::setting::{InvalidValue, invalid, set_to};
use crate::config::source::fields::SourceFields;
use crate::config::source::poll::{Changes, poll};
use crate::config::source::tables::{Tables, tables};
use crate::config::units::Text;

/// The table `source = { kind = "postgres", url = "postgres://user:password@host/shop", table = "products", column =
/// "id" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Postgres {
    url: SecretUrl,
    ca: Option<PathBuf>,
    table: Option<String>,
    /// The tables of one set, such as `orders_{00..15}`.
    tables: Option<Tables>,
    column: String,
    /// The condition for rows that count.
    #[serde(rename = "where")]
    condition: Option<String>,
    exact: Option<bool>,
    publication: Option<String>,
    /// The name of a permanent replication slot.
    slot: Option<String>,
    follow: Option<Changes>,
    /// The name of a column whose values never decrease.
    changed: Option<String>,
    overlap: Option<Text<Duration>>,
    deletions: Option<String>,
    reread: Option<Text<Duration>>,
}

impl SourceFields for Postgres {
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let tables = tables(self.table.as_deref(), self.tables.as_ref())?;
        if tables.len() > 1 && self.slot.is_some() {
            let message =
                "each table needs its own slot: write one [[ids.NAME.source]] for each table";
            return Err(invalid("slot", message));
        }
        tables.iter().map(|table| self.kind(table, folder)).collect()
    }

    fn reports_updates(&self) -> bool {
        self.follow != Some(Changes::Poll)
    }
}

impl Postgres {
    /// Returns the settings of the source of one table.
    fn kind(&self, table: &str, folder: &Path) -> Result<Arc<dyn SourceKind>, InvalidValue> {
        let mut options = PostgresOptions::new(&self.url.0, table, &self.column);
        options.ca = self.ca.as_ref().map(|ca| folder.join(ca));
        options.exact = self.exact.unwrap_or(false);
        set_to(&mut options.publication, self.publication.clone());
        if self.slot.as_ref().is_some_and(|slot| !is_slot_name(slot)) {
            let message = "write a name that begins with tamis_guard and has at most 63 lower-case \
                letters, digits and underscores";
            return Err(invalid("slot", message));
        }
        options.slot.clone_from(&self.slot);
        let Self { follow, changed, overlap, deletions, reread, .. } = self;
        options.condition.clone_from(&self.condition);
        options.poll = poll(*follow, changed.as_deref(), *overlap, deletions, *reread)?;
        let of_log = [("publication", self.publication.is_some()), ("slot", self.slot.is_some())];
        if let Some((field, _)) = of_log.iter().find(|(_, is_given)| *is_given)
            && options.poll.is_some()
        {
            return Err(invalid(field, "only with follow = \"log\""));
        }
        options.check().map_err(|why| invalid("where", why))?;
        Ok(Arc::new(options))
    }
}

/// Tests whether a name is allowed for the replication slot of a guard. The guard drops an unusable slot with the
/// configured name, so the name must not match a slot of another program.
fn is_slot_name(name: &str) -> bool {
    let is_allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    name.starts_with("tamis_guard") && name.len() <= 63 && name.bytes().all(is_allowed)
}
