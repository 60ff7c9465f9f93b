//! Ids in a table of MySQL or MariaDB, by the binary log.
//!
//! ```text
//! note the position ─▶ follow the log from it ───────────────────────▶
//!                      read all ids ─▶ note the end ─▶ wait for the log ─▶ publish
//! ```
//!
//! * **No id is missing.** A row that is committed before the position and exists with this id until
//!   the end is in the range of its id, and is read with it. A row that is committed later, or gets
//!   another id, is in the log after the position, and the generation gets all changes of the log.
//!   See `visible.rs` for the moment from which a query sees what the log has.
//! * **Deleted ids stay deleted.** The read may find a row that is deleted a moment later. The log
//!   has the deletion, and [`Generation::load`](crate::Generation::load) does not undo it.
//! * **A transaction is one step.** Its new ids are inserted at once. Its deletions wait for the
//!   commit, because a transaction may delete a row and insert it again (`REPLACE`).
//! * **The sync delay is measured.** At each interval the source asks for the position of the
//!   server. When the log has reached it, all ids are known that were committed before the question.
//!
//! After a broken connection the source goes on at the end of the last transaction. If the server is
//! another one or has deleted that part of the log, it reads all ids again. It also does so after a
//! statement that it does not understand: one that changes the table's definition, replaces or empties
//! the table, or changes rows in the statement format. The set is stale until then.
//!
//! A snapshot keeps the end of a transaction in the log. A source that starts goes on there. See
//! `snapshot.rs` for the consistency. The log is the one that the writer read if it is that of the
//! same server, if its file was created at the same time, and if it has the end of the snapshot. If
//! not, or if the table has other columns or unique indexes, the source reads all ids.
//!
//! InnoDB does not log what a foreign key changes. A row that it deletes (`ON DELETE CASCADE`) has an id that passes
//! until all ids are read again: see [`SourceOptions::rebuild_after`](crate::SourceOptions). A column that it
//! changes (`ON UPDATE CASCADE`) is refused, as is all else that `definition.rs` and `log_filter.rs` find.

mod audit;
mod cluster;
mod column;
mod connect;
mod definition;
mod explain;
mod follower;
mod full_read;
mod log_end;
mod log_filter;
mod log_place;
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

/// Follows the binary log. One call of [`read`](Reader::read) lasts as long as its connections.
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
