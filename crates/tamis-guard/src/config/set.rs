//! The settings of a set of ids, and of the admin server.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::config::units::Secret;
use crate::id::IdType;
use crate::id_set::{IdSet, IdSetOptions};
#[cfg(feature = "mysql")]
use crate::source::MysqlAudit;
#[cfg(feature = "sqlite")]
use crate::source::SqliteAudit;
use crate::source::{AuditSource, Source, SourceError, SourceOptions};

/// A set of ids in a configuration.
#[derive(Clone, Debug)]
pub(crate) struct SetConfig {
    pub(crate) options: IdSetOptions,
    pub(crate) source: Option<SourceConfig>,
    pub(crate) source_options: SourceOptions,
    pub(crate) token: Option<Secret>,
    pub(crate) allowed: HashSet<Box<[u8]>>,
    pub(crate) denied: HashSet<Box<[u8]>>,
}

/// The settings of the admin server.
#[derive(Clone, Debug)]
pub(crate) struct AdminConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) token: Option<Secret>,
}

/// Where a set has its ids from.
#[derive(Clone, Debug)]
pub(crate) enum SourceConfig {
    File(crate::source::FileOptions),
    #[cfg(feature = "mysql")]
    Mysql(crate::source::MysqlOptions),
    #[cfg(feature = "redis")]
    Redis(crate::source::RedisOptions),
    #[cfg(feature = "sqlite")]
    Sqlite(crate::source::SqliteOptions),
}

impl SourceConfig {
    /// Opens the source for an audit.
    pub(crate) fn audit(&self, id: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Ok(match self {
            Self::File(file) => Box::new(file.clone()),
            #[cfg(feature = "mysql")]
            Self::Mysql(mysql) => Box::new(MysqlAudit::open(mysql, id)?),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => Box::new(redis.clone()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => Box::new(SqliteAudit::open(sqlite, id)?),
        })
    }

    pub(crate) fn start(&self, ids: Arc<IdSet>, options: SourceOptions) -> Source {
        match self {
            #[cfg(feature = "mysql")]
            Self::Mysql(mysql) => Source::mysql(ids, mysql.clone(), options),
            Self::File(file) => Source::file(ids, file.clone(), options),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => Source::redis(ids, redis.clone(), options),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sqlite) => Source::sqlite(ids, sqlite.clone(), options),
        }
    }
}
