//! Blocking connections to one server, with timeouts and retries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Client, Connection, ConnectionLike as _, RedisError, Value};

use crate::error::RedisItemError;
use crate::lock::locked;
use crate::transport::request::{NodeReply, NodeRequest, SendError, value};
use crate::transport::server_url::{ServerUrlError, client};

/// Whether the blocking connections can be encrypted.
pub(crate) const HAS_TLS: bool = cfg!(feature = "tls");

/// Sends requests and returns their replies in the same order.
///
/// If a request gets no reply and is [repeatable](NodeRequest::is_repeatable), a transport may send
/// the request again. Several threads may send requests at the same time.
pub trait Transport: Send + Sync {
    /// Sends the requests in one pipeline for each node. Returns one reply for each request.
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply>;
}

/// Sends a request and returns the value of the reply.
pub(crate) fn ask<T: Transport>(
    transport: &T,
    request: NodeRequest,
) -> Result<Value, RedisItemError> {
    value(b"", transport.send(&[request]).remove(0))
}

/// The timeouts and the number of retries of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The timeout for opening a connection.
    pub connect: Duration,
    /// The timeout for a reply.
    pub response: Duration,
    /// The largest number of retries. In a retry, a transport sends repeatable requests without a
    /// reply again.
    pub retries: u32,
    /// The pause before the first retry. Each pause after the first pause is twice as long as the
    /// previous pause.
    pub pause: Duration,
}

impl Default for Patience {
    /// Returns a connection timeout of two seconds, a reply timeout of five seconds, and four
    /// retries. The four pauses together take less than a second.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            response: Duration::from_secs(5),
            retries: 4,
            pause: Duration::from_millis(60),
        }
    }
}

impl Patience {
    /// Returns the pause before a retry. Retries are counted from 1.
    pub(crate) fn pause_before(&self, retry: u32) -> Duration {
        self.pause * 2_u32.saturating_pow(retry - 1)
    }
}

/// The attempts to send requests until each request has a final reply.
pub(crate) struct Attempts {
    replies: Vec<Option<NodeReply>>,
    are_repeatable: Vec<bool>,
    retry: u32,
    /// Whether all requests without a final reply were redirected to another node.
    is_redirected: bool,
}

impl Attempts {
    pub(crate) fn new(requests: &[NodeRequest]) -> Self {
        let are_repeatable = requests.iter().map(|request| request.is_repeatable).collect();
        Self { replies: vec![None; requests.len()], are_repeatable, retry: 0, is_redirected: false }
    }

    /// Returns the indexes of the requests to send, and the pause before sending. Returns `None` if
    /// every request has a final reply, or if no retry is left.
    pub(crate) fn next(&mut self, patience: &Patience) -> Option<(Vec<usize>, Duration)> {
        let open: Vec<usize> = (0..self.replies.len()).filter(|&i| self.is_open(i)).collect();
        if open.is_empty() || self.retry > patience.retries {
            return None;
        }
        let pause = match self.retry {
            0 => Duration::ZERO,
            _ if std::mem::take(&mut self.is_redirected) => Duration::ZERO,
            retry => patience.pause_before(retry),
        };
        self.retry += 1;
        Some((open, pause))
    }

    fn is_open(&self, request: usize) -> bool {
        match &self.replies[request] {
            // The server may have executed the request before the error.
            Some(Err(_)) => self.are_repeatable[request],
            reply => !is_final(reply.as_ref()),
        }
    }

    /// Stores the replies to the requests of an attempt.
    pub(crate) fn record(&mut self, sent: &[usize], replies: impl IntoIterator<Item = NodeReply>) {
        for (&i, reply) in sent.iter().zip(replies) {
            self.replies[i] = Some(reply);
        }
    }

    /// Removes the pause before the next attempt, because the next attempt goes to other nodes than
    /// the previous attempt.
    pub(crate) fn redirect(&mut self) {
        self.is_redirected = true;
    }

    /// Tests whether a server refused a request because the server is no longer the primary.
    pub(crate) fn has_moved(&self) -> bool {
        self.replies.iter().flatten().any(|reply| code(reply) == Some("READONLY"))
    }

    pub(crate) fn into_replies(self) -> Vec<NodeReply> {
        let lost = || Err(SendError { message: "no attempt was made".into() });
        self.replies.into_iter().map(|reply| reply.unwrap_or_else(lost)).collect()
    }
}

fn code(reply: &NodeReply) -> Option<&str> {
    match reply {
        Ok(Value::ServerError(error)) => Some(error.code()),
        _ => None,
    }
}

/// Tests whether a reply is final. A reply is not final if the client may soon get another reply by
/// sending the request again.
fn is_final(reply: Option<&NodeReply>) -> bool {
    const TRANSIENT: [&str; 8] =
        ["LOADING", "TRYAGAIN", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "MOVED", "ASK"];
    match reply {
        None | Some(Err(_)) => false,
        Some(Ok(_)) => reply.and_then(code).is_none_or(|code| !TRANSIENT.contains(&code)),
    }
}

/// A source of connections: the address of a server, or Sentinels that report the address.
pub trait Connect: Send + Sync {
    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// Returns an error if no server replies before the timeout.
    fn connect(&self, timeout: Duration) -> Result<Connection, RedisError>;
}

impl Connect for Client {
    fn connect(&self, timeout: Duration) -> Result<Connection, RedisError> {
        self.get_connection_with_timeout(timeout)
    }
}

/// The largest number of connections that a [`ConnectionPool`] keeps while no call uses the
/// connections.
const MAX_IDLE: usize = 64;

/// The connections to one server. Clones share the connections.
///
/// Each call in flight has its own connection: an idle connection, or a new connection. Calls of
/// different threads run at the same time and do not wait for each other. The number of connections
/// in flight has no limit: a program with 1000 threads that call at the same time opens 1000
/// connections. A program that must open fewer connections limits its own calls. After a call, at
/// most 64 idle connections stay open. After a failure, a `ConnectionPool` closes all idle
/// connections, and the next calls open new connections.
pub struct ConnectionPool<C> {
    shared: Arc<PoolState<C>>,
}

struct PoolState<C> {
    source: C,
    patience: Patience,
    idle: Mutex<Idle>,
}

/// The connections that no call uses.
#[derive(Default)]
struct Idle {
    connections: Vec<Connection>,
    /// The number of failures. A connection that was taken before a failure is not kept, because
    /// the connection may lead to a server that is gone or no longer the primary.
    failures: u64,
}

/// A connection that has sent requests and not received their replies.
pub(crate) struct Sent {
    connection: Connection,
    failures: u64,
}

impl<C> Clone for ConnectionPool<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<C: Connect> ConnectionPool<C> {
    pub(crate) fn of_source(source: C, patience: Patience) -> Self {
        Self { shared: Arc::new(PoolState { source, patience, idle: Mutex::default() }) }
    }

    /// Sends encoded commands on an idle connection or on a new connection.
    pub(crate) fn start(&self, packed: &[u8]) -> Result<Sent, RedisError> {
        let PoolState { source, patience, idle } = &*self.shared;
        let (idle, failures) = {
            let mut idle = locked(idle);
            (idle.connections.pop(), idle.failures)
        };
        let mut connection = match idle {
            Some(connection) if connection.is_open() => connection,
            _ => {
                let connection = source.connect(patience.connect)?;
                connection.set_read_timeout(Some(patience.response))?;
                connection.set_write_timeout(Some(patience.response))?;
                connection
            }
        };
        match connection.send_packed_command(packed) {
            Ok(()) => Ok(Sent { connection, failures }),
            Err(error) => {
                self.close();
                Err(error)
            }
        }
    }

    /// Receives `count` replies to the sent commands, or fewer replies if the connection fails.
    pub(crate) fn finish(&self, sent: Sent, count: usize) -> (Vec<Value>, Option<RedisError>) {
        let Sent { mut connection, failures } = sent;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            match connection.recv_response() {
                Ok(value) => values.push(value),
                Err(error) => {
                    // The next reply on the connection could belong to an old request.
                    self.close();
                    return (values, Some(error));
                }
            }
        }
        let mut idle = locked(&self.shared.idle);
        if idle.failures == failures && idle.connections.len() < MAX_IDLE {
            idle.connections.push(connection);
        }
        (values, None)
    }

    /// Closes all idle connections. The connections in use are closed after their calls.
    pub(crate) fn close(&self) {
        let mut idle = locked(&self.shared.idle);
        idle.failures += 1;
        idle.connections.clear();
    }
}

/// Returns `count` replies: first the values, and then copies of the error for the requests without
/// a value.
pub(crate) fn replies(
    values: Vec<Value>,
    error: Option<&RedisError>,
    count: usize,
) -> impl Iterator<Item = NodeReply> {
    let message = error.map_or_else(|| "the connection was closed".to_owned(), ToString::to_string);
    let lost = Err(SendError { message });
    values.into_iter().map(Ok).chain(std::iter::repeat(lost)).take(count)
}

/// Encodes requests as the bytes of a pipeline.
pub(crate) fn pack<'r>(requests: impl Iterator<Item = &'r NodeRequest>) -> Vec<u8> {
    let mut packed = Vec::new();
    for request in requests {
        request.command.write_packed_command(&mut packed);
    }
    packed
}

impl<C: Connect> Transport for ConnectionPool<C> {
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        let mut attempts = Attempts::new(requests);
        while let Some((open, pause)) = attempts.next(&self.shared.patience) {
            std::thread::sleep(pause);
            let packed = pack(open.iter().map(|&i| &requests[i]));
            let (values, error) = match self.start(&packed) {
                Ok(sent) => self.finish(sent, open.len()),
                Err(error) => (Vec::new(), Some(error)),
            };
            attempts.record(&open, replies(values, error.as_ref(), open.len()));
            if attempts.has_moved() {
                self.close();
            }
        }
        attempts.into_replies()
    }
}

/// The connections to one server. Each call in flight has its own connection, and the number of
/// connections has no limit. The first request opens the first connection. After a failure, the
/// next request opens a new connection. Clones share the connections ([`ConnectionPool`]).
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedisFilter, SingleNode};
///
/// let node = SingleNode::new("redis://user:password@localhost:6379/0", Patience::default())?;
/// let users = RedisFilter::open(node, "users")?;
/// assert!(users.contains("alice")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SingleNode = ConnectionPool<Client>;

impl ConnectionPool<Client> {
    /// Parses a URL such as `redis://user:password@host:port/database`. With the feature `tls`, the
    /// scheme `rediss` encrypts the connection. The first request opens the connection.
    ///
    /// # Errors
    ///
    /// [`ServerUrlError`] if the URL is not valid.
    pub fn new(url: &str, patience: Patience) -> Result<Self, ServerUrlError> {
        Ok(Self::of_source(client(url, HAS_TLS)?, patience))
    }

    /// Creates a `ConnectionPool`, the connections to a node, from a client of the crate `redis`.
    /// The first request opens the connection.
    #[must_use]
    pub fn of_client(client: Client, patience: Patience) -> Self {
        Self::of_source(client, patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        connect: Duration::ZERO,
        response: Duration::ZERO,
        retries: 2,
        pause: Duration::from_millis(10),
    };

    #[test]
    fn only_requests_without_a_reply_are_sent_again() {
        let requests = ["a", "b", "c"].map(|key| NodeRequest::new("GET", key.into()));
        let mut attempts = Attempts::new(&requests);
        let failed = || Err(SendError { message: "closed".into() });
        let (open, pause) = attempts.next(&PATIENCE).unwrap();
        assert_eq!((open.clone(), pause), (vec![0, 1, 2], Duration::ZERO));
        attempts.record(&open, [Ok(Value::Int(1)), failed(), failed()]);
        let (open, pause) = attempts.next(&PATIENCE).unwrap();
        assert_eq!((open.clone(), pause), (vec![1, 2], Duration::from_millis(10)));
        attempts.record(&open, [Ok(Value::Int(2)), failed()]);
        let (open, pause) = attempts.next(&PATIENCE).unwrap();
        assert_eq!((open, pause), (vec![2], Duration::from_millis(20)));
        assert!(attempts.next(&PATIENCE).is_none());
        assert_eq!(attempts.into_replies()[..2], [Ok(Value::Int(1)), Ok(Value::Int(2))]);
    }

    #[test]
    fn a_request_that_is_not_repeatable_is_sent_again_only_if_it_was_not_executed() {
        let moved = redis::parse_redis_value(b"-MOVED 1 b:1\r\n").unwrap();
        let once = NodeRequest { is_repeatable: false, ..NodeRequest::new("INCR", "a".into()) };
        let mut attempts = Attempts::new(&[once.clone(), once]);
        let (open, _) = attempts.next(&PATIENCE).unwrap();
        let lost = Err(SendError { message: "closed".into() });
        attempts.record(&open, [Ok(moved), lost.clone()]);
        assert_eq!(attempts.next(&PATIENCE).unwrap().0, [0]);
        attempts.record(&[0], [Ok(Value::Int(1))]);
        assert!(attempts.next(&PATIENCE).is_none());
        assert_eq!(attempts.into_replies(), [Ok(Value::Int(1)), lost]);
    }
}
