//! A source never refuses an id that was committed before the request and longer ago than the sync
//! delay, whatever happens to the file or the database.

pub mod file;
mod parquet;
mod push;
pub mod sqlite;
mod sqlite_faults;
mod sqlite_restarts;
