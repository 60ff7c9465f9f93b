//! Sources that poll a database: rows whose value in a change column is new, and all ids now and
//! then.
//!
//! [`PollOptions`] decides what a poll reads:
//!
//! * Without a change column, it reads all ids into a new generation if the database has changed.
//! * With one, it reads the rows whose value is new, and all ids only every
//!   [`reread`](PollOptions::reread). See `poll/history.rs` for the bound of these reads.
//!
//! While the source reads all ids, it goes on to poll. A row that exists during the whole read is
//! in it. A row that is committed meanwhile is found by a poll.

mod column_value;
mod follower;
mod history;
mod options;
mod place;
mod polled_database;
mod runtime;
mod server_reader;

pub(crate) use column_value::ColumnValue;
pub(crate) use follower::Follower;
pub use options::{ChangeColumn, PollOptions};
pub(crate) use polled_database::in_deletions;
pub(crate) use polled_database::{EachDeleted, PolledDatabase};
pub(crate) use runtime::PollRuntime;
pub(crate) use server_reader::{BATCH, PolledTable, ServerReader};
