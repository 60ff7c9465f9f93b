//! Reads the ids of many rows.

use std::io::ErrorKind;
use std::mem;
use std::time::Duration;

use mysql::prelude::Queryable as _;
use mysql::{Conn, Opts, OptsBuilder, SslOpts};

use crate::source::error::SourceError;
use crate::source::mysql::connect::{IDENTITY, SETTINGS, check_identity, identity_of, opts};
use crate::source::mysql::explain::explained_row;
use crate::source::mysql::options::MysqlOptions;
use crate::source::mysql::table::{Table, quoted};
use crate::source::read_threads::SILENCE;

/// How long the connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// After this silence, the system asks whether the server is still there.
const KEEPALIVE_MILLIS: u32 = 30_000;

/// A connection that reads rows. It waits for the server in the calling thread.
///
/// Of 3 M rows, its driver takes 0.25 µs for each one. `mysql_async`, which all other connections use,
/// takes 0.65 µs, more than all other work on a row together.
pub(super) struct RowReader {
    connection: Conn,
    options: MysqlOptions,
}

impl RowReader {
    /// Connects to a server that is known already, and to no other one behind its address.
    pub(super) fn open(options: &MysqlOptions, identity: &str) -> Result<Self, SourceError> {
        let explained = |error: mysql::Error| explained_row(&error, options);
        let mut connection = Conn::new(blocking(&opts(&options.url)?)).map_err(explained)?;
        let other = connection.query(IDENTITY).map_err(explained)?;
        check_identity(identity, &identity_of(other))?;
        Ok(Self { connection, options: options.clone() })
    }

    /// Returns the connection for other queries.
    pub(super) fn connection(&mut self) -> &mut Conn {
        &mut self.connection
    }

    /// Passes the id of each row that satisfies a condition to `each`, from one snapshot. `None` stands
    /// for NULL. After an error, the reader is of no more use.
    pub(super) fn each_row(
        &mut self,
        table: &Table,
        condition: &str,
        mut each: impl FnMut(Option<&[u8]>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let (column, from) = (quoted(&table.column), table.quoted());
        let sql = format!("SELECT {column} FROM {from} WHERE {condition}");
        let broken = |error: mysql::Error| match error {
            mysql::Error::IoError(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                SourceError::Connect("the server sends no more rows".to_owned())
            }
            _ => explained_row(&error, &self.options),
        };
        let mut rows = self.connection.query_iter(sql).map_err(broken)?;
        let result = rows.by_ref().try_for_each(|row| {
            let row = row.map_err(broken)?;
            each(row.as_ref(0).and_then(|value| table.kind.text(value)).as_deref())
        });
        if result.is_err() {
            // Its drop would read all other rows. The connection ends with the reader.
            mem::forget(rows);
        }
        result
    }
}

/// Returns the settings of a connection of `mysql_async` for this driver.
fn blocking(opts: &mysql_async::Opts) -> Opts {
    let tls = opts.ssl_opts().map(|tls| {
        SslOpts::default()
            .with_danger_accept_invalid_certs(tls.accept_invalid_certs())
            .with_danger_skip_domain_validation(tls.skip_domain_validation())
    });
    OptsBuilder::new()
        .ip_or_hostname(Some(opts.ip_or_hostname()))
        .tcp_port(opts.tcp_port())
        .user(opts.user())
        .pass(opts.pass())
        .db_name(opts.db_name())
        .ssl_opts(tls)
        .compress(opts.compression())
        .secure_auth(opts.secure_auth())
        .enable_cleartext_plugin(opts.enable_cleartext_plugin())
        .max_allowed_packet(opts.max_allowed_packet())
        .prefer_socket(false)
        .init(SETTINGS.to_vec())
        .tcp_connect_timeout(Some(CONNECT))
        .tcp_keepalive_time_ms(Some(KEEPALIVE_MILLIS))
        .read_timeout(Some(SILENCE))
        .write_timeout(Some(SILENCE))
        .into()
}
