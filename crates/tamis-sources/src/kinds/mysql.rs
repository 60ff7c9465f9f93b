//! Reads ids from a table of MySQL or MariaDB, and follows its changes in the binary log.
//!
//! ```text
//! note the position ─▶ follow the log from it ───────────────────────▶
//!                      read all ids ─▶ note the end ─▶ wait for the log ─▶ publish
//! ```
//!
//! * **No id is missing.** The full read finds each row that was committed before the noted position and that keeps its
//!   id. If a row was committed after the noted position or gets another id, the log contains the change after the
//!   position. The generation receives all changes of the log after the position. `visible.rs` describes when a query
//!   sees a transaction of the log.
//! * **Deleted ids stay deleted.** The full read may find a row that is deleted shortly afterwards. The log contains
//!   the deletion, and [`Loader`](crate::Loader) does not undo a deletion.
//! * **The source applies a transaction atomically.** The source inserts new ids immediately. The source delays
//!   deletions until the commit, because a transaction may delete a row and insert the row again (`REPLACE`).
//! * **The lag is measured.** At each interval the source queries the log position of the server. When the stream has
//!   reached the queried position, the set contains all ids that were committed before the query.
//!
//! After a broken connection, the source continues at the end of the last transaction. The source does a full read if
//! the server is another server, or if the server has deleted the log after that transaction. The source also does a
//! full read after a statement that the source cannot interpret. The source cannot interpret statements that change the
//! definition of the table, replace or empty the table, or change rows in the statement format. The set is stale until
//! the full read ends.
//!
//! A snapshot contains the end of a transaction in the log. A starting source continues at the end of that transaction.
//! `snapshot.rs` proves the consistency of a snapshot. The source continues from a snapshot if the server is the same,
//! the log file was created at the same time, and the log contains the end of the snapshot. If the source cannot
//! continue from a snapshot, the source does a full read. The source also does a full read if the columns or the unique
//! indexes of the table have changed.
//!
//! InnoDB does not log the changes that a foreign key causes. If a foreign key deletes a row (`ON DELETE CASCADE`), the
//! id of the row passes until the next full read: see [`SourceOptions::rebuild_after`](crate::SourceOptions). If a
//! foreign key can change the id column (`ON UPDATE CASCADE`), the source rejects the table. The source also rejects
//! the cases that `definition.rs` and `log_filter.rs` describe.

mod audit;
mod charset;
mod cluster;
mod column;
mod condition;
mod connect;
mod definition;
mod explain;
mod follower;
mod full_read;
mod log_end;
mod log_filter;
mod log_place;
mod numbers;
mod options;
mod polled;
mod preflight;
mod quoted;
mod replica;
mod replica_filter;
mod row_events;
mod row_reader;
mod server;
mod statement;
mod table;
mod unreadable;
mod visible;

use std::time::Duration;

use audit::MysqlAudit;
use follower::Follower;
pub use options::MysqlOptions;
use polled::MysqlTable;

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::poll::ServerReader;
use crate::source::audit_source::AuditSource;
use crate::source::kind::SourceKind;
use crate::source::run::{Reader, Run, SourceOptions};
use crate::source::runtime::runtime;

impl SourceKind for MysqlOptions {
    fn name(&self) -> String {
        let server = connect::server_name(&self.url);
        format!("mysql {}.{} at {server}", self.named_table(), self.column)
    }

    fn reader(&self, options: &SourceOptions) -> Box<dyn Reader> {
        match self.poll.clone() {
            Some(poll) => Box::new(ServerReader::<MysqlTable>::new(self.clone(), poll)),
            None => {
                let follower = Follower::new(self.clone(), options.snapshot.clone());
                Box::new(MysqlReader { follower })
            }
        }
    }

    fn audit(&self, id: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Ok(Box::new(MysqlAudit::open(self, id)?))
    }
}

/// Follows the binary log. One call of [`read`](Reader::read) lasts until its connections break.
#[derive(Debug)]
struct MysqlReader {
    follower: Follower,
}

impl Reader for MysqlReader {
    fn read(&mut self, run: &Run) -> Result<(), SourceError> {
        let runtime = runtime()?;
        let result = runtime.block_on(run.unless_stopped(self.follower.follow(run)));
        run.lag_bytes(None);
        runtime.shutdown_timeout(Duration::from_millis(100));
        result
    }

    fn stop(&mut self, run: &Run) {
        self.follower.stop(run);
    }
}
