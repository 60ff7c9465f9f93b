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
#[cfg(feature = "sources")]
mod runtime;
#[cfg(feature = "sources")]
mod server_reader;

pub(super) use column_value::ColumnValue;
#[cfg(feature = "sources")]
pub(super) use follower::Follower;
pub use options::{ChangeColumn, PollOptions};
#[cfg(feature = "sources")]
pub(super) use polled_database::in_deletions;
pub(super) use polled_database::{EachDeleted, PolledDatabase};
#[cfg(feature = "sources")]
pub(super) use runtime::PollRuntime;
#[cfg(feature = "sources")]
pub(super) use server_reader::{BATCH, PolledTable, ServerReader};
