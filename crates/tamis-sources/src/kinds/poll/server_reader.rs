//! Polls a table of a database server.

use crate::errors::source_error::SourceError;
use crate::kinds::poll::follower::Follower;
use crate::kinds::poll::options::PollOptions;
use crate::kinds::poll::polled_database::PolledDatabase;
use crate::source::run::{Reader, Run};

/// The number of deleted ids that one query looks up.
pub(crate) const BATCH: usize = 500;

/// A connection to a polled table.
pub(crate) trait PolledTable: PolledDatabase + Send + Sized + 'static {
    type Options: Send + 'static;

    /// Opens a connection. Returns an error if the table cannot be polled.
    fn open(run: &Run, options: &Self::Options, poll: &PollOptions) -> Result<Self, SourceError>;

    /// Returns the identity of the server. The identity changes after the server has lost commits.
    fn server(&self) -> &str;
}

/// Polls a table. If the connection breaks, the reader opens a new connection and continues to poll.
#[derive(Debug)]
pub(crate) struct ServerReader<T: PolledTable> {
    options: T::Options,
    poll: PollOptions,
    follower: Follower,
    table: Option<T>,
    /// The identity of the server at the last connection.
    server: Option<String>,
}

impl<T: PolledTable> ServerReader<T> {
    pub(crate) fn new(options: T::Options, poll: PollOptions) -> Self {
        // The reader uses no snapshots, because no query returns the commits since a snapshot.
        let follower = Follower::new(&poll, None, String::new());
        Self { options, poll, follower, table: None, server: None }
    }
}

impl<T: PolledTable> Reader for ServerReader<T> {
    fn read(&mut self, run: &Run) -> Result<(), SourceError> {
        if self.table.is_none() {
            let table = T::open(run, &self.options, &self.poll)?;
            if self.server.as_ref().is_some_and(|last| last != table.server()) {
                self.follower.forget(run);
            }
            self.server = Some(table.server().to_owned());
            self.table = Some(table);
        }
        let table = self.table.as_ref().expect("opened above");
        let result = self.follower.read(run, table);
        if result.is_err() {
            self.table = None;
        }
        result
    }
}
