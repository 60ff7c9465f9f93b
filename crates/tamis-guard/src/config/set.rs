//! The settings of a set of ids, and of the admin server.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::config::units::Secret;
use crate::fleet::PublicationOptions;
use crate::ids::id::IdType;
use crate::ids::id_set::IdSet;
use crate::ids::id_set_options::IdSetOptions;
use crate::ids::snapshot::SnapshotOptions;
#[cfg(feature = "sources")]
use crate::source::MysqlAudit;
#[cfg(feature = "sources")]
use crate::source::PostgresAudit;
#[cfg(feature = "sources")]
use crate::source::SqliteAudit;
use crate::source::{AuditSource, FileOptions, Source, SourceError, SourceOptions};

/// A set of ids in a configuration.
#[derive(Clone, Debug)]
pub(crate) struct SetConfig {
    pub(crate) options: IdSetOptions,
    pub(crate) source: Option<SourceConfig>,
    pub(crate) source_options: SourceOptions,
    pub(crate) token: Option<Secret>,
    pub(crate) publish: Option<PublicationOptions>,
    pub(crate) allowed: HashSet<Box<[u8]>>,
    pub(crate) denied: HashSet<Box<[u8]>>,
}

/// The settings of the admin server.
#[derive(Clone, Debug)]
pub(crate) struct AdminConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) token: Option<Secret>,
}

/// Where snapshots are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SnapshotsConfig {
    pub(crate) folder: PathBuf,
    pub(crate) every: Duration,
}

/// Where a set has its ids from.
#[derive(Clone, Debug)]
pub(crate) enum SourceConfig {
    File(FileOptions),
    Leader(crate::source::LeaderOptions),
    #[cfg(feature = "sources")]
    Mysql(crate::source::MysqlOptions),
    #[cfg(feature = "sources")]
    Postgres(crate::source::PostgresOptions),
    #[cfg(feature = "sources")]
    Redis(crate::source::RedisOptions),
    #[cfg(feature = "sources")]
    Sqlite(crate::source::SqliteOptions),
}

impl SourceConfig {
    /// Opens the source for an audit.
    #[cfg_attr(not(feature = "sources"), expect(unused_variables))]
    pub(crate) fn audit(&self, id: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Ok(match self {
            Self::File(file) => Box::new(file.clone()),
            Self::Leader(_) => return Err(SourceError::LeaderHasNoList),
            #[cfg(feature = "sources")]
            Self::Mysql(mysql) => Box::new(MysqlAudit::open(mysql, id)?),
            #[cfg(feature = "sources")]
            Self::Postgres(postgres) => Box::new(PostgresAudit::open(postgres, id)?),
            #[cfg(feature = "sources")]
            Self::Redis(redis) => Box::new(redis.clone()),
            #[cfg(feature = "sources")]
            Self::Sqlite(sqlite) => Box::new(SqliteAudit::open(sqlite, id)?),
        })
    }

    /// Returns the permanent replication slot of the source, with the URL of its server.
    pub(crate) fn slot(&self) -> Option<(&str, &str)> {
        match self {
            #[cfg(feature = "sources")]
            Self::Postgres(postgres) => Some((&postgres.url, postgres.slot.as_deref()?)),
            _ => None,
        }
    }

    /// Starts the source. It keeps its ids in `snapshot`, if it can go on from there.
    pub(crate) fn start(
        &self,
        ids: Arc<IdSet>,
        options: SourceOptions,
        snapshot: Option<SnapshotOptions>,
    ) -> Source {
        match self.clone() {
            Self::File(file) => Source::file(ids, FileOptions { snapshot, ..file }, options),
            #[cfg(feature = "sources")]
            Self::Mysql(mysql) => {
                Source::mysql(ids, crate::source::MysqlOptions { snapshot, ..mysql }, options)
            }
            #[cfg(feature = "sources")]
            Self::Postgres(postgres) => {
                let postgres = crate::source::PostgresOptions { snapshot, ..postgres };
                Source::postgres(ids, postgres, options)
            }
            Self::Leader(leader) => Source::leader(ids, leader, options),
            #[cfg(feature = "sources")]
            Self::Redis(redis) => Source::redis(ids, redis, options),
            #[cfg(feature = "sources")]
            Self::Sqlite(sqlite) => {
                Source::sqlite(ids, crate::source::SqliteOptions { snapshot, ..sqlite }, options)
            }
        }
    }
}
