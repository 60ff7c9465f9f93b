//! Sources that poll a database: frequent polls read rows with a new value in a change column, and occasional full
//! reads read all ids.
//!
//! [`PollOptions`] selects what a poll reads:
//!
//! * Without a change column, each poll does a full read into a new generation, if the database has changed.
//! * With a change column, each poll reads only the rows with a new value. The source does a full read every
//!   [`reread`](PollOptions::reread). `poll/history.rs` derives the smallest value that a poll must read.
//!
//! The source continues to poll during a full read. The full read finds each row that exists during the whole read. A
//! poll finds each row that is committed during the full read.

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
