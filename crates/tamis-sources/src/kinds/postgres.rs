//! Ids in a table of PostgreSQL, by logical replication. `polled.rs` polls a table instead.
//!
//! ```text
//! create a temporary slot at the point C, with a snapshot ─▶ follow the changes after C ─────▶
//!                                          └─▶ read all ids of the snapshot ─▶ publish
//! ```
//!
//! * **No id is missing.** The snapshot has exactly the transactions that were committed before C in
//!   the order of the log. The stream has all later ones, and the generation gets them from the start.
//!   The snapshot of an ordinary transaction would not do: a commit is in the log before other
//!   transactions see it, and a standby that confirms commits can stretch this time.
//! * **Deleted ids stay deleted.** The stream may have the deletion of a row that the read finds
//!   later. [`Generation::load`](crate::Generation::load) does not undo it.
//! * **A transaction is one step.** The server sends it after its commit. Its new ids are inserted as
//!   they arrive. Its deletions wait for its end, because it may insert a deleted id again.
//! * **The sync delay is measured.** At a moment T, the source asks for the end of the log. The record
//!   of a commit enters the log before the server confirms the commit, so all commits before T are
//!   before this end. The server decodes the log in order. Once the stream has passed the end, all
//!   ids are known that were committed before T.
//! * **The definition is watched.** The stream has no DDL: a table that is replaced by `RENAME` is
//!   followed under its new name, and changes of the other table are not sent. The question for the
//!   end of the log therefore also asks the catalog, after T, whether the name still means the table
//!   that is followed, its column, its publication and its partitions. If something has changed, the
//!   set is stale until all ids are read again. A change is noticed within
//!   [`SourceOptions::interval`](crate::SourceOptions).
//! * **A stopped guard keeps no log.** The slot is temporary: it ends with its connection. So all ids
//!   are read again after a broken connection. The ids in use stay meanwhile.
//! * **A permanent slot is possible.** Then the source goes on in the log after a broken connection and
//!   after a restart: see `resume.rs`. The server must limit the log that it keeps for slots.
//!
//! A deletion removes an id only if a unique index shows that no other row has it. Else the id passes
//! until all ids are read again: see [`SourceOptions::rebuild_after`](crate::SourceOptions).

mod address;
mod audit;
mod begin;
mod change_stream;
mod column;
mod connection;
mod definition;
mod explain;
mod follower;
mod full_read;
mod log_place;
mod lsn;
mod options;
mod permanent_slot;
mod pgoutput;
mod polled;
mod preflight;
mod resume;
mod row_reader;
mod server;
mod session;
mod slot;
mod slot_state;
mod table;
mod transaction;
mod unfinished_slot;

use std::time::Duration;

use audit::PostgresAudit;
use follower::Follower;
pub use options::PostgresOptions;
use polled::PostgresTable;
use resume::Resume;

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::poll::ServerReader;
use crate::source::audit_source::AuditSource;
use crate::source::kind::SourceKind;
use crate::source::run::{Reader, Run, SourceOptions};
use crate::source::runtime::runtime;

impl SourceKind for PostgresOptions {
    fn reader(&self, options: &SourceOptions) -> Box<dyn Reader> {
        match self.poll.clone() {
            Some(poll) => Box::new(ServerReader::<PostgresTable>::new(self.clone(), poll)),
            None => {
                let resume = Resume::new(self, options.snapshot.clone());
                Box::new(PostgresReader { options: self.clone(), resume })
            }
        }
    }

    fn audit(&self, id: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Ok(Box::new(PostgresAudit::open(self, id)?))
    }

    /// Returns the server and the permanent slot.
    fn exclusive(&self) -> Option<(&str, &str)> {
        Some((&self.url, self.slot.as_deref()?))
    }
}

/// Follows the changes. One call of [`read`](Reader::read) lasts as long as its connections.
#[derive(Debug)]
struct PostgresReader {
    options: PostgresOptions,
    resume: Resume,
}

impl Reader for PostgresReader {
    fn read(&mut self, run: &Run) -> Result<(), SourceError> {
        let runtime = runtime()?;
        let result = runtime.block_on(Follower::follow(&self.options, run, &mut self.resume));
        run.lag_bytes(None);
        runtime.shutdown_timeout(Duration::from_millis(100));
        result
    }

    fn stop(&mut self, run: &Run) {
        self.resume.stop(run);
    }
}
