//! Asynchronous connections to the nodes of a Redis cluster.

use std::sync::Arc;

use redis::{Client, Pipeline, RedisError, Value};

use crate::transport::asynchronous::{AsyncTransport, HAS_TLS, SharedConnection, parts};
use crate::transport::blocking::{Patience, replies};
use crate::transport::cluster::{Cluster, State, no_address};
use crate::transport::request::{NodeReply, NodeRequest};
use crate::transport::routes::{Address, Routed};
use crate::transport::server_url::ServerUrlError;

/// Asynchronous connections to the nodes of a Redis cluster, one for each node. Clones share the
/// connections.
///
/// The pipelines of all nodes run at the same time. Each pipeline is a task of tokio. The calls of
/// several tasks are in flight on each connection at the same time. The connection to a node
/// without slots is closed after its calls.
#[derive(Clone)]
pub struct AsyncClusterNodes {
    shared: Arc<Cluster<SharedConnection<Client>>>,
}

impl AsyncClusterNodes {
    /// Parses the URLs of some nodes, like [`ClusterNodes::new`](crate::ClusterNodes::new). The
    /// first requests open the connections.
    ///
    /// # Errors
    ///
    /// [`ServerUrlError`] if a URL is not valid, or if `urls` is empty.
    pub fn new<'u>(
        urls: impl IntoIterator<Item = &'u str>,
        patience: Patience,
    ) -> Result<Self, ServerUrlError> {
        Ok(Self { shared: Arc::new(Cluster::new(urls, patience, HAS_TLS)?) })
    }

    fn connection(&self, address: &Address) -> SharedConnection<Client> {
        self.shared.connections_to(address, SharedConnection::of_source)
    }

    /// Reads the slots of the cluster from the first node that replies.
    async fn load_routes(&self) -> Result<(), RedisError> {
        let mut last = no_address();
        for address in self.shared.addresses() {
            let mut pipeline = Pipeline::new();
            pipeline.cmd("CLUSTER").arg("SLOTS");
            let reply = self.connection(&address).exchange(&pipeline, 1).await;
            match reply.map(|mut values| values.pop()) {
                Ok(Some(slots)) if self.shared.load(&address, &slots) => return Ok(()),
                Ok(Some(Value::ServerError(error))) => last = error.into(),
                Ok(_) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Sends the open requests once, and stores their replies.
    async fn attempt(&self, requests: &[NodeRequest], open: &[usize], state: &mut State) {
        let is_outdated = self.shared.routes().is_outdated();
        if is_outdated && let Err(error) = self.load_routes().await {
            state.attempts.record(open, replies(Vec::new(), Some(&error), open.len()));
            return;
        }
        let nodes = self.shared.routes().distribute(requests, open, &state.asks);
        state.asks.clear();
        let mut tasks = Vec::new();
        for (node, routed) in nodes {
            let (pipeline, count) = pipeline(requests, &routed);
            let connection = self.connection(&node);
            let task = tokio::spawn(async move { connection.exchange(&pipeline, count).await });
            tasks.push((node, routed, task));
        }
        state.is_redirected = true;
        for (node, routed, task) in tasks {
            // If the task of a node was cancelled or panicked, its requests have no replies.
            let (values, error) = parts(task.await.unwrap_or_else(|_| Err(no_address())));
            let mut routes = self.shared.routes();
            state.evaluate(&mut routes, &node, &routed, values, error.as_ref());
        }
        state.finish();
    }
}

impl AsyncTransport for AsyncClusterNodes {
    async fn send(&self, requests: Vec<NodeRequest>) -> Vec<NodeReply> {
        let mut state = State::new(&requests);
        while let Some((open, pause)) = state.attempts.next(&self.shared.patience) {
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
