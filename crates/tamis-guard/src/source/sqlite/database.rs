//! The queries of the source.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Params, Transaction};

use crate::id::IdType;
use crate::source::error::SourceError;
use crate::source::file::{Identity, Signature};
use crate::source::sqlite::cell::{Cell, id_text};
use crate::source::sqlite::options::SqliteOptions;

/// How long a query waits for a lock. The source tries again after a pause.
const BUSY_TIMEOUT: Duration = Duration::from_millis(100);

/// How many steps of its virtual machine SQLite runs between two tests whether the source is stopped.
const STEPS: i32 = 10_000;

/// A connection that only reads.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    identity: Identity,
    is_uuid: bool,
    /// The first ids, and those above an id, in their order.
    first_ids: String,
    next_ids: String,
    /// The ids of all rows, and of those with a value of the change column from a bound on.
    all_ids: String,
    changed_ids: Option<String>,
    highest: Option<String>,
    is_live: String,
    deleted_ids: Option<String>,
}

impl Database {
    pub(super) fn open(
        options: &SqliteOptions,
        id_type: &IdType,
        is_stopped: Arc<AtomicBool>,
    ) -> Result<Self, SourceError> {
        // If another file is opened, `is_at_path` is false.
        let identity = Signature::of_path(&options.path)?.identity();
        // Without the flag to create a missing file.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&options.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A quoted name of a missing column must be an error, not a text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        // Acquire: pairs with the release of the stop.
        let handler = move || is_stopped.load(Ordering::Acquire);
        connection.progress_handler(STEPS, Some(handler))?;
        let SqliteOptions { from, id, .. } = options;
        let chunk = options.chunk.max(1);
        let condition = options.condition.as_deref().unwrap_or("1");
        let all_ids = format!("SELECT {id} FROM {from} WHERE ({condition}) AND {id} IS NOT NULL");
        // Under another collation, two ids may be equal, and a chunk may end between them.
        let order = format!("ORDER BY {id} COLLATE BINARY LIMIT {chunk}");
        let column = options.changes.as_ref().map(|changes| &changes.column);
        Ok(Self {
            connection,
            path: options.path.clone(),
            identity,
            is_uuid: *id_type == IdType::Uuid,
            first_ids: format!("{all_ids} {order}"),
            next_ids: format!("{all_ids} AND {id} COLLATE BINARY > ?1 {order}"),
            // A row without a value may be new.
            changed_ids: column
                .map(|column| format!("{all_ids} AND ({column} >= ?1 OR {column} IS NULL)")),
            highest: column.map(|column| format!("SELECT MAX({column}) FROM {from}")),
            is_live: format!("SELECT 1 FROM {from} WHERE ({condition}) AND {id} = ?1 LIMIT 1"),
            deleted_ids: options.deletions.clone(),
            all_ids,
        })
    }

    /// Tests whether the file at the path is still the open one.
    pub(super) fn is_at_path(&self) -> Result<bool, SourceError> {
        Ok(Signature::of_path(&self.path)?.identity() == self.identity)
    }

    /// Returns what tells the file from all others, also from one that gets its inode later. No file
    /// loses a committed change while the machine runs, but a crash may undo the last ones. `None`
    /// on a system or a file system that does not show this.
    pub(super) fn lasting_identity(&self) -> Option<String> {
        let created = std::fs::metadata(&self.path).ok()?.created().ok()?;
        let created = created.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let (device, inode) = self.identity;
        Some(format!("{device}:{inode} of {created} in {}", boot.trim()))
    }

    /// Returns a number that differs after each commit of another connection.
    pub(super) fn data_version(&self) -> Result<i64, SourceError> {
        self.number("PRAGMA data_version")
    }

    /// Returns a number that differs after each change of a table's definition.
    pub(super) fn schema_version(&self) -> Result<i64, SourceError> {
        self.number("PRAGMA schema_version")
    }

    /// Begins a transaction. All its queries see the same rows.
    pub(super) fn begin(&self) -> Result<Transaction<'_>, SourceError> {
        Ok(self.connection.unchecked_transaction()?)
    }

    /// Returns the largest value of the change column.
    pub(super) fn highest(&self) -> Result<Cell, SourceError> {
        let Some(sql) = &self.highest else { return Ok(Cell::Null) };
        let mut query = self.connection.prepare_cached(sql)?;
        Ok(query.query_row([], |row| Ok(Cell::from(row.get_ref(0)?)))?)
    }

    /// Passes the ids of all rows whose change column has at least the value `bound`.
    pub(super) fn each_changed(
        &self,
        bound: &Cell,
        each: impl FnMut(ValueRef<'_>, &[u8]) -> Result<(), SourceError>,
    ) -> Result<u64, SourceError> {
        match &self.changed_ids {
            Some(sql) if *bound != Cell::Null => self.each(sql, [bound], each),
            // The table was empty.
            _ => self.each(&self.all_ids, [], each),
        }
    }

    /// Passes the ids that the query for deletions returns.
    pub(super) fn each_deleted(
        &self,
        each: impl FnMut(ValueRef<'_>, &[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        if let Some(sql) = &self.deleted_ids {
            self.each(sql, [], each)?;
        }
        Ok(())
    }

    /// Passes the next ids in their order, after the id `after`. Returns their number.
    pub(super) fn chunk(
        &self,
        after: &Cell,
        each: impl FnMut(ValueRef<'_>, &[u8]) -> Result<(), SourceError>,
    ) -> Result<u64, SourceError> {
        match after {
            Cell::Null => self.each(&self.first_ids, [], each),
            after => self.each(&self.next_ids, [after], each),
        }
    }

    /// Tests whether a row has an id.
    pub(super) fn is_live(&self, id: &Cell) -> Result<bool, SourceError> {
        let mut query = self.connection.prepare_cached(&self.is_live)?;
        Ok(query.query_row([id], |_| Ok(())).optional()?.is_some())
    }

    /// Passes the first value of each row, as the database stores it and as a text.
    fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(ValueRef<'_>, &[u8]) -> Result<(), SourceError>,
    ) -> Result<u64, SourceError> {
        let mut query = self.connection.prepare_cached(sql)?;
        let mut rows = query.query(params)?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let value = row.get_ref(0)?;
            each(value, &id_text(value, self.is_uuid))?;
            count += 1;
        }
        Ok(count)
    }

    fn number(&self, sql: &str) -> Result<i64, SourceError> {
        Ok(self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }
}
