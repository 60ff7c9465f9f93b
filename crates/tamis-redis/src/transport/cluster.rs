//! Blocking connections to the nodes of a Redis cluster.

use std::collections::HashMap;

use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, Value};

use crate::transport::blocking::{Attempts, Line, Patience, Transport, replies};
use crate::transport::request::{NodeReply, NodeRequest};
use crate::transport::routes::{Address, Asks, Routed, Routes};

/// Blocking connections to the nodes of a Redis cluster.
///
/// The transport sends one pipeline to each node, and then waits for all replies. A batch therefore
/// takes the time of one round trip. The transport follows the redirections `MOVED` and `ASK`, and
/// reads the slots of the cluster again after a failure.
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{ClusterNodes, Patience, RedisFilter, RedisPlan};
///
/// let nodes = ClusterNodes::new(["redis://10.0.0.1:7000", "redis://10.0.0.2:7000"], Patience::default())?;
/// let plan = RedisPlan::new(100_000_000, 0.01)?;
/// let mut users = RedisFilter::open_or_create(nodes, "users", &plan)?;
/// assert_eq!(users.insert("alice"), Ok(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ClusterNodes {
    seeds: Vec<Client>,
    lines: HashMap<Address, Line<Client>>,
    routes: Routes,
    patience: Patience,
}

/// Parses the URLs of some nodes. Returns an error if `urls` is empty.
pub(crate) fn seeds<'u>(
    urls: impl IntoIterator<Item = &'u str>,
) -> Result<Vec<Client>, RedisError> {
    let seeds = urls.into_iter().map(Client::open).collect::<Result<Vec<_>, _>>()?;
    if seeds.is_empty() { Err(no_address()) } else { Ok(seeds) }
}

impl ClusterNodes {
    /// Parses the URLs of some nodes. The user, the password and the TLS settings of the first URL
    /// apply to all nodes. The first requests open the connections.
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

    fn line(&mut self, address: &Address) -> &mut Line<Client> {
        let info = self.seeds[0].get_connection_info();
        self.lines.entry(address.clone()).or_insert_with(|| {
            let info = at(info, address);
            Line::of_source(Client::open(info).expect("the URL was parsed before"), self.patience)
        })
    }

    /// Reads the slots of the cluster from the first node that replies.
    fn load_routes(&mut self) -> Result<(), RedisError> {
        let mut addresses = self.routes.nodes();
        addresses.extend(self.seeds.iter().map(address_of));
        let mut last = no_address();
        for address in addresses {
            match self.slots_of(&address) {
                Ok(slots) if self.routes.load(&address, &slots) => return Ok(()),
                Ok(Value::ServerError(error)) => last = error.into(),
                Ok(_) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn slots_of(&mut self, address: &Address) -> Result<Value, RedisError> {
        let packed = redis::cmd("CLUSTER").arg("SLOTS").get_packed_command();
        let line = self.line(address);
        let reply = line.start(&packed).map(|()| line.finish(1));
        match reply {
            Ok((mut values, None)) if !values.is_empty() => Ok(values.remove(0)),
            Ok((_, error)) => {
                line.close();
                Err(error.unwrap_or_else(no_address))
            }
            Err(error) => {
                line.close();
                Err(error)
            }
        }
    }

    /// Sends the open requests once, and stores their replies.
    fn attempt(&mut self, requests: &[NodeRequest], open: &[usize], state: &mut State) {
        if self.routes.is_outdated()
            && let Err(error) = self.load_routes()
        {
            state.attempts.record(open, replies(Vec::new(), Some(&error), open.len()));
            return;
        }
        let nodes = self.routes.distribute(requests, open, &state.asks);
        state.asks.clear();
        let failed: HashMap<Address, RedisError> = nodes
            .iter()
            .filter_map(|(node, routed)| {
                let packed = pack_routed(requests, routed);
                Some((node.clone(), self.line(node).start(&packed).err()?))
            })
            .collect();
        state.is_redirected = true;
        for (node, routed) in nodes {
            let (values, error) = match failed.get(&node) {
                Some(_) => (Vec::new(), None),
                None => self.line(&node).finish(count_commands(&routed)),
            };
            let error = error.as_ref().or(failed.get(&node));
            if error.is_some() {
                self.line(&node).close();
            }
            state.evaluate(&mut self.routes, &node, &routed, values, error);
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
    fn send(&mut self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        let mut state = State::new(requests);
        while let Some((open, pause)) = state.attempts.next(&self.patience) {
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
