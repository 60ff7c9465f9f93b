//! Asynchronous connections, which wait without blocking a thread.

use std::collections::HashMap;
use std::future::Future;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisError, Value};

use crate::transport::blocking::{Attempts, Patience, replies};
use crate::transport::cluster::{State, address_of, at, no_address, seeds};
use crate::transport::request::{NodeReply, NodeRequest};
use crate::transport::routes::{Address, Routed, Routes};
use crate::transport::sentinel::{Sentinels, check_role};

/// Sends requests and returns their replies in the same order, without blocking a thread.
///
/// If a request gets no reply and is [repeatable](NodeRequest::is_repeatable), a transport may send
/// the request again.
pub trait AsyncTransport: Send {
    /// Sends the requests in one pipeline for each node. Returns one reply for each request.
    fn send(&mut self, requests: Vec<NodeRequest>) -> impl Future<Output = Vec<NodeReply>> + Send;
}

/// A source of connections: the address of a server, or Sentinels that report the address.
pub trait AsyncConnect: Send {
    /// Opens a connection.
    fn connect(
        &mut self,
        config: &AsyncConnectionConfig,
    ) -> impl Future<Output = Result<MultiplexedConnection, RedisError>> + Send;
}

impl AsyncConnect for Client {
    async fn connect(
        &mut self,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, RedisError> {
        self.get_multiplexed_async_connection_with_config(config).await
    }
}

fn config(patience: &Patience) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(patience.connect))
        .set_response_timeout(Some(patience.response))
}

/// A cached connection to one server. After a failure, the next request opens a new connection.
pub struct AsyncLine<C> {
    source: C,
    connection: Option<MultiplexedConnection>,
    patience: Patience,
}

impl<C: Clone> Clone for AsyncLine<C> {
    /// Returns an `AsyncLine` with the source and the settings of `self`, but without an open
    /// connection.
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), connection: None, patience: self.patience }
    }
}

impl<C: AsyncConnect> AsyncLine<C> {
    fn of_source(source: C, patience: Patience) -> Self {
        Self { source, connection: None, patience }
    }

    /// Sends a pipeline once.
    async fn exchange(
        &mut self,
        pipeline: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, RedisError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.source.connect(&config(&self.patience)).await?,
        };
        let values = connection.send_packed_commands(pipeline, 0, count).await?;
        // An `AsyncLine` keeps its connection only after a successful pipeline. If a pipeline fails
        // or its future is dropped, the connection is closed.
        self.connection = Some(connection);
        Ok(values)
    }
}

impl<C: AsyncConnect> AsyncTransport for AsyncLine<C> {
    async fn send(&mut self, requests: Vec<NodeRequest>) -> Vec<NodeReply> {
        let mut attempts = Attempts::new(&requests);
        while let Some((open, pause)) = attempts.next(&self.patience) {
            tokio::time::sleep(pause).await;
            let mut pipeline = Pipeline::new();
            for &i in &open {
                pipeline.add_command(requests[i].command.clone());
            }
            let (values, error) = parts(self.exchange(&pipeline, open.len()).await);
            attempts.record(&open, replies(values, error.as_ref(), open.len()));
            if attempts.has_moved() {
                self.connection = None;
            }
        }
        attempts.into_replies()
    }
}

/// An asynchronous connection to one server. Each clone opens its own connection.
pub type AsyncSingleNode = AsyncLine<Client>;

impl AsyncLine<Client> {
    /// Parses a URL such as `redis://user:password@host:port/database`. With the
    /// feature `async-tls`, the scheme `rediss` encrypts the connection. The first request opens
    /// the connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL cannot be parsed.
    pub fn new(url: &str, patience: Patience) -> Result<Self, RedisError> {
        Ok(Self::of_source(Client::open(url)?, patience))
    }

    /// Creates an `AsyncLine`, a cached connection to a node, from a client of the crate `redis`.
    /// The first request opens the connection.
    #[must_use]
    pub fn of_client(client: Client, patience: Patience) -> Self {
        Self::of_source(client, patience)
    }
}

/// An asynchronous connection to the primary that Sentinels report.
pub type AsyncSentinelNode = AsyncLine<Sentinels>;

impl AsyncLine<Sentinels> {
    /// Parses the URLs of Sentinels, like [`SentinelNode::new`](crate::SentinelNode::new). The
    /// first request opens the connection.
    ///
    /// # Errors
    ///
    /// Returns an error if a URL cannot be parsed.
    pub fn new<'u>(
        sentinels: impl IntoIterator<Item = &'u str>,
        service: &str,
        node: &str,
        patience: Patience,
    ) -> Result<Self, RedisError> {
        Ok(Self::of_source(Sentinels::new(sentinels, service, node)?, patience))
    }
}

impl AsyncConnect for Sentinels {
    async fn connect(
        &mut self,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, RedisError> {
        let mut last = no_address();
        for i in 0..self.sentinels.len() {
            match connect_by(self, &self.sentinels[i], config).await {
                Ok(connection) => {
                    self.sentinels.swap(0, i);
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

/// Asynchronous connections to the nodes of a Redis cluster.
///
/// The pipelines of all nodes run at the same time. Each pipeline is a task of tokio.
#[derive(Clone)]
pub struct AsyncClusterNodes {
    seeds: Vec<Client>,
    lines: HashMap<Address, AsyncLine<Client>>,
    routes: Routes,
    patience: Patience,
}

impl AsyncClusterNodes {
    /// Parses the URLs of some nodes, like [`ClusterNodes::new`](crate::ClusterNodes::new). The
    /// first requests open the connections.
    ///
    /// # Errors
    ///
    /// Returns an error if a URL cannot be parsed, or if `urls` is empty.
    pub fn new<'u>(
        urls: impl IntoIterator<Item = &'u str>,
        patience: Patience,
    ) -> Result<Self, RedisError> {
        let seeds = seeds(urls)?;
        Ok(Self { seeds, lines: HashMap::new(), routes: Routes::default(), patience })
    }

    /// Removes the cached connection to a node from the map, and returns the connection. If the map
    /// has no connection to the node, creates an `AsyncLine`, which opens the connection at the
    /// first request.
    fn take_line(&mut self, address: &Address) -> AsyncLine<Client> {
        self.lines.remove(address).unwrap_or_else(|| {
            let info = at(self.seeds[0].get_connection_info(), address);
            let client = Client::open(info).expect("the URL was parsed before");
            AsyncLine::of_source(client, self.patience)
        })
    }

    async fn load_routes(&mut self) -> Result<(), RedisError> {
        let mut addresses = self.routes.nodes();
        addresses.extend(self.seeds.iter().map(address_of));
        let mut last = no_address();
        for address in addresses {
            let mut pipeline = Pipeline::new();
            pipeline.cmd("CLUSTER").arg("SLOTS");
            let mut line = self.take_line(&address);
            let reply = line.exchange(&pipeline, 1).await;
            self.lines.insert(address.clone(), line);
            match reply.map(|mut values| values.pop()) {
                Ok(Some(slots)) if self.routes.load(&address, &slots) => return Ok(()),
                Ok(Some(Value::ServerError(error))) => last = error.into(),
                Ok(_) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn attempt(&mut self, requests: &[NodeRequest], open: &[usize], state: &mut State) {
        if self.routes.is_outdated()
            && let Err(error) = self.load_routes().await
        {
            state.attempts.record(open, replies(Vec::new(), Some(&error), open.len()));
            return;
        }
        let nodes = self.routes.distribute(requests, open, &state.asks);
        state.asks.clear();
        let mut tasks = Vec::new();
        for (node, routed) in nodes {
            let (pipeline, count) = pipeline(requests, &routed);
            let mut line = self.take_line(&node);
            let task = tokio::spawn(async move {
                let reply = line.exchange(&pipeline, count).await;
                (line, reply)
            });
            tasks.push((node, routed, task));
        }
        state.is_redirected = true;
        for (node, routed, task) in tasks {
            // If the task of a node was cancelled or panicked, the connection to this node is lost.
            let reply = match task.await {
                Ok((line, reply)) => {
                    self.lines.insert(node.clone(), line);
                    reply
                }
                Err(_) => Err(no_address()),
            };
            let (values, error) = parts(reply);
            state.evaluate(&mut self.routes, &node, &routed, values, error.as_ref());
        }
        state.finish();
    }
}

impl AsyncTransport for AsyncClusterNodes {
    async fn send(&mut self, requests: Vec<NodeRequest>) -> Vec<NodeReply> {
        let mut state = State::new(&requests);
        while let Some((open, pause)) = state.attempts.next(&self.patience) {
            tokio::time::sleep(pause).await;
            self.attempt(&requests, &open, &mut state).await;
        }
        state.attempts.into_replies()
    }
}

/// Returns the pipeline for one node, and the number of commands in the pipeline.
fn pipeline(requests: &[NodeRequest], routed: &[Routed]) -> (Pipeline, usize) {
    let mut pipeline = Pipeline::new();
    for &Routed { request, is_asking } in routed {
        if is_asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(requests[request].command.clone());
    }
    let count = pipeline.len();
    (pipeline, count)
}

/// Splits the result of a pipeline into values and an error.
fn parts(reply: Result<Vec<Value>, RedisError>) -> (Vec<Value>, Option<RedisError>) {
    reply.map_or_else(|error| (Vec::new(), Some(error)), |values| (values, None))
}
