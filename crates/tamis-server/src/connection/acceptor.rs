//! Accepts connections and passes the connections to the connection threads in turn. The acceptor
//! thread runs the periodic tasks too, such as the removal of expired keys.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::rustls::ServerConfig;

use crate::config::BindAddress;
use crate::connection;
use crate::connection::clients::{Clients, PendingConnection};
use crate::persistence::background_save;
use crate::persistence::loading::EarlyClient;
use crate::server_error::ServerError;
use crate::shared_state::SharedState;
use crate::system::clock::now_millis;
use crate::system::runtime::runtime;

/// An accepted connection that a connection thread will serve. The TLS configuration is present if
/// the connection uses TLS.
pub(crate) struct Arrival {
    stream: std::net::TcpStream,
    tls: Option<Arc<ServerConfig>>,
    /// Counts the connection from the time at which the connection is accepted.
    pending: PendingConnection,
    /// The bytes that the server has already received from the client.
    input: Vec<u8>,
}

impl Arrival {
    /// Creates the arrival of a client that connected while the server loaded its data.
    pub fn early(early: EarlyClient, clients: &Clients) -> Self {
        _ = early.stream.set_nodelay(true);
        Self { stream: early.stream, tls: None, pending: clients.add_pending(), input: early.input }
    }
}

/// The maximum number of connections that wait in the listen queue. With the usual system value of
/// 128, some clients of a burst retry only after seconds.
const BACKLOG: i32 = 4096;

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Set `SO_REUSEADDR`, as the standard library does, so that a new server may listen on the port
    // of a server that has just ended.
    socket.set_reuse_address(cfg!(unix))?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Opens the port `port` on all addresses. Opens no listener if `port` is `None`.
pub(crate) fn listen(
    addresses: &[BindAddress],
    port: Option<u16>,
) -> Result<Vec<TcpListener>, ServerError> {
    let mut listeners = Vec::new();
    let Some(mut port) = port else { return Ok(listeners) };
    let mut opened: Vec<IpAddr> = Vec::new();
    for bind in addresses {
        let mut missing = None;
        let mut is_open = false;
        for &address in bind.addresses() {
            // A host name may resolve to an address that is already open.
            if opened.contains(&address) {
                is_open = true;
                continue;
            }
            let address = SocketAddr::new(address, port);
            let fail = |error| ServerError::Listen { address, error };
            match open(address) {
                Ok(listener) => {
                    // If the port is 0, the system selects a port for the first address. All other
                    // addresses use the port of the first address.
                    port = listener.local_addr().map_err(fail)?.port();
                    opened.push(address.ip());
                    listeners.push(listener);
                    is_open = true;
                }
                // On a machine without IPv6, localhost may still resolve to an IPv6 address.
                Err(error) if bind.is_name() && is_unavailable(&error) => {
                    missing = Some(fail(error));
                }
                Err(error) => return Err(fail(error)),
            }
        }
        match missing {
            Some(error) if !is_open => return Err(error),
            Some(error) => {
                tracing::warn!(%error, name = %bind, "one address of a host name is not used");
            }
            None => {}
        }
    }
    Ok(listeners)
}

/// Tests whether this machine lacks the address or its network.
fn is_unavailable(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

/// Serves the connections of one thread.
pub(crate) fn serve(shared: &Arc<SharedState>, mut arrivals: mpsc::UnboundedReceiver<Arrival>) {
    let runtime = runtime();
    let mut connections = JoinSet::new();
    runtime.block_on(async {
        loop {
            let arrival = tokio::select! {
                arrival = arrivals.recv() => arrival,
                // A `JoinSet` keeps a finished task until `join_next` removes the task.
                Some(_) = connections.join_next() => continue,
                () = shared.stopping() => break,
            };
            let Some(Arrival { stream, tls, pending, input }) = arrival else { break };
            let shared = shared.clone();
            match (TcpStream::from_std(stream), tls) {
                (Ok(stream), None) => {
                    connections.spawn_local(connection::run(shared, stream, pending, input));
                }
                (Ok(stream), Some(tls)) => {
                    connections.spawn_local(connection::run_tls(shared, stream, tls, pending));
                }
                (Err(error), _) => {
                    tracing::warn!(%error, "an accepted connection failed before its first \
                        command");
                }
            }
        }
    });
    // Each connection notices that the server stops, and ends.
    runtime.block_on(async {
        let ended = async { while connections.join_next().await.is_some() {} };
        _ = tokio::time::timeout(GRACE, ended).await;
    });
    // Do not wait for background copies: the clients of these copies have disconnected.
    runtime.shutdown_background();
}

/// The time that connections have to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Accepts connections, passes the connections to the connection threads in turn, and runs the
/// periodic tasks.
pub(crate) fn admit(
    shared: &Arc<SharedState>,
    listeners: Vec<(TcpListener, bool)>,
    senders: &[mpsc::UnboundedSender<Arrival>],
) {
    runtime().block_on(async {
        let next = std::rc::Rc::new(std::cell::Cell::new(0));
        for (listener, is_tls) in listeners {
            let listener = match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => listener,
                Err(error) => {
                    tracing::error!(%error, "cannot accept connections");
                    continue;
                }
            };
            let (shared, senders, next) = (shared.clone(), senders.to_vec(), next.clone());
            tokio::task::spawn_local(async move {
                accept(&shared, &listener, is_tls, &senders, &next).await;
            });
        }
        // Run separate tasks: a panic in one task stops neither the other tasks nor the acceptor.
        let (sweeping, measuring, saving) = (shared.clone(), shared.clone(), shared.clone());
        tokio::task::spawn_local(async move { sweep(&sweeping).await });
        tokio::task::spawn_local(async move { measure(&measuring).await });
        tokio::task::spawn_local(async move { save_and_sample(&saving).await });
        shared.stopping().await;
    });
}

async fn accept(
    shared: &SharedState,
    listener: &tokio::net::TcpListener,
    is_tls: bool,
    senders: &[mpsc::UnboundedSender<Arrival>],
    next: &std::cell::Cell<usize>,
) {
    loop {
        match listener.accept().await {
            Ok((mut stream, _)) => {
                if shared.clients.connections() >= shared.config().max_clients {
                    shared.stats.rejected.fetch_add(1, Ordering::Relaxed);
                    if is_tls {
                        // A TLS client cannot read an error that is not encrypted.
                        continue;
                    }
                    let text = b"-ERR max number of clients reached\r\n";
                    _ = tokio::io::AsyncWriteExt::write_all(&mut stream, text).await;
                    continue;
                }
                _ = stream.set_nodelay(true);
                let sender = &senders[next.get() % senders.len()];
                next.set(next.get().wrapping_add(1));
                let tls = shared.tls.as_ref().filter(|_| is_tls).map(|it| it.read().clone());
                let pending = shared.clients.add_pending();
                if let Ok(stream) = stream.into_std() {
                    _ = sender.send(Arrival { stream, tls, pending, input: Vec::new() });
                }
            }
            Err(error) => {
                // The usual cause of this error is the limit of open files. Wait for a short time,
                // because another connection may end.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Each second, samples the statistics, and saves a snapshot if a snapshot is due.
async fn save_and_sample(shared: &Arc<SharedState>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        background_save::save_if_due(shared);
        shared.stats.sample();
        shared.stats.note_memory(shared.used_memory());
    }
}

/// Measures the filters, one shard at a time. A pass over all shards takes about half a minute.
async fn measure(shared: &SharedState) {
    for part in 0.. {
        tokio::time::sleep(Duration::from_millis(30)).await;
        shared.keyspace.measure(part, now_millis());
    }
}

/// Removes expired keys, one shard at a time. A pass over all shards takes about ten seconds.
async fn sweep(shared: &SharedState) {
    for part in 0.. {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let swept = shared.keyspace.sweep(part, now_millis());
        shared.stats.expired_keys.fetch_add(swept as u64, Ordering::Relaxed);
    }
}
