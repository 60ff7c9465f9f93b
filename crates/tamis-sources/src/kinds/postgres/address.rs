//! Parses the address of the server, and opens connections.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::explain::explained;
use crate::kinds::postgres::options::PostgresOptions;
use crate::tls::client_config;

/// A byte stream to the server: over TCP or a Unix socket, with or without TLS.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// The parsed URL of the settings, including the password.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    pub(super) user: String,
    pub(super) database: String,
    tls: Option<Arc<ClientConfig>>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Address {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, SourceError> {
        let refuse = |message: String| SourceError::Preflight(message);
        if has_stray_at(&options.url) {
            let message = "the URL of the database has more than one `@`; write an `@` in the \
                password as %40";
            return Err(refuse(message.to_owned()));
        }
        let mut config: Config = options.url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let cause = cause.unwrap_or_else(|| error.to_string());
            refuse(format!("the URL of the database: {cause}"))
        })?;
        let missing = |what, form| {
            refuse(format!("the URL of the database names no {what}; write postgres://{form}"))
        };
        let user = config.get_user().map(str::to_owned);
        let user = user.ok_or_else(|| missing("user", "USER:PASSWORD@host/database"))?;
        let database = config.get_dbname().filter(|it| !it.is_empty()).map(str::to_owned);
        let database =
            database.ok_or_else(|| missing("database", "user:password@host/DATABASE"))?;
        let hosts = config.get_hosts().len();
        if hosts == 0 {
            return Err(missing("host", "user:password@HOST/database"));
        }
        if ![0, 1, hosts].contains(&config.get_ports().len()) {
            return Err(refuse("the URL of the database needs one port for each host".to_owned()));
        }
        // Many drivers accept every certificate in the mode `prefer`. This source either verifies the certificate or
        // does not use TLS.
        let tls = match config.get_ssl_mode() {
            mode if mode == SslMode::Require || options.ca.is_some() => {
                let trusted = client_config(options.ca.as_deref());
                Some(Arc::new(trusted.map_err(|error| refuse(error.to_string()))?))
            }
            _ => None,
        };
        // The transport handles TLS, so the driver must not use TLS.
        config.ssl_mode(SslMode::Disable);
        if config.get_application_name().is_none() {
            config.application_name("tamis-guard");
        }
        Ok(Self { config, user, database, tls })
    }

    /// Returns the number of hosts.
    pub(super) fn hosts(&self) -> usize {
        self.config.get_hosts().len()
    }

    /// Returns the name of a host, or the folder of its Unix socket.
    pub(super) fn host_name(&self, host: usize) -> String {
        match &self.config.get_hosts()[host] {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        }
    }

    /// Returns the names and ports of all hosts for messages.
    pub(super) fn server_names(&self) -> String {
        let names =
            (0..self.hosts()).map(|host| format!("{}:{}", self.host_name(host), self.port(host)));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the port of a host.
    fn port(&self, host: usize) -> u16 {
        let ports = self.config.get_ports();
        *ports.get(host).or(ports.first()).unwrap_or(&5432)
    }

    /// Returns the password. Returns an empty password if the URL has no password.
    pub(super) fn password(&self) -> &[u8] {
        self.config.get_password().unwrap_or_default()
    }

    /// Connects to the host with the index `host`.
    pub(super) async fn connect(&self, host: usize) -> Result<Box<dyn Transport>, SourceError> {
        let port = self.port(host);
        let name = match &self.config.get_hosts()[host] {
            Host::Tcp(name) => name,
            #[cfg(unix)]
            Host::Unix(folder) => {
                let path = folder.join(format!(".s.PGSQL.{port}"));
                let stream = UnixStream::connect(&path).await;
                let stream = stream.map_err(|error| refused(&path.display(), &error))?;
                return Ok(Box::new(stream));
            }
        };
        let broken = |error: io::Error| refused(&format!("{name}:{port}"), &error);
        let mut stream = TcpStream::connect((&**name, port)).await.map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        stream.write_all(&request).await.map_err(broken)?;
        if stream.read_u8().await.map_err(broken)? != b'S' {
            let message =
                "the server has no TLS; set `ssl = on` there, or remove sslmode=require and `ca`";
            return Err(SourceError::Preflight(message.to_owned()));
        }
        let server = ServerName::try_from(name.clone());
        let server = server.map_err(|error| SourceError::Connect(format!("{name}: {error}")))?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(server, stream).await;
        Ok(Box::new(stream.map_err(broken)?))
    }

    /// Opens a connection for queries to the host with the index `host`.
    pub(super) async fn client(&self, host: usize) -> Result<Client, SourceError> {
        let transport = self.connect(host).await?;
        let connected = self.config.connect_raw(transport, NoTls).await;
        let (client, connection) = connected.map_err(|error| explained(&error))?;
        tokio::spawn(async move {
            // A failed connection makes its queries fail, so this task ignores the error.
            _ = connection.await;
        });
        // A full read must be complete, so the session disables time limits and row-level security.
        let settings = format!("SET row_security = off; {}; {ENDS_WHEN_LOST}", without_limits());
        client.batch_execute(&settings).await.map_err(|error| explained(&error))?;
        Ok(client)
    }
}

/// The SQL that lets the server end a session about a minute after the guard becomes unreachable. The initial snapshot
/// holds a lock on the table. Commands that change the table wait for this lock, and all queries of the table wait
/// behind a waiting command. By default, a server detects a lost client only after two hours.
const ENDS_WHEN_LOST: &str = "SELECT set_config(name, CASE name
        WHEN 'tcp_keepalives_count' THEN '3' WHEN 'tcp_user_timeout' THEN '60000' ELSE '15' END, false)
    FROM pg_settings WHERE name IN ('tcp_keepalives_idle', 'tcp_keepalives_interval',
        'tcp_keepalives_count', 'tcp_user_timeout')";

/// Returns the SQL that removes the time limits of a session. An older server supports only some of the settings for
/// time limits: `transaction_timeout` is new in PostgreSQL 17.
pub(super) fn without_limits() -> String {
    let limits = [
        "statement_timeout",
        "lock_timeout",
        "transaction_timeout",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
    ];
    format!(
        "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('{}')",
        limits.join("', '")
    )
}

/// Tests whether a URL has a second `@`. The first `@` ends the password. With a second `@`, a part of the password may
/// be parsed as the host or the database. Error messages contain the host and the database.
fn has_stray_at(url: &str) -> bool {
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    is_url && url.matches('@').count() > 1
}

fn refused(address: &dyn fmt::Display, error: &io::Error) -> SourceError {
    SourceError::Connect(format!("{address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_at_sign_in_a_password_is_refused_and_no_part_of_it_is_shown() {
        let address = |url: &str| Address::new(&PostgresOptions::new(url, "products", "id"));
        for url in [
            "postgres://guard:a@secret@host/shop",
            "postgresql://guard:a@secret@host:5432/shop?connect_timeout=1",
            "postgres://guard:a@secret/b@host/shop",
            "postgres://guard:a@1?secret@host/shop",
            "postgres://guard:@secret@@host,host2/shop",
        ] {
            let error = address(url).unwrap_err().to_string();
            assert!(error.contains("%40") && !error.contains("secret"), "{url}: {error}");
        }
        let known = address("postgres://guard:a%40secret@host/shop?sslmode=disable").unwrap();
        assert_eq!(known.password(), b"a@secret");
        assert!(address("host=host user=guard password=a@secret@b dbname=shop").is_ok());
    }
}
