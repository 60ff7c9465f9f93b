//! The connection for queries about the table and the end of the log. `table.rs` finds the table, and `preflight.rs`
//! checks the settings.

use std::time::Instant;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::mysql::column::{Column, columns};
use crate::kinds::mysql::condition::RowCondition;
use crate::kinds::mysql::connect::{connect, identity};
use crate::kinds::mysql::definition::{ColumnUse, unlogged_engine, unlogged_values};
use crate::kinds::mysql::explain::explained;
use crate::kinds::mysql::log_end::{LogEnd, filtered, log_end};

use crate::kinds::mysql::log_place::Position;
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::preflight::{NO_LOG, check_settings};
use crate::kinds::mysql::replica::Replica;
use crate::kinds::mysql::table::{Table, find_table};

/// A connection for queries.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) connection: Conn,
    /// The identity of the server.
    pub(super) identity: String,
    pub(super) table: Table,
    pub(super) options: MysqlOptions,
    /// True if the server syncs each transaction to its log before it commits the transaction.
    pub(super) is_log_synced: bool,
    replica: Replica,
}

impl Server {
    /// Opens a connection. Rejects a server whose log does not contain all changes of the table.
    pub(super) async fn open(options: &MysqlOptions, id: &IdType) -> Result<Self, SourceError> {
        let mut server = Self::connect(options, id).await?;
        server.is_log_synced = check_settings(&mut server.connection, options).await?;
        let Table { database, name, table_type, .. } = &server.table;
        // `SYSTEM VERSIONED` is the type of a MariaDB table that keeps its old rows.
        if !["", "BASE TABLE", "SYSTEM VERSIONED"].contains(&&**table_type) {
            return Err(SourceError::Preflight(format!(
                "{database}.{name} is a {table_type}, and the binary log has only rows of tables; \
                 name the table that has the ids, or poll the view with follow = \"poll\""
            )));
        }
        server.check_definition().await?;
        // `known_before` rejects a server that may lag without any sign.
        server.known_before().await?;
        // `position` also tests the privileges of the user.
        server.position().await?;
        Ok(server)
    }

    /// Opens a connection, and finds the id column.
    pub(super) async fn connect(options: &MysqlOptions, id: &IdType) -> Result<Self, SourceError> {
        let mut connection = connect(options).await?;
        let database = connection.opts().db_name().map(str::to_owned).ok_or_else(|| {
            let message = "the URL names no database; write mysql://user@host/DATABASE";
            SourceError::Preflight(message.to_owned())
        })?;
        let identity = identity(&mut connection).await;
        let identity = identity.map_err(|error| explained(&error, options))?;
        let table = find_table(&mut connection, &database, options, id).await?;
        let select = connection.query_drop(format!("{} LIMIT 0", table.select("TRUE"))).await;
        select.map_err(|error| explained(&error, options))?;
        let (options, replica) = (options.clone(), Replica::default());
        Ok(Self { connection, identity, table, options, is_log_synced: false, replica })
    }

    /// Rejects a table, or a column of the id or of the condition, whose changes are not completely logged.
    async fn check_definition(&mut self) -> Result<(), SourceError> {
        let broken = |error: Error| explained(&error, &self.options);
        let refuse = |message: String| Err(SourceError::Preflight(message));
        let Table { database, name, .. } = &self.table;
        let table = format!("{database}.{name}");
        let sql = "SELECT COALESCE(ENGINE, '') FROM information_schema.TABLES \
            WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ?";
        let engine: Option<String> =
            self.connection.exec_first(sql, (database, name)).await.map_err(broken)?;
        if let Some(message) = unlogged_engine(&table, &engine.unwrap_or_default()) {
            return refuse(message);
        }
        // MySQL 9.6 and newer can log the changes that a foreign key causes.
        let sql = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'";
        let native: Option<(String, String)> =
            self.connection.query_first(sql).await.map_err(broken)?;
        let definition = match native {
            Some((_, value)) if value.eq_ignore_ascii_case("OFF") => None,
            _ => {
                let create = format!("SHOW CREATE TABLE {}", self.table.quoted());
                let create: Option<Row> =
                    self.connection.query_first(create).await.map_err(broken)?;
                Some(create.and_then(|row| row.get_opt::<String, _>(1)?.ok()).unwrap_or_default())
            }
        };
        let Table { column, condition, .. } = self.table.clone();
        let tested = condition.iter().flat_map(RowCondition::columns);
        let tested = tested.map(|column| (column, ColumnUse::Condition));
        for (column, column_use) in std::iter::once((&*column, ColumnUse::Id)).chain(tested) {
            self.check_column(&table, column, column_use, definition.as_deref()).await?;
        }
        Ok(())
    }

    /// Rejects a column whose changes are not completely logged. `definition` is the SQL that creates the table. The
    /// value is `None` if the server logs the changes that foreign keys cause.
    async fn check_column(
        &mut self,
        table: &str,
        column: &str,
        column_use: ColumnUse,
        definition: Option<&str>,
    ) -> Result<(), SourceError> {
        let refuse = |message: String| Err(SourceError::Preflight(message));
        let sql = "SELECT UPPER(EXTRA), UPPER(COLUMN_TYPE) FROM information_schema.COLUMNS \
            WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ? AND COLUMN_NAME = ?";
        let names = (&self.table.database, &self.table.name, column);
        let found: Option<(String, String)> = self
            .connection
            .exec_first(sql, names)
            .await
            .map_err(|error| explained(&error, &self.options))?;
        let (extra, column_type) = found.unwrap_or_default();
        // Some versions of MariaDB write `PERSISTENT` instead of `STORED`.
        let is_generated = ["GENERATED", "PERSISTENT"].iter().any(|it| extra.contains(it))
            && !extra.contains("DEFAULT_GENERATED");
        if extra.contains("VIRTUAL") {
            return refuse(format!(
                "{table}.{column} is a virtual generated column, whose values are not in the binary log; make it \
                 STORED, name a column from which it is computed, or poll the table with follow = \"poll\""
            ));
        }
        // The label of an ENUM may be `compressed`.
        if column_type.contains("COMPRESSED") && !column_type.starts_with("ENUM(") {
            return refuse(format!(
                "{table}.{column} is COMPRESSED, and the guard cannot read such values in the binary log; name \
                 another column, or poll the table with follow = \"poll\""
            ));
        }
        let message =
            definition.and_then(|it| unlogged_values(table, column, column_use, is_generated, it));
        message.map_or(Ok(()), refuse)
    }

    /// Returns a time: the server shows all rows that were committed before this time. Returns `None` if a replica has
    /// not returned any time yet.
    pub(super) async fn known_before(&mut self) -> Result<Option<Instant>, SourceError> {
        self.replica.known_before(&mut self.connection, &self.table, &self.options).await
    }

    /// Returns the columns of the table.
    pub(super) async fn columns(&mut self) -> Result<Vec<Column>, SourceError> {
        let found = columns(&mut self.connection, &self.table.database, &self.table.name).await;
        found.map_err(|error| explained(&error, &self.options))
    }

    /// Returns the estimated number of rows. Returns 0 if the server has no estimate.
    pub(super) async fn rows(&mut self) -> u64 {
        let sql = "SELECT TABLE_ROWS FROM information_schema.TABLES \
            WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ?";
        let names = (&self.table.database, &self.table.name);
        let rows = self.connection.exec_first::<Option<u64>, _, _>(sql, names).await;
        rows.ok().flatten().flatten().unwrap_or(0)
    }

    /// Returns the end of the log. The log contains all transactions that were committed before the call.
    pub(super) async fn position(&mut self) -> Result<Position, SourceError> {
        let end = log_end(&mut self.connection).await;
        let end = end.map_err(|error| explained(&error, &self.options))?;
        let LogEnd { position, only, ignored } =
            end.ok_or_else(|| SourceError::Preflight(NO_LOG.to_owned()))?;
        match filtered(&self.table.database, &only, &ignored) {
            Some(message) => Err(SourceError::Preflight(message)),
            None => Ok(position),
        }
    }

    /// Tests whether the server has executed an `XA COMMIT` since its start.
    pub(super) async fn has_xa_commits(&mut self) -> Result<bool, SourceError> {
        let count =
            self.connection.query_first("SHOW GLOBAL STATUS LIKE 'Com\\_xa\\_commit'").await;
        let count: Option<(String, u64)> =
            count.map_err(|error| explained(&error, &self.options))?;
        // If the server does not report the count, the method assumes that an `XA COMMIT` was executed.
        Ok(count.is_none_or(|(_, count)| count > 0))
    }
}
