//! A source never refuses an id that was committed before the request and longer ago than the sync
//! delay, whatever happens to the file or the database.

#[path = "sources/checker.rs"]
mod checker;
#[path = "sources/file.rs"]
mod file;
#[cfg(feature = "parquet")]
#[path = "sources/parquet.rs"]
mod parquet;
#[path = "sources/push.rs"]
mod push;
#[cfg(feature = "sqlite")]
#[path = "sources/sqlite.rs"]
mod sqlite;
#[cfg(feature = "sqlite")]
#[path = "sources/sqlite_faults.rs"]
mod sqlite_faults;
#[cfg(feature = "sqlite")]
#[path = "sources/sqlite_restarts.rs"]
mod sqlite_restarts;
