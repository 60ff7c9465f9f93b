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

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod answers;
mod cell;
mod follower;
mod history;
mod options;
mod place;
mod polled_database;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod server_reader;

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) use answers::Answers;
pub(super) use cell::Cell;
#[cfg(feature = "sqlite")]
pub(super) use follower::Follower;
pub use options::{ChangeColumn, PollOptions};
pub(super) use polled_database::{EachDeleted, PolledDatabase};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) use server_reader::{BATCH, PolledTable, ServerReader};
