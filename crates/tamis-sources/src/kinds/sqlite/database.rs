//! The SQL queries of an SQLite source.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Params};

use crate::errors::source_error::SourceError;
use crate::ids::fold::Fold;
use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::kinds::file::{Identity, Signature};
use crate::kinds::poll::{ColumnValue, EachDeleted, PolledDatabase};
use crate::kinds::sqlite::column_value::id_text;
use crate::kinds::sqlite::options::SqliteOptions;
use crate::source::run::Run;
use crate::source::status::Rows;

/// The maximum wait of a query for a lock. The source repeats the query after a pause.
const BUSY_TIMEOUT: Duration = Duration::from_millis(100);

/// The number of virtual machine steps that SQLite runs between two tests of the stop flag.
const STEPS: i32 = 10_000;

/// A read-only connection.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    identity: Identity,
    is_uuid: bool,
    /// A query that tests whether the column compares text with case and with trailing spaces. The value is `None` if
    /// the ids are not texts.
    collation: Option<String>,
    /// The number of ids that one transaction reads.
    chunk: u32,
    /// The queries for the first ids, and for the ids above a given id, in ascending order.
    first_ids: String,
    next_ids: String,
    /// The queries for the ids of all rows, and for the ids of rows with a change column of at least a bound.
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
        // If another program replaces the file between the two calls below, `is_same` returns false later.
        let identity = Signature::of_path(&options.path)?.identity();
        // The flags omit `SQLITE_OPEN_CREATE`, so that SQLite does not create a missing file.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&options.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // Without double-quoted string literals, a quoted name of a missing column is an error and not a text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        // Acquire: pairs with the release in `Source::stop`.
        let handler = move || is_stopped.load(Ordering::Acquire);
        connection.progress_handler(STEPS, Some(handler))?;
        let SqliteOptions { from, id, .. } = options;
        let chunk = options.chunk.max(1);
        let condition = options.condition.as_deref().unwrap_or("1");
        let all_ids = format!("SELECT {id} FROM {from} WHERE ({condition}) AND {id} IS NOT NULL");
        // Under another collation, two distinct ids may be equal, and a chunk may end between the two ids.
        let order = format!("ORDER BY {id} COLLATE BINARY LIMIT {chunk}");
        let column = options.changes.as_ref().map(|changes| &changes.column);
        Ok(Self {
            connection,
            path: options.path.clone(),
            identity,
            is_uuid: *id_type == IdType::Uuid,
            // In a `UNION ALL`, the column of the first query decides the collation.
            collation: matches!(id_type, IdType::Text { .. }).then(|| {
                format!(
                    "SELECT c = 'a', c = 'A ' FROM (SELECT {id} AS c FROM {from} WHERE 0 UNION ALL SELECT 'A')"
                )
            }),
            chunk,
            first_ids: format!("{all_ids} {order}"),
            next_ids: format!("{all_ids} AND {id} COLLATE BINARY > ?1 {order}"),
            // A row with `NULL` in the change column may be new.
            changed_ids: column
                .map(|column| format!("{all_ids} AND ({column} >= ?1 OR {column} IS NULL)")),
            highest: column.map(|column| format!("SELECT MAX({column}) FROM {from}")),
            is_live: format!("SELECT 1 FROM {from} WHERE ({condition}) AND {id} = ?1 LIMIT 1"),
            deleted_ids: options.deletions.clone(),
            all_ids,
        })
    }

    /// Passes the next ids after the id `after`, in ascending order. Returns the number of ids.
    pub(super) fn chunk(
        &self,
        after: &ColumnValue,
        each: impl FnMut(ValueRef<'_>, &[u8]) -> Result<(), SourceError>,
    ) -> Result<u64, SourceError> {
        match after {
            ColumnValue::Null => self.each(&self.first_ids, [], each),
            after => self.each(&self.next_ids, [after], each),
        }
    }

    /// Tests whether a row with this id exists.
    fn is_live(&self, id: &ColumnValue) -> Result<bool, SourceError> {
        let mut query = self.connection.prepare_cached(&self.is_live)?;
        Ok(query.query_row([id], |_| Ok(())).optional()?.is_some())
    }

    /// Reads the next ids. Returns the last id, or `None` after the last chunk.
    fn read_chunk(
        &self,
        run: &Run,
        generation: &Generation,
        after: &ColumnValue,
    ) -> Result<Option<ColumnValue>, SourceError> {
        let (mut rows, mut last) = (Rows::default(), ColumnValue::Null);
        let count = self.chunk(after, |value, text| {
            let id = run.canonical(text);
            rows.add(id.is_some());
            if let Some(id) = id {
                // The chunk is newer than all deletions that a poll has found.
                generation.insert_key(&id, run.ids.options().id.value_of(&id))?;
            }
            last = value.into();
            Ok(())
        })?;
        run.count(rows);
        Ok((count >= u64::from(self.chunk)).then_some(last))
    }

    /// Passes the first column of each row, as the stored value and as a text.
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

impl PolledDatabase for Database {
    fn fold(&self) -> Result<Fold, SourceError> {
        let Some(sql) = &self.collation else { return Ok(Fold::Exact) };
        let row = self.connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(match row? {
            (true, _) => Fold::Case,
            (false, true) => Fold::Padded,
            (false, false) => Fold::Exact,
        })
    }

    fn version(&self) -> Result<Option<i64>, SourceError> {
        self.number("PRAGMA data_version").map(Some)
    }

    fn schema(&self) -> Result<String, SourceError> {
        self.number("PRAGMA schema_version").map(|version| version.to_string())
    }

    fn after_change(&self) -> Result<(), SourceError> {
        // SQLite stores the type with each value, so a new schema does not require a new connection.
        Ok(())
    }

    /// Tests whether the file at the path is still the opened file.
    fn is_same(&self) -> Result<bool, SourceError> {
        Ok(Signature::of_path(&self.path)?.identity() == self.identity)
    }

    /// Returns the device, the inode, the creation time and the boot id. The creation time distinguishes the file from
    /// a later file with the same inode. While the machine runs, the file loses no commit.
    fn lasting_identity(&self) -> Option<String> {
        let created = std::fs::metadata(&self.path).ok()?.created().ok()?;
        let created = created.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let (device, inode) = self.identity;
        Some(format!("{device}:{inode} of {created} in {}", boot.trim()))
    }

    fn in_snapshot<T>(
        &self,
        queries: impl FnOnce() -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let _transaction = self.connection.unchecked_transaction()?;
        queries()
    }

    fn highest(&self) -> Result<ColumnValue, SourceError> {
        let Some(sql) = &self.highest else { return Ok(ColumnValue::Null) };
        let mut query = self.connection.prepare_cached(sql)?;
        Ok(query.query_row([], |row| Ok(ColumnValue::from(row.get_ref(0)?)))?)
    }

    fn each_changed(
        &self,
        bound: &ColumnValue,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let row = |_: ValueRef<'_>, text: &[u8]| each(text);
        match &self.changed_ids {
            Some(sql) if *bound != ColumnValue::Null => self.each(sql, [bound], row),
            // The table was empty at the last poll.
            _ => self.each(&self.all_ids, [], row),
        }
        .map(drop)
    }

    fn each_deleted(&self, each: EachDeleted<'_>) -> Result<(), SourceError> {
        let Some(sql) = &self.deleted_ids else { return Ok(()) };
        let row = |value: ValueRef<'_>, text: &[u8]| each(text, self.is_live(&value.into())?);
        self.each(sql, [], row).map(drop)
    }

    fn read_all(
        &self,
        run: &Run,
        generation: &Arc<Generation>,
        pause: &mut dyn FnMut() -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        let mut last = ColumnValue::Null;
        loop {
            let next = retry(run, || self.read_chunk(run, generation, &last))?;
            let Some(next) = next else { return Ok(()) };
            last = next;
            if !retry(run, &mut *pause)? {
                return Ok(());
            }
        }
    }

    fn rows(&self) -> Result<u64, SourceError> {
        Ok(0)
    }
}

/// Repeats a read while another connection holds a lock, so that a long read continues after the lock.
fn retry<T>(run: &Run, mut read: impl FnMut() -> Result<T, SourceError>) -> Result<T, SourceError> {
    let start = Instant::now();
    loop {
        match read() {
            Err(SourceError::Sqlite(error))
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && !run.is_stopped()
                    && start.elapsed() < run.options.stale_after =>
            {
                run.sleep(run.options.interval);
            }
            result => return result,
        }
    }
}
