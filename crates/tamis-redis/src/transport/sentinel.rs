//! A connection to the primary that Sentinels report.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Client, Connection, ConnectionInfo, ErrorKind, RedisError, Value};

use crate::transport::blocking::{Connect, ConnectionPool, HAS_TLS, Patience};
use crate::transport::cluster::{at, no_address};
use crate::transport::server_url::{ServerUrlError, client};

/// The connections to the primary that Sentinels report. Each call in flight has its own
/// connection. The client uses a reported node only if its `ROLE` is primary. If the node is not a
/// primary, the client asks the Sentinels again, within the limits of [`Patience`].
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedisFilter, SentinelNode};
///
/// let sentinels = ["redis://10.0.0.1:26379", "redis://10.0.0.2:26379"];
/// let node = "redis://user:password@localhost/0";
/// let primary = SentinelNode::new(sentinels, "mymaster", node, Patience::default())?;
/// let users = RedisFilter::open(primary, "users")?;
/// assert!(users.contains("alice")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SentinelNode = ConnectionPool<Sentinels>;

/// The Sentinels, and the name of a primary that the Sentinels monitor.
pub struct Sentinels {
    sentinels: Vec<Client>,
    /// The index of the Sentinel that replied last. The next connection asks this Sentinel first.
    first: AtomicUsize,
    pub(crate) service: String,
    /// The user, the password, the database and the TLS settings of the primary.
    node: ConnectionInfo,
}

impl ConnectionPool<Sentinels> {
    /// Parses the URLs of the Sentinels. `service` is the name of the primary. `node` is a URL with
    /// the user, the password, the database and the TLS settings of the primary. The host of `node`
    /// has no effect. The first request opens the connection.
    ///
    /// # Errors
    ///
    /// [`ServerUrlError`] if a URL is not valid, or if `sentinels` is empty.
    pub fn new<'u>(
        sentinels: impl IntoIterator<Item = &'u str>,
        service: &str,
        node: &str,
        patience: Patience,
    ) -> Result<Self, ServerUrlError> {
        Ok(Self::of_source(Sentinels::new(sentinels, service, node, HAS_TLS)?, patience))
    }
}

impl Sentinels {
    /// Parses the URLs of the Sentinels, and a URL with the user and the database of the primary.
    pub(crate) fn new<'u>(
        sentinels: impl IntoIterator<Item = &'u str>,
        service: &str,
        node: &str,
        has_tls: bool,
    ) -> Result<Self, ServerUrlError> {
        let sentinels =
            sentinels.into_iter().map(|url| client(url, has_tls)).collect::<Result<Vec<_>, _>>()?;
        let node = client(node, has_tls)?.get_connection_info().clone();
        if sentinels.is_empty() {
            return Err(ServerUrlError::no_url());
        }
        Ok(Self { sentinels, first: AtomicUsize::new(0), service: service.into(), node })
    }

    /// Returns the Sentinels with their indexes, in the order in which a connection asks them.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (usize, &Client)> {
        // The order only saves time, so the index needs no ordering with other memory.
        let first = self.first.load(Ordering::Relaxed);
        self.sentinels.iter().enumerate().cycle().skip(first).take(self.sentinels.len())
    }

    /// Stores the index of the Sentinel that replied.
    pub(crate) fn prefer(&self, sentinel: usize) {
        self.first.store(sentinel, Ordering::Relaxed);
    }

    /// Returns a client for the primary at the address that a Sentinel reported.
    pub(crate) fn primary_at(&self, host: &str, port: &str) -> Result<Client, RedisError> {
        Client::open(at(&self.node, &format!("{host}:{port}")))
    }

    /// Connects to the primary that a Sentinel reports.
    fn connect_by(&self, sentinel: &Client, timeout: Duration) -> Result<Connection, RedisError> {
        let mut sentinel = sentinel.get_connection_with_timeout(timeout)?;
        sentinel.set_read_timeout(Some(timeout))?;
        let (host, port): (String, String) = redis::cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.service)
            .query(&mut sentinel)?;
        let mut primary = self.primary_at(&host, &port)?.get_connection_with_timeout(timeout)?;
        primary.set_read_timeout(Some(timeout))?;
        check_role(redis::cmd("ROLE").query(&mut primary))?;
        Ok(primary)
    }
}

/// Returns an error if the reply to `ROLE` is not the reply of a primary. During a failover, a
/// Sentinel may still report the old primary, which lacks the inserts since the failover.
pub(crate) fn check_role(reply: Result<Vec<Value>, RedisError>) -> Result<(), RedisError> {
    match reply {
        Ok(role) if role.first() == Some(&Value::BulkString(b"master".into())) => Ok(()),
        Ok(_) => Err((
            ErrorKind::MasterNameNotFoundBySentinel,
            "the node that the Sentinel names is no primary",
        )
            .into()),
        // The client accepts the node if the user has no permission to run `ROLE`. If the accepted
        // node is a replica, only inserts fail.
        Err(error) if error.code() == Some("NOPERM") => Ok(()),
        Err(error) => Err(error),
    }
}

impl Connect for Sentinels {
    fn connect(&self, timeout: Duration) -> Result<Connection, RedisError> {
        let mut last = no_address();
        for (i, sentinel) in self.in_order() {
            match self.connect_by(sentinel, timeout) {
                Ok(connection) => {
                    self.prefer(i);
                    return Ok(connection);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}
