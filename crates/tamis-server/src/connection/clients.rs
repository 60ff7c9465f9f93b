//! The connected clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::connection::end_request::EndRequest;
use crate::system::held_memory::HeldMemory;
use crate::users::DEFAULT;

/// The connections of a server.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    last_id: AtomicU64,
    /// The memory of the unread replies of all clients.
    pub output: HeldMemory,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// The number of accepted connections that are not registered as clients yet. A pending
    /// connection waits for its thread or for the TLS handshake.
    pending: Arc<AtomicUsize>,
}

/// Counts a connection that is not registered as a client yet. The drop of a `PendingConnection`
/// ends the count.
#[derive(Debug)]
pub(crate) struct PendingConnection(Arc<AtomicUsize>);

impl Drop for PendingConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A registered client. Dropping a `Connected` removes the client from the list.
#[derive(Debug)]
pub(crate) struct Connected<'c> {
    clients: &'c Clients,
    pub client: Arc<Client>,
}

impl Drop for Connected<'_> {
    /// Removes the client even if one of its commands panicked. A client that is not removed would
    /// count towards `maxclients` permanently.
    fn drop(&mut self) {
        self.clients.all.lock().remove(&self.client.id);
    }
}

/// The data of a connection that other connections may read.
#[derive(Debug)]
pub(crate) struct Client {
    pub id: u64,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    pub connected_millis: u64,
    pub last_millis: AtomicU64,
    /// The memory of replies that the client has not read yet.
    pub output: HeldMemory,
    /// The memory of the long command that is still arriving, in bytes.
    pub input: AtomicU64,
    /// True if the connection must end because the arriving commands exceed `maxmemory`.
    pub is_evicted: AtomicBool,
    pub properties: Mutex<ClientProperties>,
    pub end_request: EndRequest,
}

/// The properties that a client can set, and the last command of the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientProperties {
    pub name: String,
    /// The user of the connection. The value is `None` until the connection has authenticated.
    pub user: Option<Vec<u8>>,
    pub library: String,
    pub library_version: String,
    pub last_command: &'static str,
    pub resp: u8,
    pub queued: Option<usize>,
}

impl Clients {
    pub fn add(&self, peer: SocketAddr, local: SocketAddr, now_millis: u64) -> Connected<'_> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client {
            id,
            peer,
            local,
            connected_millis: now_millis,
            last_millis: AtomicU64::new(now_millis),
            output: HeldMemory::default(),
            input: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
            properties: Mutex::new(ClientProperties { resp: 2, ..ClientProperties::default() }),
            end_request: EndRequest::default(),
        });
        self.all.lock().insert(id, client.clone());
        Connected { clients: self, client }
    }

    pub fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Counts a connection that is not registered as a client yet.
    pub fn add_pending(&self) -> PendingConnection {
        self.pending.fetch_add(1, Ordering::Relaxed);
        PendingConnection(self.pending.clone())
    }

    /// Returns the number of connections, including connections that are not registered yet.
    pub fn connections(&self) -> usize {
        self.len() + self.pending.load(Ordering::Relaxed)
    }

    /// Returns all clients, oldest first.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    /// Returns the number of clients since the start of the server.
    pub fn ever(&self) -> u64 {
        self.last_id.load(Ordering::Relaxed)
    }
}

impl ClientProperties {
    /// Returns the name of the user.
    pub fn user(&self) -> &[u8] {
        self.user.as_deref().unwrap_or(DEFAULT)
    }
}

impl Client {
    /// Returns the client's line in `CLIENT LIST`.
    pub fn line(&self, now_millis: u64) -> String {
        let properties = self.properties.lock();
        let seconds = |since: u64| now_millis.saturating_sub(since) / 1000;
        let (omem, qbuf) = (self.output.bytes(), self.input.load(Ordering::Relaxed));
        let total = omem + qbuf;
        let command =
            if properties.last_command.is_empty() { "NULL" } else { properties.last_command };
        format!(
            "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={} db=0 sub=0 psub=0 ssub=0 \
             multi={} watch=0 qbuf={qbuf} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
             omem={omem} tot-mem={total} events=r cmd={} user={} redir=-1 resp={} lib-name={} \
             lib-ver={}\n",
            self.id,
            self.peer,
            self.local,
            properties.name,
            seconds(self.connected_millis),
            seconds(self.last_millis.load(Ordering::Relaxed)),
            if properties.queued.is_some() { "x" } else { "N" },
            properties.queued.map_or(-1, |queued| queued as i64),
            command.to_ascii_lowercase().replacen(' ', "|", 1),
            String::from_utf8_lossy(properties.user()),
            properties.resp,
            properties.library,
            properties.library_version,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_panics_is_removed() {
        let clients = Clients::default();
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let run = || {
            let _connected = clients.add(address, address, 0);
            assert_eq!(clients.len(), 1);
            panic!("a command does");
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert_eq!((clients.len(), clients.ever()), (0, 1));
    }
}
