//! Blocking connections to the nodes of a Redis cluster.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, Value};

use crate::lock::locked;
use crate::transport::blocking::{Attempts, ConnectionPool, HAS_TLS, Patience, Transport, replies};
use crate::transport::request::{NodeReply, NodeRequest};
use crate::transport::routes::{Address, Asks, Routed, Routes};
use crate::transport::server_url::{ServerUrlError, client};

/// Blocking connections to the nodes of a Redis cluster.
///
/// The transport sends one pipeline to each node, and then waits for all replies. A batch therefore
/// takes the time of one round trip. The transport follows the redirections `MOVED` and `ASK`, and
/// reads the slots of the cluster again after a failure. Calls of different threads run at the same
/// time, each on its own connections ([`ConnectionPool`]). Clones share the connections. The idle
/// connections to a node without slots are closed.
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{ClusterNodes, Patience, RedisFilter, RedisPlan};
///
/// let nodes = ClusterNodes::new(["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"], Patience::default())?;
/// let plan = RedisPlan::new(100_000_000, 0.01)?;
/// let users = RedisFilter::open_or_create(nodes, "users", &plan)?;
/// assert_eq!(users.insert("alice"), Ok(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ClusterNodes {
    shared: Arc<Cluster<ConnectionPool<Client>>>,
}

/// The addresses of a cluster, and the connections to its nodes.
pub(crate) struct Cluster<C> {
    seeds: Vec<Client>,
    pub(crate) patience: Patience,
    routes: Mutex<Routes>,
    connections: Mutex<HashMap<Address, C>>,
}

impl<C: Clone> Cluster<C> {
    /// Parses the URLs of some nodes. Returns an error if `urls` is empty.
    pub(crate) fn new<'u>(
        urls: impl IntoIterator<Item = &'u str>,
        patience: Patience,
        has_tls: bool,
    ) -> Result<Self, ServerUrlError> {
        let seeds =
            urls.into_iter().map(|url| client(url, has_tls)).collect::<Result<Vec<_>, _>>()?;
        if seeds.is_empty() {
            return Err(ServerUrlError::no_url());
        }
        Ok(Self { seeds, patience, routes: Mutex::default(), connections: Mutex::default() })
    }

    pub(crate) fn routes(&self) -> MutexGuard<'_, Routes> {
        locked(&self.routes)
    }

    /// Returns the addresses of all known nodes, and then the addresses of the caller's URLs.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        let mut addresses = self.routes().nodes();
        addresses.extend(self.seeds.iter().map(address_of));
        addresses
    }

    /// Returns the connections to a node. Calls `open` if the node is new.
    pub(crate) fn connections_to(&self, address: &Address, open: fn(Client, Patience) -> C) -> C {
        let new = || {
            let info = at(self.seeds[0].get_connection_info(), address);
            open(Client::open(info).expect("the URL was parsed before"), self.patience)
        };
        locked(&self.connections).entry(address.clone()).or_insert_with(new).clone()
    }

    /// Stores the slots that the node `from` has sent, and closes the idle connections to nodes
    /// without slots. The calls in flight keep their connections. Returns false if the reply
    /// contains no slots.
    pub(crate) fn load(&self, from: &str, slots: &Value) -> bool {
        let mut routes = self.routes();
        if !routes.load(from, slots) {
            return false;
        }
        let nodes = routes.nodes();
        locked(&self.connections).retain(|address, _| nodes.binary_search(address).is_ok());
        true
    }
}

impl ClusterNodes {
    /// Parses the URLs of some nodes. The user, the password and the TLS settings of the first URL
    /// apply to all nodes. The first requests open the connections.
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

    fn pool(&self, address: &Address) -> ConnectionPool<Client> {
        self.shared.connections_to(address, ConnectionPool::of_source)
    }

    /// Reads the slots of the cluster from the first node that replies.
    fn load_routes(&self) -> Result<(), RedisError> {
        let mut last = no_address();
        for address in self.shared.addresses() {
            match self.slots_of(&address) {
                Ok(slots) if self.shared.load(&address, &slots) => return Ok(()),
                Ok(Value::ServerError(error)) => last = error.into(),
                Ok(_) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn slots_of(&self, address: &Address) -> Result<Value, RedisError> {
        let packed = redis::cmd("CLUSTER").arg("SLOTS").get_packed_command();
        let pool = self.pool(address);
        let (mut values, error) = pool.finish(pool.start(&packed)?, 1);
        values.pop().ok_or_else(|| error.unwrap_or_else(no_address))
    }

    /// Sends the open requests once, and stores their replies.
    fn attempt(&self, requests: &[NodeRequest], open: &[usize], state: &mut State) {
        let is_outdated = self.shared.routes().is_outdated();
        if is_outdated && let Err(error) = self.load_routes() {
            state.attempts.record(open, replies(Vec::new(), Some(&error), open.len()));
            return;
        }
        let nodes = self.shared.routes().distribute(requests, open, &state.asks);
        state.asks.clear();
        let started: Vec<_> = nodes
            .into_iter()
            .map(|(node, routed)| {
                let pool = self.pool(&node);
                let sent = pool.start(&pack_routed(requests, &routed));
                (node, routed, pool, sent)
            })
            .collect();
        state.is_redirected = true;
        for (node, routed, pool, sent) in started {
            let (values, error) = match sent {
                Ok(sent) => pool.finish(sent, count_commands(&routed)),
                Err(error) => (Vec::new(), Some(error)),
            };
            let mut routes = self.shared.routes();
            state.evaluate(&mut routes, &node, &routed, values, error.as_ref());
        }
        state.finish();
    }
}

/// The state of the requests that one call of `send` sends.
pub(crate) struct State {
    pub(crate) attempts: Attempts,
    pub(crate) asks: Asks,
    /// Whether the cluster redirected all failed requests of the present attempt.
    pub(crate) is_redirected: bool,
}

impl State {
    pub(crate) fn new(requests: &[NodeRequest]) -> Self {
        Self { attempts: Attempts::new(requests), asks: Asks::new(), is_redirected: false }
    }

    /// Stores the replies of a node, and evaluates redirections and errors.
    pub(crate) fn evaluate(
        &mut self,
        routes: &mut Routes,
        node: &str,
        routed: &[Routed],
        values: Vec<Value>,
        error: Option<&RedisError>,
    ) {
        if error.is_some() {
            routes.expire();
            self.is_redirected = false;
        }
        let sent: Vec<usize> = routed.iter().map(|routed| routed.request).collect();
        let values = without_asking(values, routed);
        let replies: Vec<NodeReply> = replies(values, error, sent.len()).collect();
        for (&request, reply) in sent.iter().zip(&replies) {
            let is_new = routes.learn(node, request, reply, &mut self.asks);
            self.is_redirected &= is_new || !matches!(reply, Ok(Value::ServerError(_)));
        }
        self.attempts.record(&sent, replies);
    }

    /// Removes the pause before the next attempt if all failures were redirections.
    pub(crate) fn finish(&mut self) {
        if self.is_redirected {
            self.attempts.redirect();
        }
    }
}

impl Transport for ClusterNodes {
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        let mut state = State::new(requests);
        while let Some((open, pause)) = state.attempts.next(&self.shared.patience) {
            std::thread::sleep(pause);
            self.attempt(requests, &open, &mut state);
        }
        state.attempts.into_replies()
    }
}

/// Encodes the requests for one node as the bytes of a pipeline.
fn pack_routed(requests: &[NodeRequest], routed: &[Routed]) -> Vec<u8> {
    let mut packed = Vec::new();
    for &Routed { request, is_asking } in routed {
        if is_asking {
            redis::cmd("ASKING").write_packed_command(&mut packed);
        }
        requests[request].command.write_packed_command(&mut packed);
    }
    packed
}

fn count_commands(routed: &[Routed]) -> usize {
    routed.iter().map(|routed| 1 + usize::from(routed.is_asking)).sum()
}

/// Removes the replies to the command `ASKING`.
fn without_asking(values: Vec<Value>, routed: &[Routed]) -> Vec<Value> {
    let mut values = values.into_iter();
    let mut own = Vec::with_capacity(routed.len());
    for routed in routed {
        if routed.is_asking {
            values.next();
        }
        own.extend(values.next());
    }
    own
}

/// Returns a copy of connection settings with another address.
pub(crate) fn at(info: &ConnectionInfo, address: &str) -> ConnectionInfo {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "6379"));
    let (host, port) = (host.to_owned(), port.parse().unwrap_or(6379));
    let addr = match info.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    info.clone().set_addr(addr)
}

/// Returns the error for the case that no node replies.
pub(crate) fn no_address() -> RedisError {
    (ErrorKind::InvalidClientConfig, "no node is known that answers").into()
}

/// Returns the address of a client.
pub(crate) fn address_of(client: &Client) -> Address {
    match client.get_connection_info().addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            format!("{host}:{port}").into()
        }
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(nodes: &[&str]) -> Value {
        let mut first = 0;
        let range = |host: &&str| {
            let node = vec![Value::BulkString((*host).into()), Value::Int(1)];
            let range = [Value::Int(first), Value::Int(first + 99), Value::Array(node)];
            first += 100;
            Value::Array(range.into())
        };
        Value::Array(nodes.iter().map(range).collect())
    }

    #[test]
    fn the_connections_to_a_node_without_slots_are_closed() {
        let cluster = Cluster::new(["redis://a:1"], Patience::default(), false).unwrap();
        let connections_to =
            |address: &str| cluster.connections_to(&address.into(), |_, _| Arc::new(()));
        assert!(cluster.load("a:1", &slots(&["a", "b", "c"])));
        let connections = ["a:1", "b:1", "c:1"].map(connections_to);
        // A call may still use a connection to the node `b`.
        assert!(cluster.load("a:1", &slots(&["a", "c", "d"])));
        assert_eq!(connections.each_ref().map(Arc::strong_count), [2, 1, 2]);
        assert!(!cluster.load("a:1", &Value::Nil));
        assert_eq!(connections.each_ref().map(Arc::strong_count), [2, 1, 2]);
        assert!(
            Arc::ptr_eq(&connections_to("c:1"), &connections[2])
                && !Arc::ptr_eq(&connections_to("b:1"), &connections[1])
        );
    }
}
