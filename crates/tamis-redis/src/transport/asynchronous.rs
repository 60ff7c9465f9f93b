//! Asynchronous connections to one server, which wait without blocking a thread.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisError, Value};

use crate::lock::locked;
use crate::single_flight::SingleFlight;
use crate::transport::blocking::{Attempts, Patience, replies};
use crate::transport::cluster::no_address;
use crate::transport::request::{NodeReply, NodeRequest};
use crate::transport::sentinel::{Sentinels, check_role};
use crate::transport::server_url::{ServerUrlError, client};

/// Whether the asynchronous connections can be encrypted.
pub(crate) const HAS_TLS: bool = cfg!(feature = "async-tls");

/// Sends requests and returns their replies in the same order, without blocking a thread.
///
/// If a request gets no reply and is [repeatable](NodeRequest::is_repeatable), a transport may send
/// the request again. Several tasks may send requests at the same time. A dropped future has no
/// effect on the requests of other tasks.
pub trait AsyncTransport: Send + Sync {
    /// Sends the requests in one pipeline for each node. Returns one reply for each request.
    fn send(&self, requests: Vec<NodeRequest>) -> impl Future<Output = Vec<NodeReply>> + Send;
}

/// A source of connections: the address of a server, or Sentinels that report the address.
pub trait AsyncConnect: Send + Sync + 'static {
    /// Opens a connection.
    fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> impl Future<Output = Result<MultiplexedConnection, RedisError>> + Send;
}

impl AsyncConnect for Client {
    async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, RedisError> {
        self.get_multiplexed_async_connection_with_config(config).await
    }
}

/// One connection to one server. Clones share the connection.
///
/// The calls of all tasks are in flight on the connection at the same time. After a failure, the
/// next call opens a new connection, and all calls that wait for a connection wait for this one. If
/// the server accepts no connection, the waiting calls get the same error. A call waits for the
/// connection of another call at most for the timeouts [`Patience::connect`] and
/// [`Patience::response`] together, and then opens a connection itself.
pub struct SharedConnection<C> {
    shared: Arc<ConnectionState<C>>,
}

struct ConnectionState<C> {
    source: C,
    patience: Patience,
    slot: Mutex<Slot>,
    connecting: SingleFlight<Result<Numbered, RedisError>>,
}

/// The present connection.
#[derive(Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    /// The number of connections that the calls have opened.
    opened: u64,
    /// The time of the first request after the last reply. If all callers drop their futures before
    /// the timeout, only this time shows that the server does not respond.
    silent_since: Option<Instant>,
}

/// A connection and its number.
type Numbered = (u64, MultiplexedConnection);

impl<C> Clone for SharedConnection<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C: AsyncConnect> SharedConnection<C> {
    pub(crate) fn of_source(source: C, patience: Patience) -> Self {
        let (slot, connecting) = (Mutex::default(), SingleFlight::new());
        Self { shared: Arc::new(ConnectionState { source, patience, slot, connecting }) }
    }

    /// Sends a pipeline once.
    pub(crate) async fn exchange(
        &self,
        pipeline: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, RedisError> {
        let (number, mut connection) = self.connection().await?;
        let result = connection.send_packed_commands(pipeline, 0, count).await;
        match result {
            Ok(_) => locked(&self.shared.slot).silent_since = None,
            Err(_) => self.shared.close(number),
        }
        result
    }

    /// Returns the present connection, or opens a connection.
    async fn connection(&self) -> Result<Numbered, RedisError> {
        if let Some(connection) = self.shared.present() {
            return Ok(connection);
        }
        // The connection opens in a task, because the other callers wait for the connection also if
        // the program drops or no longer polls the future of this caller. The task belongs to the
        // runtime of this caller. The program may stop driving this runtime, so the callers in
        // other runtimes wait only until a deadline.
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            let Patience { connect, response, .. } = shared.patience;
            let deadline = || tokio::time::sleep(connect.saturating_add(response));
            shared.connecting.run(shared.open(), deadline).await
        });
        task.await.unwrap_or_else(|_| Err(no_address()))
    }
}

impl<C: AsyncConnect> ConnectionState<C> {
    /// Returns the present connection, unless the server has not responded for too long.
    fn present(&self) -> Option<Numbered> {
        let mut slot = locked(&self.slot);
        if slot.silent_since.is_some_and(|since| since.elapsed() > self.patience.response) {
            slot.connection = None;
        }
        let connection = slot.connection.clone()?;
        slot.silent_since.get_or_insert_with(Instant::now);
        Some((slot.opened, connection))
    }

    /// Opens a connection, unless another caller has opened a connection.
    async fn open(&self) -> Result<Numbered, RedisError> {
        if let Some(connection) = self.present() {
            return Ok(connection);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.patience.connect))
            .set_response_timeout(Some(self.patience.response));
        let connection = self.source.connect(&config).await?;
        let mut slot = locked(&self.slot);
        slot.opened += 1;
        slot.connection = Some(connection.clone());
        slot.silent_since = None;
        Ok((slot.opened, connection))
    }

    /// Closes the connection with this number after its calls in flight. A newer connection stays.
    fn close(&self, number: u64) {
        let mut slot = locked(&self.slot);
        if slot.opened == number {
            slot.connection = None;
        }
    }
}

impl<C: AsyncConnect> AsyncTransport for SharedConnection<C> {
    async fn send(&self, requests: Vec<NodeRequest>) -> Vec<NodeReply> {
        let mut attempts = Attempts::new(&requests);
        while let Some((open, pause)) = attempts.next(&self.shared.patience) {
            tokio::time::sleep(pause).await;
            let mut pipeline = Pipeline::new();
            for &i in &open {
                pipeline.add_command(requests[i].command.clone());
            }
            let (values, error) = parts(self.exchange(&pipeline, open.len()).await);
            attempts.record(&open, replies(values, error.as_ref(), open.len()));
            if attempts.has_moved() {
                locked(&self.shared.slot).connection = None;
            }
        }
        attempts.into_replies()
    }
}

/// Splits the result of a pipeline into values and an error.
pub(crate) fn parts(reply: Result<Vec<Value>, RedisError>) -> (Vec<Value>, Option<RedisError>) {
    reply.map_or_else(|error| (Vec::new(), Some(error)), |values| (values, None))
}

/// An asynchronous connection to one server. Clones share the connection ([`SharedConnection`]).
pub type AsyncSingleNode = SharedConnection<Client>;

impl SharedConnection<Client> {
    /// Parses a URL such as `redis://user:password@host:port/database`. With the
    /// feature `async-tls`, the scheme `rediss` encrypts the connection. The first request opens
    /// the connection.
    ///
    /// # Errors
    ///
    /// [`ServerUrlError`] if the URL is not valid.
    pub fn new(url: &str, patience: Patience) -> Result<Self, ServerUrlError> {
        Ok(Self::of_source(client(url, HAS_TLS)?, patience))
    }

    /// Creates a connection to a node from a client of the crate `redis`.
    /// The first request opens the connection.
    #[must_use]
    pub fn of_client(client: Client, patience: Patience) -> Self {
        Self::of_source(client, patience)
    }
}

/// An asynchronous connection to the primary that Sentinels report. Clones share the connection
/// ([`SharedConnection`]).
pub type AsyncSentinelNode = SharedConnection<Sentinels>;

impl SharedConnection<Sentinels> {
    /// Parses the URLs of Sentinels, like [`SentinelNode::new`](crate::SentinelNode::new). The
    /// first request opens the connection.
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

impl AsyncConnect for Sentinels {
    async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, RedisError> {
        let mut last = no_address();
        for (i, sentinel) in self.in_order() {
            match connect_by(self, sentinel, config).await {
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

/// Connects to the primary that a Sentinel reports.
async fn connect_by(
    sentinels: &Sentinels,
    sentinel: &Client,
    config: &AsyncConnectionConfig,
) -> Result<MultiplexedConnection, RedisError> {
    let mut sentinel = sentinel.get_multiplexed_async_connection_with_config(config).await?;
    let (host, port): (String, String) = redis::cmd("SENTINEL")
        .arg("GET-MASTER-ADDR-BY-NAME")
        .arg(&sentinels.service)
        .query_async(&mut sentinel)
        .await?;
    let primary = sentinels.primary_at(&host, &port)?;
    let mut primary = primary.get_multiplexed_async_connection_with_config(config).await?;
    check_role(redis::cmd("ROLE").query_async(&mut primary).await)?;
    Ok(primary)
}
