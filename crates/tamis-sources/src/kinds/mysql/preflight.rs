//! Rejects a server whose binary log is incomplete.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::explain::explained;
use crate::kinds::mysql::log_filter::{WRITERS, unlogged_updates, unlogged_writers};
use crate::kinds::mysql::options::MysqlOptions;

/// The message for a server without a binary log.
pub(super) const NO_LOG: &str = "the server writes no binary log; add to its configuration and restart it: \
    log_bin = binlog, server_id = 1, binlog_format = ROW; or poll the table with follow = \"poll\"";

/// Rejects a server whose log is incomplete. Returns true if the server syncs each transaction to its log.
pub(super) async fn check_settings(
    connection: &mut Conn,
    options: &MysqlOptions,
) -> Result<bool, SourceError> {
    let explained = |error: Error| explained(&error, options);
    let settings = "SELECT CAST(@@log_bin AS CHAR), @@global.binlog_format, \
        @@global.binlog_row_image, @@global.sync_binlog = 1";
    let settings: Option<(String, String, String, bool)> =
        connection.query_first(settings).await.map_err(explained)?;
    let Some((log, format, image, is_synced)) = settings else {
        return Err(SourceError::Connect("the server returned no binary log settings".to_owned()));
    };
    let refuse = |message: String| Err(SourceError::Preflight(message));
    if log != "1" && !log.eq_ignore_ascii_case("ON") {
        return refuse(NO_LOG.to_owned());
    }
    if !format.eq_ignore_ascii_case("ROW") {
        return refuse(format!(
            "binlog_format is {format}, so the log has statements instead of rows; run: \
             SET GLOBAL binlog_format = 'ROW' (and set it in the server's configuration)"
        ));
    }
    if !image.eq_ignore_ascii_case("FULL") {
        return refuse(format!(
            "binlog_row_image is {image}, so rows in the log may have no id; run: \
             SET GLOBAL binlog_row_image = 'FULL' (and set it in the server's configuration)"
        ));
    }
    // Only MariaDB has the variable `log_bin_compress`.
    let compressed: Result<Option<String>, Error> =
        connection.query_first("SELECT CAST(@@global.log_bin_compress AS CHAR)").await;
    if matches!(&compressed, Ok(Some(value)) if value == "1" || value.eq_ignore_ascii_case("ON")) {
        return refuse(
            "log_bin_compress is ON, and the guard cannot read compressed rows; run: \
             SET GLOBAL log_bin_compress = OFF (and set it in the server's configuration)"
                .to_owned(),
        );
    }
    let writers: Vec<(String, String)> = connection.query(WRITERS).await.map_err(explained)?;
    if let Some(message) = unlogged_writers(&writers) {
        return refuse(message);
    }
    match unlogged_updates(connection).await.map_err(explained)? {
        Some(message) => refuse(message),
        None => Ok(is_synced),
    }
}
