//! The kinds of sources. Each kind has its own file or folder.
//!
//! | kind | settings | finds new ids by |
//! | --- | --- | --- |
//! | `file` | [`FileOptions`](file::FileOptions) | the signature of the file |
//! | `mysql` | [`MysqlOptions`](mysql::MysqlOptions) | the binary log, or polls |
//! | `postgres` | [`PostgresOptions`](postgres::PostgresOptions) | logical replication, or polls |
//! | `redis` | [`RedisOptions`](redis::RedisOptions) | `WATCH` on the keys of a filter |
//! | `sqlite` | [`SqliteOptions`](sqlite::SqliteOptions) | polls |
//!
//! `poll` contains the polling code that the three databases share. `condition` contains the condition `where` of the
//! sources that follow a log. The guard adds one kind in its folder `fleet`: the leader.

#[cfg(feature = "databases")]
pub(crate) mod condition;
pub(crate) mod file;
#[cfg(feature = "databases")]
pub(crate) mod mysql;
#[cfg(feature = "databases")]
pub(crate) mod poll;
#[cfg(feature = "databases")]
pub(crate) mod postgres;
#[cfg(feature = "databases")]
pub(crate) mod redis;
#[cfg(feature = "databases")]
pub(crate) mod sqlite;
