//! The kinds of sources: one file or folder each.
//!
//! | kind | settings | finds new ids by |
//! | --- | --- | --- |
//! | `file` | [`FileOptions`](file::FileOptions) | the signature of the file |
//! | `mysql` | [`MysqlOptions`](mysql::MysqlOptions) | the binary log, or polls |
//! | `postgres` | [`PostgresOptions`](postgres::PostgresOptions) | logical replication, or polls |
//! | `redis` | [`RedisOptions`](redis::RedisOptions) | `WATCH` on the keys of a filter |
//! | `sqlite` | [`SqliteOptions`](sqlite::SqliteOptions) | polls |
//!
//! `poll` is what the polls of the three databases share. The guard adds a kind: the leader, in its folder `fleet`.

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
