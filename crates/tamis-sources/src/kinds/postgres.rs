//! Reads ids from a table of PostgreSQL, and follows its changes by logical replication. `polled.rs` polls a table
//! instead of following its changes.
//!
//! ```text
//! create a temporary slot at the point C, with a snapshot ─▶ follow the changes after C ─────▶
//!                                          └─▶ read all ids of the snapshot ─▶ publish
//! ```
//!
//! * **No id is missing.** The snapshot of the slot contains exactly the transactions that were committed before C in
//!   the order of the log. The stream contains all transactions after C, and the generation receives all changes of the
//!   stream. The snapshot of an ordinary transaction is not sufficient, because a commit enters the log before other
//!   transactions see the commit. A synchronous standby can extend the time between the log record and the visibility.
//! * **Deleted ids stay deleted.** The stream may deliver the deletion of a row before the full read finds the row.
//!   [`Loader`](crate::Loader) does not undo a deletion.
//! * **The source applies a transaction atomically.** The server sends a transaction after its commit. The source
//!   inserts new ids on arrival. The source delays deletions until the end of the transaction, because the transaction
//!   may insert a deleted id again.
//! * **The lag is measured.** At a time T, the source queries the end of the log. The record of a commit enters the log
//!   before the server confirms the commit, so all commits before T are before the end of the log. The server decodes
//!   the log in order. When the stream has passed the queried end of the log, the set contains all ids that were
//!   committed before T.
//! * **The definition is watched.** The stream contains no DDL. If `RENAME` replaces a table, the stream follows the
//!   old table under its new name, and does not send changes of the new table. The query for the end of the log
//!   therefore also reads the catalog after T. The query checks that the configured table name still refers to the
//!   followed table. The query also checks that the column, the publication and the partitions of the table are
//!   unchanged. If a definition has changed, the set is stale until the next full read ends. The source detects a
//!   change within [`SourceOptions::interval`](crate::SourceOptions).
//! * **A stopped guard retains no log on the server.** The slot is temporary: the slot ends with its connection. After
//!   a broken connection, the source does a full read. The set keeps the present ids during the full read.
//! * **A permanent slot is possible.** With a permanent slot, the source continues the log after a broken connection
//!   and after a restart. `resume.rs` describes how the source continues. The server must limit the size of the log
//!   that it retains for slots.
//!
//! A deletion removes an id only if a unique index shows that no other row has the same id. Without a unique index, the
//! id passes until the next full read: see [`SourceOptions::rebuild_after`](crate::SourceOptions).

mod address;
mod audit;
mod begin;
mod change_stream;
mod column;
mod condition;
mod connection;
mod definition;
mod explain;
mod follower;
mod full_read;
mod id_column;
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

use address::Address;
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
    fn name(&self) -> String {
        let (table, column) = (&self.table, &self.column);
        match Address::new(self) {
            Ok(address) => {
                let (database, servers) = (&address.database, address.server_names());
                format!("postgres {database}.{table}.{column} at {servers}")
            }
            Err(_) => format!("postgres {table}.{column} at an unknown server"),
        }
    }

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

    /// Returns the URL of the server and the name of the permanent slot.
    fn exclusive(&self) -> Option<(&str, &str)> {
        Some((&self.url, self.slot.as_deref()?))
    }
}

/// Follows the stream of changes. One call of [`read`](Reader::read) lasts until its connections break.
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
