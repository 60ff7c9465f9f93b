//! Opens connections to a server.

use std::path::Path;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Opts, OptsBuilder, SslOpts, UrlError};

use crate::errors::source_error::SourceError;
use crate::kinds::mysql::explain::explained;
use crate::kinds::mysql::options::MysqlOptions;
use crate::tls::trusted;

/// The settings of each session, which override the defaults of the server.
const SETTINGS: [&str; 3] = [
    // Each query has its own snapshot, results are not truncated, `CHAR` values are not padded, and a backslash is an
    // escape character. For a system-versioned table of MariaDB, a query reads only the current rows.
    "SET /*M!100301 SESSION system_versioning_asof = DEFAULT, */ autocommit = 1, \
     sql_quote_show_create = 1, sql_select_limit = 18446744073709551615, sql_mode = \
     REPLACE(REPLACE(@@sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', ''), 'NO_BACKSLASH_ESCAPES', '')",
    // With the level `REPEATABLE READ`, queries do not see uncommitted rows.
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    // The server sends texts in UTF-8.
    "SET NAMES utf8mb4",
];

/// The query for the variables that identify a server.
const IDENTITY: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
    ('hostname', 'port', 'server_id', 'server_uid', 'server_uuid')";

/// The TCP keepalive interval: the system probes a connection that was idle for this time.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Connects to the server.
pub(super) async fn connect(options: &MysqlOptions) -> Result<Conn, SourceError> {
    connect_at(&options.url, options).await
}

/// Connects to the server at a URL.
pub(super) async fn connect_at(url: &str, options: &MysqlOptions) -> Result<Conn, SourceError> {
    // The connection uses only the address in the URL, because the address may belong to a tunnel.
    let opts = opts(url)?;
    let tls = match (opts.ssl_opts(), &options.ca) {
        (None, None) => None,
        // The client verifies no certificate, so the client needs no certificates of the operating system.
        (Some(tls), None) if tls.accept_invalid_certs() => Some(tls.clone()),
        (tls, ca) => Some(with_trusted(tls.cloned().unwrap_or_default(), ca.as_deref())?),
    };
    let opts = OptsBuilder::from_opts(opts)
        .ssl_opts(tls)
        .prefer_socket(false)
        .tcp_keepalive(Some(KEEPALIVE))
        .setup(SETTINGS.to_vec());
    Conn::new(opts).await.map_err(|error| explained(&error, options))
}

/// Returns `tls` with the trusted certificates of a PEM file. With `None`, the client trusts the certificates of the
/// operating system.
fn with_trusted(tls: SslOpts, ca: Option<&Path>) -> Result<SslOpts, SourceError> {
    let trusted = trusted(ca).map_err(|error| SourceError::Preflight(error.to_string()))?;
    let roots = trusted.into_iter().map(|certificate| certificate.to_vec().into()).collect();
    Ok(tls.with_root_certs(roots).with_disable_built_in_roots(true))
}

/// Returns the host and the port in a URL for messages, without the user and the password.
pub(super) fn server_name(url: &str) -> String {
    match parsed(url) {
        Ok(opts) => format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port()),
        Err(_) => "an unknown server".to_owned(),
    }
}

/// Parses the URL of the database.
pub(super) fn opts(url: &str) -> Result<Opts, SourceError> {
    parsed(url).map_err(|wrong| SourceError::Preflight(format!("the URL of the database {wrong}")))
}

/// Parses a URL. The error describes the problem without any part of the URL.
fn parsed(url: &str) -> Result<Opts, &'static str> {
    // The host ends at the first `/`, `?` or `#`. If an `@` follows, a part of the password may be parsed as the host
    // or the database. Error messages contain the host and the database, so the code rejects the URL.
    let (_, rest) = url.split_once("://").unwrap_or_default();
    if rest.find(['/', '?', '#']).is_some_and(|end| rest[end..].contains('@')) {
        return Err("has an `@` after a `/`, `?` or `#`; percent-encode the characters of the \
            password, such as `@` as %40 and `/` as %2F");
    }
    let opts = Opts::from_url(url).map_err(|error| explained_url(&error))?;
    // The system resolver does not accept an IPv6 address in brackets.
    let host = opts.ip_or_hostname();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = host.map(str::to_owned);
    Ok(match host {
        Some(host) => OptsBuilder::from_opts(opts).ip_or_hostname(host).into(),
        None => opts,
    })
}

/// Returns a description of the problem in a URL, without the text of the URL, which may contain the password.
fn explained_url(error: &UrlError) -> &'static str {
    match error {
        UrlError::UnsupportedScheme { .. } => "does not begin with mysql://",
        UrlError::UnknownParameter { .. }
        | UrlError::InvalidParamValue { .. }
        | UrlError::FeatureRequired { .. } => {
            "has a parameter after `?` that is not known or has a wrong value; if `?` is a part of \
             the password, write it as %3F"
        }
        _ => {
            "cannot be read; write mysql://user:password@host:3306/database, with other characters \
             than letters and digits in the password percent-encoded"
        }
    }
}

/// Connects to the server. Returns an error if the address leads to a server with another identity.
pub(super) async fn connect_to(
    options: &MysqlOptions,
    identity: &str,
) -> Result<Conn, SourceError> {
    let mut connection = connect(options).await?;
    let other = self::identity(&mut connection).await;
    check_identity(identity, &other.map_err(|error| explained(&error, options))?)?;
    Ok(connection)
}

/// Rejects another server, because its log and its rows differ from the log and the rows of the first server.
pub(super) fn check_identity(known: &str, other: &str) -> Result<(), SourceError> {
    if other == known {
        return Ok(());
    }
    Err(SourceError::Preflight(format!(
        "one connection reached the server {known}, and a later one another server ({other}); \
         write the address of one server in the URL, not that of a load balancer"
    )))
}

/// Returns the identity of the server: its host name, port, server id and UUID. Two servers behind one address have
/// different identities.
pub(super) async fn identity(connection: &mut Conn) -> Result<String, Error> {
    let mut rows: Vec<(String, String)> = connection.query(IDENTITY).await?;
    rows.sort();
    Ok(rows.into_iter().map(|it| it.1).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_url_shows_no_part_of_it() {
        for url in [
            "mysql://guard:secret#1@host/shop",
            "mysql://guard:secret/1@host/shop",
            "mysql://guard:1?secret@host/shop",
            "mysql://guard:1?secret=secret@host/shop",
            "mysql://guard:1?pool_min=secret@host/shop",
            "secret://guard:1@host/shop",
            "secret",
        ] {
            let error = parsed(url).unwrap_err();
            assert!(!error.contains("secret"), "{url}");
        }
    }

    #[test]
    fn a_host_that_may_be_a_part_of_the_password_is_refused() {
        for url in [
            "mysql://guard:a@secret/b@host/shop",
            "mysql://guard:a@secret?b@host/shop",
            "mysql://guard:1#secret@host/shop",
            "mysql://guard:1/secret@host/shop",
        ] {
            let error = parsed(url).unwrap_err();
            assert!(error.contains("%40") && !error.contains("secret"), "{url}: {error}");
        }
        for url in ["mysql://guard:a@secret@host/shop", "mysql://guard:a%40secret@host/shop"] {
            let opts = parsed(url).unwrap();
            assert_eq!((opts.ip_or_hostname(), opts.pass()), ("host", Some("a@secret")), "{url}");
        }
    }

    #[test]
    fn an_ipv6_address_has_no_brackets() {
        let opts = parsed("mysql://guard:a@[::1]:3307/shop").unwrap();
        assert_eq!((opts.ip_or_hostname(), opts.tcp_port()), ("::1", 3307));
        assert_eq!((opts.pass(), opts.db_name()), (Some("a"), Some("shop")));
    }
}
